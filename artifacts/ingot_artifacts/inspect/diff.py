"""What differs between two bundles: section by section, then kernel by kernel.

In: two paths. Out: lines. Not done here: why they differ (``ingot why``).
"""

import os
from collections.abc import Mapping
from typing import Any

from ingot_artifacts.inspect.describe import describe_bundle

_ENTRIES = (
    "format",
    "model",
    "devices",
    "symbols",
    "inputs",
    "outputs",
    "variants",
    "memory",
    "lock",
    "debug",
)
_TABLES = ("memory", "lock", "debug")


def diff_bundles(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> list[str]:
    """Return one line per difference; none if the bundles are the same bytes.

    Raises:
        BundleError: one of them is not a valid bundle.
    """
    left, right = describe_bundle(first), describe_bundle(second)
    if left["root_digest"] == right["root_digest"]:
        return []
    lines = _changed("section", _by_section(left), _by_section(right))
    for entry in _ENTRIES:
        if left[entry] != right[entry]:
            lines += _entry_lines(entry, left[entry], right[entry])
    kernels = _changed("kernel", _by_kernel(left), _by_kernel(right))
    return lines + kernels


def _by_section(described: Mapping[str, Any]) -> dict[str, str]:
    rows: list[dict[str, Any]] = described["sections"]
    trees = {row["id"]: row["sha256"] for row in rows if row["kind"] == "tree"}
    found: dict[str, str] = {}
    for row in rows:
        digest = str(row["sha256"] or trees.get(row["id"]))
        found[f"{row['kind']} {row['id']}"] = f"{row['size_bytes']} bytes, {digest[:16]}"
    return found


def _by_kernel(described: Mapping[str, Any]) -> dict[str, str]:
    table: dict[str, list[str]] = described["kernels"]
    return {
        f"{target}/{symbol}": "present" for target, symbols in table.items() for symbol in symbols
    }


def _changed(what: str, left: Mapping[str, str], right: Mapping[str, str]) -> list[str]:
    lines: list[str] = []
    for name in sorted(set(left) | set(right)):
        if name not in right:
            lines.append(f"{what} {name}: only in the first")
        elif name not in left:
            lines.append(f"{what} {name}: only in the second")
        elif left[name] != right[name]:
            lines.append(f"{what} {name}: {left[name]} -> {right[name]}")
    return lines


def _entry_lines(entry: str, left: Any, right: Any) -> list[str]:
    if entry in _TABLES:
        sides: list[dict[str, Any]] = [left, right]
        return _changed(
            entry, *({str(key): repr(value) for key, value in side.items()} for side in sides)
        )
    return [f"{entry}: {left!r} -> {right!r}"]
