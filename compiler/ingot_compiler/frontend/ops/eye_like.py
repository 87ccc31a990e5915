"""ONNX EyeLike: a matrix with ones on the diagonal ``k``.

In: a matrix, for its shape and element type. Out: zeros and core ``scatter_elements``; of a small
matrix, which is folded where something is computed from it, core ``iota``, ``equal``, ``select``.
Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    full,
    iota,
    range_mask,
    reshape,
    size_scalar,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.model.onnx_types import dtype_of
from ingot_compiler.ir.dims import Dim, dim_max, dim_min, dim_mul, dim_product
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.types import DType

_SELECTED_MAX = 1 << 14  # elements; of more, most would be compared for nothing


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    dtype = dtype_of(context.int_attribute("dtype", 0)) or context.dtype_of(x)
    shape = context.shape_of(x)
    if len(shape) != 2:
        raise OpTypeError("rank 2", context.type_of(x))
    k, count = context.int_attribute("k", 0), dim_product(shape)
    is_small = isinstance(count, int) and count <= _SELECTED_MAX
    return ((_selected if is_small else _scattered)(context, dtype, shape, k),)


def _selected(context: OpContext, dtype: DType, shape: Sequence[Dim], k: int) -> int:
    """Row and column of each element are compared."""
    row, column = (range_mask(context, shape, axis) for axis in (0, 1))
    is_one = context.add("equal", binary_scalar(context, "add", row, k), column)
    return context.add("select", is_one, context.scalar(dtype, 1), context.scalar(dtype, 0))


def _scattered(context: OpContext, dtype: DType, shape: Sequence[Dim], k: int) -> int:
    """Ones among zeros, each a row and a column behind the one before it."""
    rows, columns = shape
    left, above = max(k, 0), max(-k, 0)
    count = dim_max(dim_min(rows - above, columns - left), 0)
    step = size_scalar(context, columns + 1)
    start = size_scalar(context, dim_mul(above, columns) + left)
    places = context.add("add", context.add("mul", iota(context, count), step), start)
    flat = full(context, dtype, 0, (dim_product(tuple(shape)),))
    ones = full(context, dtype, 1, (count,))
    made = context.add("scatter_elements", flat, places, ones, axis=0, reduction="none")
    return reshape(context, made, shape)


OPS = (OnnxOp("EyeLike", _translate),)
