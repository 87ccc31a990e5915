"""Puts the user's names into errors of later stages, which know nodes by ordinal alone.

In: an error that says ``node #12`` and the ``names`` artifact. Out: the same error saying ``node '/layer1/conv' (Conv)``.
Not done here: raising (``infer_types`` and every later stage).
"""

from __future__ import annotations

import re
from typing import TypeVar

from ingot_compiler.ir.errors import IngotError
from ingot_compiler.ir.graph import Names

ErrorT = TypeVar("ErrorT", bound=IngotError)
_ORDINAL = re.compile(r"\b(node|input|output) #(\d+)")


def name_nodes(error: ErrorT, names: Names) -> ErrorT:
    """A copy of ``error`` with ordinals replaced by the user's names."""

    def name(match: re.Match[str]) -> str:
        kind, ordinal = match[1], int(match[2])
        if kind == "node":
            return f"node {names.nodes[ordinal][0]!r} ({names.nodes[ordinal][1]})"
        return f"{kind} {(names.inputs if kind == 'input' else names.outputs)[ordinal]!r}"

    return type(error)(*(_ORDINAL.sub(name, part) for part in (error.what, error.where, error.why, error.do)))
