"""Puts the user's names into texts of later stages, which know nodes by ordinal and sizes by symbol alone.

In: a text or an error that says ``node #12`` or ``s0``, and the ``names`` artifact. Out: the same saying
``node '/layer1/conv' (Conv)`` and ``batch``. Not done here: raising (``infer_types`` and every later stage).
"""

from __future__ import annotations

import re
from typing import TypeVar

from ingot_compiler.ir.graph import Names
from ingot_runtime.ingot_error import IngotError

ErrorT = TypeVar("ErrorT", bound=IngotError)
_NAMELESS = re.compile(r"\b(node|input|output) #(\d+)|\bs\d+\b")


def name_nodes(error: ErrorT, names: Names) -> ErrorT:
    """A copy of ``error`` in the user's names."""
    return type(error)(*(name_text(part, names) for part in (error.what, error.where, error.why, error.do)))


def name_text(text: str, names: Names) -> str:
    """``text`` with ordinals and symbols replaced by the user's names."""
    symbols = dict(names.symbols)

    def name(match: re.Match[str]) -> str:
        if match[1] is None:
            return symbols.get(match[0], match[0])
        ordinal = int(match[2])
        if match[1] == "node":
            return f"node {names.nodes[ordinal][0]!r} ({names.nodes[ordinal][1]})"
        return f"{match[1]} {(names.inputs if match[1] == 'input' else names.outputs)[ordinal]!r}"

    return _NAMELESS.sub(name, text)
