"""ONNX AffineGrid: the grid of an affine map over an image or a volume.

In: theta[N, axes, axes + 1], the size of the result of GridSample. Out: grid[N, spatial.., axes].
Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import (
    binary_scalar,
    broadcast_to,
    cast,
    concat,
    full,
    product,
    reshape,
    transpose,
)
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.sampling import dim_value
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.types import DType


def _steps(context: OpContext, size: Dim, dtype: DType, *, align: bool) -> int:
    """Centres, or with ``align`` ends, of ``size`` cells over [-1, 1]."""
    wide: DType = "f64" if dtype == "f64" else "f32"
    iota = cast(context, context.add("iota", dtype="i64", length=size), wide)
    length = dim_value(context, size, wide)
    if align:
        span = binary_scalar(context, "max", binary_scalar(context, "sub", length, 1.0), 1.0)
        return binary_scalar(
            context, "sub", context.add("div", binary_scalar(context, "mul", iota, 2.0), span), 1.0
        )
    odd = binary_scalar(context, "add", binary_scalar(context, "mul", iota, 2.0), 1.0)
    return binary_scalar(context, "sub", context.add("div", odd, length), 1.0)


def _translate(context: OpContext) -> Sequence[int]:
    theta = context.operand(0)
    dtype = context.dtype_of(theta)
    wide: DType = "f64" if dtype == "f64" else "f32"
    sizes = context.read_dims(context.operand(1))[2:]
    count, total = len(sizes), product(sizes)
    align = bool(context.int_attribute("align_corners", 0))
    columns: list[int] = []
    for axis in reversed(range(count)):
        along = [size if axis == other else 1 for other, size in enumerate(sizes)]
        steps = reshape(context, _steps(context, sizes[axis], dtype, align=align), along)
        columns.append(reshape(context, broadcast_to(context, steps, sizes), (total, 1)))
    columns.append(full(context, wide, 1.0, (total, 1)))
    matrix = transpose(context, cast(context, theta, wide), (0, 2, 1))
    grid = context.add("matmul", concat(context, columns, 1), matrix)
    return (
        cast(context, reshape(context, grid, (context.shape_of(theta)[0], *sizes, count)), dtype),
    )


OP = OnnxOp("AffineGrid", _translate, 20)
