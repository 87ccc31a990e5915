"""Reports which parts of a quantized model run in floats, in one line.

In: refusals of the passes, names. Out: text, empty where there is nothing to tell. Not done here:
which products they are (``ingot_compiler.passes.products_in_floats``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.graph import Names
from ingot_compiler.ir.refusal import INTEGER_PRODUCT, Refusal

_TOLD_MAX = 3  # nodes of one reason


def products_in_floats_line(refusals: Sequence[Refusal], names: Names) -> str:
    """Nodes by name, those of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for item in refusals:
        if item.pattern == INTEGER_PRODUCT:
            by_reason.setdefault(item.reason, []).append(names.describe(item.source))
    parts = [f"{_some(nodes)}: {reason}" for reason, nodes in by_reason.items()]
    return f"runs in floats in this quantized model: {'; '.join(parts)}" if parts else ""


def _some(nodes: Sequence[str]) -> str:
    more = len(nodes) - _TOLD_MAX
    return ", ".join(nodes[:_TOLD_MAX]) + (f" and {more} more" if more > 0 else "")
