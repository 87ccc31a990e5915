"""Constructions that several translations share, as functions over a context.

In: a context and value ids. Out: value ids. Not done here: sizes of windows (``windows``),
reductions (``reductions``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.context import OpContext
from ingot_compiler.ir.attributes import text_attribute
from ingot_compiler.ir.dims import Dim, dim_max, dim_mul
from ingot_compiler.ir.message import Text, message
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.types import FLOATS, DType

I64_MAX = (1 << 63) - 1


def sizes_of(context: OpContext, x: int, *ranks: int) -> tuple[Dim, ...]:
    """The shape of ``x``; OpTypeError unless its rank is one of ``ranks``."""
    if context.rank_of(x) not in ranks:
        raise OpTypeError(f"an operand of rank {' or '.join(map(str, ranks))}", context.type_of(x))
    return context.shape_of(x)


def sizes_from(context: OpContext, x: int, rank_min: int) -> tuple[Dim, ...]:
    """The shape of ``x``; OpTypeError when its rank is below ``rank_min``."""
    if context.rank_of(x) < rank_min:
        raise OpTypeError(f"an operand of rank >= {rank_min}", context.type_of(x))
    return context.shape_of(x)


def read_size(context: OpContext, x: int) -> Dim:
    """The one element of an integer tensor; OpTypeError when it has none or several."""
    sizes = context.read_dims(x)
    if len(sizes) != 1:
        raise OpTypeError("one integer", context.type_of(x))
    return sizes[0]


def cast(context: OpContext, x: int, dtype: DType) -> int:
    """``x`` in another element type; ``x`` itself when it has it."""
    return x if context.dtype_of(x) == dtype else context.add("cast", x, dtype=dtype)


def reshape(context: OpContext, x: int, shape: Sequence[Dim]) -> int:
    """``x`` in another shape of the same size; ``x`` itself when it has it."""
    return (
        x if context.shape_of(x) == tuple(shape) else context.add("reshape", x, shape=tuple(shape))
    )


def broadcast_to(context: OpContext, x: int, shape: Sequence[Dim]) -> int:
    """``x`` repeated to ``shape``; ``x`` itself when it has it."""
    return (
        x
        if context.shape_of(x) == tuple(shape)
        else context.add("broadcast_to", x, shape=tuple(shape))
    )


def transpose(context: OpContext, x: int, permutation: Sequence[int]) -> int:
    """``x`` with axes in another order; ``x`` itself for the same order."""
    order = tuple(permutation)
    return (
        x if order == tuple(range(len(order))) else context.add("transpose", x, permutation=order)
    )


def unsqueeze(context: OpContext, x: int, axes: Sequence[int]) -> int:
    """``x`` with axes of size 1 at positions ``axes`` (ascending) of the result."""
    shape = list(context.shape_of(x))
    for axis in axes:
        shape.insert(axis, 1)
    return reshape(context, x, shape)


def concat(context: OpContext, values: Sequence[int], axis: int) -> int:
    """Values one after the other; the value itself when there is one."""
    return values[0] if len(values) == 1 else context.add("concat", *values, axis=axis)


def slice_axis(context: OpContext, x: int, axis: int, start: Dim, size: Dim, step: int = 1) -> int:
    """``size`` elements of ``x`` along one axis, from ``start``."""
    shape = context.shape_of(x)
    if (start, size, step) == (0, shape[axis], 1):
        return x
    starts: list[Dim] = [0] * len(shape)
    sizes: list[Dim] = list(shape)
    steps = [1] * len(shape)
    starts[axis], sizes[axis], steps[axis] = start, size, step
    return context.add("slice", x, starts=tuple(starts), sizes=tuple(sizes), steps=tuple(steps))


def require_dim(context: OpContext, difference: Dim, expected: Text, got: Dim) -> None:
    """Refuse the node unless a size expression is 0: now if its value is known, else at run
    time."""
    if isinstance(difference, int) and difference:
        raise OpTypeError(expected, got)
    if difference != 0:
        what = message("expected ", expected, ", got ", got)
        context.add("require_dim", difference=difference, what=text_attribute(what))


def element(context: OpContext, vector: int, index: int) -> int:
    """Element ``index`` of a vector, as rank 0."""
    if context.rank_of(vector) != 1:
        raise OpTypeError("a vector", context.type_of(vector))
    return reshape(context, slice_axis(context, vector, 0, index, 1), ())


def as_vector(context: OpContext, x: int) -> int:
    """A tensor of rank 0 or 1 as a vector."""
    return reshape(context, x, (context.type_of(x).element_count,))


def broadcast_dim(left: Dim, right: Dim) -> Dim:
    """ONNX's two-sided broadcasting of one dimension: equal, or one of them is 1."""
    if right in (left, 1):
        return left
    if left == 1:
        return right
    if isinstance(left, int) and isinstance(right, int):
        raise OpTypeError("equal dimensions, or 1", message(left, " and ", right))
    if isinstance(left, int):
        return left if left > 1 or not left else right
    if isinstance(right, int):
        return right
    return dim_max(left, right)


