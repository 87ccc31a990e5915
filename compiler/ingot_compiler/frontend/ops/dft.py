"""ONNX DFT: discrete Fourier transform along one axis, by its matrix.

In: a real or complex tensor [.., 1 or 2], perhaps length and axis. Out: core ``matmul`` with cosines and sines.
Not done here: an axis known at run time only, when the sizes of the axes differ in the result's shape (reported as unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import binary_scalar, cast, read_size, reshape, sizes_from
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.fourier import transform
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.ir.dims import Dim


def _axes(context: OpContext, rank: int) -> tuple[int, ...]:
    """The axis, or all that it may be at run time."""
    if context.opset < 20:
        return (context.axis(context.int_attribute("axis", 1), rank),)
    operand = context.optional(2)
    known = (-2,) if operand is None else context.known_ints(operand)
    if known is not None and len(known) == 1:
        return (context.axis(known[0], rank),)
    return tuple(range(rank - 1))


def _translate(context: OpContext) -> Sequence[int]:
    x, length = context.operand(0), context.optional(1)
    size: Dim | None = None if length is None else read_size(context, cast(context, length, "i64"))
    inverse, onesided = (bool(context.int_attribute(name, 0)) for name in ("inverse", "onesided"))
    axes = _axes(context, len(sizes_from(context, x, 2)))
    results = [transform(context, x, axis, size, inverse=inverse, onesided=onesided) for axis in axes]
    if len({context.shape_of(result) for result in results}) > 1:
        raise Unsupported("an axis that is computed at run time and decides the shape of the result")
    chosen = results[0]
    if len(axes) > 1:
        rank = context.scalar("i64", context.rank_of(x))
        axis = context.add("mod", cast(context, reshape(context, context.operand(2), ()), "i64"), rank)
        for other, result in zip(axes[1:], results[1:], strict=True):
            chosen = context.add("select", binary_scalar(context, "equal", axis, other), result, chosen)
    return (chosen,)


OP = OnnxOp("DFT", _translate, 17)
