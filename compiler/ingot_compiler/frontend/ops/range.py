"""ONNX Range: start, start + delta, .. before limit.

In: three rank-0 tensors, known or computed at run time. Out: core ``iota``, ``mul``, ``add``. Not
done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar, cast, in_dtype, iota, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import not_zero
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_mul
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.sizes.ranges import maximum
from ingot_compiler.ir.types import FLOATS

_LENGTH_MAX = 1 << 60  # beyond every limit: refused as too large


def _translate(context: OpContext) -> Sequence[int]:
    start, limit, delta = (reshape(context, context.operand(position), ()) for position in range(3))
    dtype = context.dtype_of(start)
    if dtype in ("f16", "bf16") and context.int_attribute("stash_type", 1) == 1:
        start, limit, delta = (cast(context, value, "f32") for value in (start, limit, delta))
    length = _known_length(context, start, limit, delta)
    if length is None:
        delta = not_zero(context, delta, "delta")
        length = _read_length(context, start, limit, delta)
    if dtype == "f32":  # numbers above 2^24 count, too
        start, delta = cast(context, start, "f64"), cast(context, delta, "f64")
    numbers = cast(context, iota(context, length), context.dtype_of(start))
    steps = context.add("mul", numbers, delta)
    return (cast(context, context.add("add", steps, start), dtype),)


def _known_length(context: OpContext, start: int, limit: int, delta: int) -> Dim | None:
    """ceil((limit - start) / delta), at least 0, when all three are known and delta is a number."""
    bounds, steps = (context.dims(start), context.dims(limit)), context.known_ints(delta)
    if bounds[0] is None or bounds[1] is None or steps is None:
        return None
    step, span = steps[0], dim_add(bounds[1][0], dim_mul(bounds[0][0], -1))
    if step == 0:
        raise OpTypeError("a delta other than 0", "0")
    if step < 0:
        step, span = -step, dim_mul(span, -1)
    return maximum(dim_floordiv(dim_add(span, step - 1), step), 0)


def _read_length(context: OpContext, start: int, limit: int, delta: int) -> Dim:
    """The number of elements, computed at run time."""
    is_float = context.dtype_of(start) in FLOATS
    length = _float_length if is_float else _integer_length
    wide = in_dtype(context, (start, limit, delta), "f64" if is_float else "i64")
    return context.read_dims(cast(context, length(context, *wide), "i64"))[0]


def _integer_length(context: OpContext, start: int, limit: int, delta: int) -> int:
    up = context.add("less", context.scalar("i64", 0), delta)
    low, high = context.add("select", up, start, limit), context.add("select", up, limit, start)
    # The distance of two i64 fits u64, as the size of the least i64 does.
    span = binary_scalar(context, "sub", cast(context, context.add("sub", high, low), "u64"), 1)
    steps = context.add("div", span, cast(context, context.add("abs", delta), "u64"))
    count = binary_scalar(context, "add", steps, 1)
    some = context.add("select", context.add("less", low, high), count, context.scalar("u64", 0))
    return binary_scalar(context, "min", some, _LENGTH_MAX)


def _float_length(context: OpContext, start: int, limit: int, delta: int) -> int:
    """In f64, as ``onnx.reference``; NaN becomes a negative length, which is refused."""
    count = context.add("ceil", context.add("div", context.add("sub", limit, start), delta))
    return binary_scalar(
        context, "min", binary_scalar(context, "max", count, 0.0), float(_LENGTH_MAX)
    )


OPS = (OnnxOp("Range", _translate),)