def broadcast_shape(left: Sequence[Dim], right: Sequence[Dim]) -> tuple[Dim, ...]:
    """ONNX's two-sided broadcasting of shapes, aligned at the last dimension."""
    rank = max(len(left), len(right))
    ones: tuple[Dim, ...] = (1,) * rank
    pairs = zip((*ones[len(left) :], *left), (*ones[len(right) :], *right), strict=True)
    return tuple(broadcast_dim(a, b) for a, b in pairs)


def product(dims: Sequence[Dim]) -> Dim:
    """The product of dimensions; 1 for none."""
    total: Dim = 1
    for dim in dims:
        total = dim_mul(total, dim)
    return total


def binary_scalar(context: OpContext, op: OpName, x: int, value: float) -> int:
    """``op(x, value)`` with a rank-0 literal of x's element type."""
    return context.add(op, x, context.scalar(context.dtype_of(x), value))


def full(context: OpContext, dtype: DType, value: float, shape: Sequence[Dim]) -> int:
    """A tensor of one value."""
    return broadcast_to(context, context.scalar(dtype, value), shape)


def scaled(context: OpContext, x: int, factor: float) -> int:
    """Multiply x by a number; integers are multiplied as floats when the factor is not one."""
    if factor == 1.0:
        return x
    dtype = context.dtype_of(x)
    return cast(context, binary_scalar(context, "mul", as_float(context, x), factor), dtype)


def less_scalar(context: OpContext, x: int, value: float) -> int:
    """Whether x < value."""
    return binary_scalar(context, "less", x, value)


def in_dtype(context: OpContext, values: Sequence[int], dtype: DType) -> list[int]:
    """All values in one element type."""
    return [cast(context, value, dtype) for value in values]


def widest(dtypes: Sequence[DType]) -> DType:
    """The element type that a computation over mixed floats uses: the only one, else f64 when
    present, else f32."""
    if len(set(dtypes)) == 1:
        return dtypes[0]
    return "f64" if "f64" in dtypes else "f32"


def as_float(context: OpContext, x: int) -> int:
    """``x`` as a float: integers through f64 for 32 bits and above, f32 below."""
    dtype = context.dtype_of(x)
    if dtype in FLOATS:
        return x
    return cast(context, x, "f64" if dtype[1:] in ("32", "64") else "f32")


def range_mask(context: OpContext, sizes: Sequence[Dim], axis: int) -> int:
    """0, 1, .. along ``axis`` of a tensor of ``len(sizes)`` dimensions, size 1 elsewhere; i64."""
    iota = context.add("iota", dtype="i64", length=sizes[axis])
    shape: list[Dim] = [1] * len(sizes)
    shape[axis] = sizes[axis]
    return reshape(context, iota, shape)
