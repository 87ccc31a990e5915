"""Canonical forms of paddings: a convolution pads its operand itself.

In: a rewriter and a node. Out: the value that stands for its result, or None. Not done here: pads
that stay pads (``movement``), poolings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.passes.match import scalar
from ingot_compiler.passes.rewrite import Rewriter


def convolution_of_pad(state: Rewriter, node: Node) -> int | None:
    """``conv(pad(x))``, as TensorFlow's exporters write it, is one convolution with longer pads,
    where both put the same number around x."""
    pad = state.made_by(node.operands[0], "pad")
    if pad is None or pad.table["mode"] != "constant":
        return None
    around = node.table.get("pad_value", 0)
    before, after = (_spatial(pad.dims(name)) for name in ("before", "after"))
    if before is None or after is None or scalar(state, pad.operands[1]) != around:
        return None
    longer = {
        name: tuple(own + more for own, more in zip(node.ints(name), pads, strict=True))
        for name, pads in (("pads_before", before), ("pads_after", after))
    }
    operands = (pad.operands[0], *node.operands[1:])
    return state.emit("conv", operands, {**node.table, **longer}, node.source)


def _spatial(pads: tuple[Dim, ...]) -> tuple[int, ...] | None:
    """Pads of the spatial axes; None where one is not a number, or another axis has one."""
    numbers = tuple(pad for pad in pads if isinstance(pad, int) and pad >= 0)
    return numbers[2:] if len(numbers) == len(pads) and not any(numbers[:2]) else None


RULES: Mapping[OpName, tuple[Callable[[Rewriter, Node], int | None], ...]] = {
    "conv": (convolution_of_pad,)
}
