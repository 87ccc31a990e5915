"""ONNX Unsqueeze: axes of size 1 added; axes are an attribute before opset 13, then an operand.

In: a tensor and axes of the result, known or computed at run time. Out: core ``reshape``. Not done
here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast, reshape, unsqueeze
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.run_time_shapes import axis_flags
from ingot_compiler.frontend.model.onnx_node import counted_axes
from ingot_compiler.ir.dims import Dim


def _translate(context: OpContext) -> Sequence[int]:
    x, shape = context.operand(0), context.shape_of(context.operand(0))
    operand = context.operand(1) if context.opset >= 13 else None
    axes = context.ints_or("axes", ()) if operand is None else context.known_ints(operand)
    if axes is None:
        assert operand is not None
        return (reshape(context, x, _read(context, shape, operand)),)
    return (unsqueeze(context, x, counted_axes(axes, len(shape) + len(axes))),)


def _read(context: OpContext, shape: Sequence[Dim], axes: int) -> tuple[Dim, ...]:
    """The result's sizes: 1 at the axes, else the next of the operand's own."""
    rank = len(shape) + context.count_of(axes)
    flags = axis_flags(context, axes, rank)
    kept = cast(context, context.add("logical_not", flags), "i64")
    slot = context.add("cumsum", kept, axis=0, exclusive=True, reverse=False)
    # The slot behind the last one is read where flags hold only.
    own = context.add("gather", context.integers((*shape, 1)), slot, axis=0)
    return context.read_dims(context.add("select", flags, context.scalar("i64", 1), own))


OP = OnnxOp("Unsqueeze", _translate)
