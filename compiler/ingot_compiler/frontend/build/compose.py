"""Constructions that several translations share, as functions over a context.

In: a context and value ids. Out: value ids. Not done here: sizes of windows (``windows``),
reductions (``reductions``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.types import FLOATS, DType

I64_MAX = (1 << 63) - 1


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


def swap_last(context: OpContext, x: int, axis: int) -> int:
    """``x`` with ``axis`` and the last one swapped; twice it is ``x`` again."""
    order = list(range(context.rank_of(x)))
    order[axis], order[-1] = order[-1], order[axis]
    return transpose(context, x, order)


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


def element(context: OpContext, vector: int, index: int) -> int:
    """Element ``index`` of a vector, as rank 0."""
    if context.rank_of(vector) != 1:
        raise OpTypeError("a vector", context.type_of(vector))
    return reshape(context, slice_axis(context, vector, 0, index, 1), ())


def as_vector(context: OpContext, x: int) -> int:
    """A tensor of rank 0 or 1 as a vector."""
    return reshape(context, x, (context.type_of(x).element_count,))


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


def clamp(context: OpContext, x: int, low: int, high: int) -> int:
    """Limit x to [low, high]."""
    return context.add("min", context.add("max", x, low), high)


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
    shape: list[Dim] = [1] * len(sizes)
    shape[axis] = sizes[axis]
    return reshape(context, iota(context, sizes[axis]), shape)


def iota(context: OpContext, length: Dim) -> int:
    """i64[length]: 0, 1, .."""
    return context.add("iota", dtype="i64", length=length)


def size_scalar(context: OpContext, size: Dim, dtype: DType = "i64") -> int:
    """A size as a number of rank 0."""
    return cast(context, reshape(context, context.integers([size]), ()), dtype)


def reduce(
    context: OpContext, x: int, function: str, axes: Sequence[int], *, keepdims: bool = False
) -> int:
    """Core ``reduce`` of ``x`` along ``axes``: its sum, mean, min, max or product."""
    return context.add("reduce", x, function=function, axes=tuple(axes), keepdims=keepdims)


def wide_float(dtype: DType) -> DType:
    """The element type that formulas over tensors of ``dtype`` are computed in: f32, f64 for
    itself."""
    return "f64" if dtype == "f64" else "f32"
