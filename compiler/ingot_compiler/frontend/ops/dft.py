"""ONNX DFT: discrete Fourier transform along one axis, by its matrix.

In: a real or complex tensor [.., 1 or 2], perhaps length and axis. Out: core ``matmul`` with
cosines and sines. Not done here: an axis known at run time only, when the sizes of the axes differ
in the result's shape (reported as unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.index_checks import chosen_along
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import read_size, sizes_from
from ingot_compiler.frontend.families.fourier.fourier import transform
from ingot_compiler.frontend.model.onnx_node import counted_axis
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.op_type_error import OpTypeError


def _axis(context: OpContext, rank: int) -> int | None:
    """The axis; None when only a run knows it."""
    if context.opset < 20:
        given: tuple[int, ...] | None = (context.int_attribute("axis", 1),)
    else:
        operand = context.optional(2)
        given = (-2,) if operand is None else context.known_ints(operand)
    if given is None or len(given) != 1:
        return None
    axis = counted_axis(given[0], rank)
    if axis == rank - 1:
        raise OpTypeError("an axis before the one of real and imaginary parts", given[0])
    return axis


def _translate(context: OpContext) -> Sequence[int]:
    x, length = context.operand(0), context.optional(1)
    size: Dim | None = None if length is None else read_size(context, cast(context, length, "i64"))
    inverse, onesided = (context.bool_attribute(name) for name in ("inverse", "onesided"))
    rank = len(sizes_from(context, x, 2))
    axis = _axis(context, rank)
    if axis is not None:
        return (transform(context, x, axis, size, inverse=inverse, onesided=onesided),)
    results = [
        transform(context, x, along, size, inverse=inverse, onesided=onesided)
        for along in range(rank - 1)
    ]
    if len({context.shape_of(result) for result in results}) > 1:
        reason = "an axis that is computed at run time and decides the shape of the result"
        raise Unsupported(reason)
    return (chosen_along(context, context.operand(2), results, rank),)


OPS = (OnnxOp("DFT", _translate, 17),)
