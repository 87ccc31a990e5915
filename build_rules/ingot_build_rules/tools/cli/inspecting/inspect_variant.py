"""The part of a bundle's description that speaks of one variant.

In: what ``describe_bundle`` tells, a target. Out: the same without the other variants. Not done
here: describing, printing (``inspect``).
"""

from __future__ import annotations

from typing import Any

from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.suggest import suggest

_BY_TARGET = ("memory", "device_use", "kernels")
_DEBUG_BY_TARGET = ("launches", "memory")


def only_variant(described: dict[str, Any], target: str, bundle: str) -> dict[str, Any]:
    """Return the description with one variant, or with one device library, alone.

    Raises:
        UserError: the bundle has no such variant; the error names those that it has.
    """
    known = [variant["target"] for variant in described["variants"]]
    known += [library["target"] for library in described["libraries"]]
    if target not in known:
        why = f"the bundle has {', '.join(dict.fromkeys(known))}"
        raise UserError(f"no variant {target!r}", bundle, why, suggest(target, known))
    libraries = zip(described["libraries"], described["library_kernels"], strict=True)
    debug: dict[str, Any] = described["debug"]
    kept = {name: _only(debug[name], target) for name in _DEBUG_BY_TARGET if name in debug}
    return {
        **described,
        **{name: _only(described[name], target) for name in _BY_TARGET},
        "variants": [each for each in described["variants"] if each["target"] == target],
        "library_kernels": [
            symbols if library["target"] == target else [] for library, symbols in libraries
        ],
        "debug": {**debug, **kept},
    }


def _only(table: dict[str, Any], target: str) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name == target}
