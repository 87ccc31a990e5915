"""ONNX Expand: broadcasting to a shape, in both directions.

In: a tensor and a shape that is known or computed at run time. Out: core ``broadcast_to``. Not done
here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    as_vector,
    binary_scalar,
    broadcast_to,
    cast,
    concat,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import require_dim
from ingot_compiler.ir.dims import Dim, dim_mul
from ingot_compiler.ir.message import message
from ingot_compiler.ir.rules.shapes import broadcast_shapes


def _translate(context: OpContext) -> Sequence[int]:
    x, shape = context.operand(0), context.operand(1)
    dims = context.dims(shape)
    if dims is not None:
        target = broadcast_shapes(context.shape_of(x), dims)
        for wanted, size in zip(reversed(dims), reversed(target), strict=False):
            if wanted not in (1, size):
                expected = message("1 or the size of the operand, ", size)
                require_dim(context, dim_mul(wanted - 1, wanted - size), expected, wanted)
        return (broadcast_to(context, x, target),)
    return (broadcast_to(context, x, _read(context, x, shape)),)


def _read(context: OpContext, x: int, shape: int) -> tuple[Dim, ...]:
    """The two-sided rule at run time: where the wanted size is 1, x's own."""
    own, count = context.shape_of(x), context.count_of(shape)
    rank = max(len(own), count)
    wanted = cast(context, as_vector(context, shape), "i64")
    if count < rank:
        wanted = concat(context, [context.integers([1] * (rank - count)), wanted], 0)
    sizes = context.integers((*[1] * (rank - len(own)), *own))
    return context.read_dims(
        context.add("select", binary_scalar(context, "equal", wanted, 1), sizes, wanted)
    )


OP = OnnxOp("Expand", _translate)
