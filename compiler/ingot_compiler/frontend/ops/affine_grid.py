"""ONNX AffineGrid: the grid of an affine map over an image or a volume.

In: theta[N, axes, axes + 1], the size of the result of GridSample. Out: grid[N, spatial.., axes].
Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    broadcast_to,
    cast,
    concat,
    full,
    iota,
    reshape,
    size_scalar,
    transpose,
    wide_float,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.dims import Dim, dim_product
from ingot_compiler.ir.types import DType


def _steps(context: OpContext, size: Dim, dtype: DType, *, align: bool) -> int:
    """Centres, or with ``align`` ends, of ``size`` cells over [-1, 1]; floats of type ``dtype``."""
    position = cast(context, iota(context, size), dtype)
    length = size_scalar(context, size, dtype)
    if align:
        span = binary_scalar(context, "max", binary_scalar(context, "sub", length, 1.0), 1.0)
        twice = binary_scalar(context, "mul", position, 2.0)
        return binary_scalar(context, "sub", context.add("div", twice, span), 1.0)
    odd = binary_scalar(context, "add", binary_scalar(context, "mul", position, 2.0), 1.0)
    return binary_scalar(context, "sub", context.add("div", odd, length), 1.0)


def _translate(context: OpContext) -> Sequence[int]:
    theta = context.operand(0)
    wide = wide_float(context.dtype_of(theta))
    sizes = context.read_dims(context.operand(1))[2:]
    count, total = len(sizes), dim_product(sizes)
    align = context.bool_attribute("align_corners")
    rows: list[int] = []
    for axis in reversed(range(count)):
        along = [size if axis == other else 1 for other, size in enumerate(sizes)]
        steps = reshape(context, _steps(context, sizes[axis], wide, align=align), along)
        rows.append(reshape(context, broadcast_to(context, steps, sizes), (1, total)))
    rows.append(full(context, wide, 1.0, (1, total)))
    # Places in the columns: two or three columns would leave most of each vector empty.
    product = context.add("matmul", cast(context, theta, wide), concat(context, rows, 0))
    grid = transpose(context, product, (0, 2, 1))
    grid = reshape(context, grid, (context.shape_of(theta)[0], *sizes, count))
    return (cast(context, grid, context.dtype_of(theta)),)


OPS = (OnnxOp("AffineGrid", _translate, 20),)
