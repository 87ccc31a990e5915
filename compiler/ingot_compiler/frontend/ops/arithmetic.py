"""ONNX's elementwise ops of numbers that are one core op, or a few.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import binary_scalar, cast, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.direct import chained, direct
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.types import FLOATS, UNSIGNED, DType, dtype_size_bytes


def _bit_shift(context: OpContext) -> Sequence[int]:
    """Bits moved left or right.

    In: two integer tensors. Out: core ``shift_left`` or ``shift_right``.
    """
    direction = context.string_attribute("direction", "", ("LEFT", "RIGHT"))
    op: OpName = "shift_left" if direction == "LEFT" else "shift_right"
    return (context.add(op, context.operand(0), context.operand(1)),)


_LIMITS: tuple[tuple[str, OpName], ...] = (("min", "max"), ("max", "min"))


def _clip(context: OpContext) -> Sequence[int]:
    """``x`` limited to [min, max]; the limits are attributes before opset 11, then operands.

    In: a tensor, perhaps limits. Out: core ``max``, ``min`` (where min > max, max wins).
    """
    x = context.operand(0)
    for position, (name, op) in enumerate(_LIMITS, 1):
        limit = context.optional(position)
        if context.opset < 11 and name in context.attributes:
            limit = context.scalar(context.dtype_of(x), context.float_attribute(name, 0.0))
        if limit is not None:
            if context.type_of(limit).element_count == 1:
                limit = reshape(context, limit, ())
            x = context.add(op, x, limit)
    return (x,)


def _mean(context: OpContext) -> Sequence[int]:
    """The mean of all operands, elementwise with broadcasting.

    In: one or more float tensors. Out: core ``add``, ``div``.
    """
    values = context.given()
    total = chained("add")(context)[0]
    return (total if len(values) == 1 else binary_scalar(context, "div", total, len(values)),)


def _mod(context: OpContext) -> Sequence[int]:
    """Remainder with the sign of the divisor, or of the dividend with ``fmod``.

    In: two tensors of numbers. Out: core ``mod`` or ``fmod``.
    """
    op: OpName = "fmod" if context.int_attribute("fmod", 0) else "mod"
    return (context.add(op, context.operand(0), context.operand(1)),)


_EXACT_MAX: dict[DType, int] = {"f16": 1 << 11, "bf16": 1 << 8, "f32": 1 << 24, "f64": 1 << 53}


def _pow(context: OpContext) -> Sequence[int]:
    """``x^y`` elementwise, in the element type of x.

    In: x and y, perhaps of different types. Out: core ``pow``, ``cast``.

    The power is computed in a type that holds both, as ``onnx.reference`` does, and rounded to that
    of x: an exponent keeps its last bit, which decides the sign. A negative integer exponent of an
    integer, which numpy refuses and ONNX leaves open, gives the truncated reciprocal.
    """
    x, y = context.operand(0), context.operand(1)
    dtype = context.dtype_of(x)
    wide = _wide(context, dtype, y)
    return (
        cast(context, context.add("pow", cast(context, x, wide), cast(context, y, wide)), dtype),
    )


def _wide(context: OpContext, dtype: DType, y: int) -> DType:
    """The type to compute in: that of x where it holds every exponent there is."""
    exponent = context.dtype_of(y)
    if exponent == dtype or (dtype in FLOATS and _is_held(context, dtype, y)):
        return dtype
    if dtype not in FLOATS and exponent not in FLOATS:
        # Modulo 2^64, powers of the low bits have the same low bits.
        return "u64" if exponent in UNSIGNED else "i64"
    return "f32" if _fits_f32(dtype) and _fits_f32(exponent) else "f64"


def _is_held(context: OpContext, dtype: DType, y: int) -> bool:
    """Whether all exponents are known, and halves of whole numbers that a float type holds."""
    known_values = context.known_values(y)
    return known_values is not None and all(
        isinstance(item, (int, float))
        and abs(item) <= _EXACT_MAX[dtype] / 2
        and (2 * item) % 1 == 0
        for item in known_values.flat
    )


def _fits_f32(dtype: DType) -> bool:
    return dtype in ("f32", "f16", "bf16") or dtype_size_bytes(dtype) <= 2


OPS = (
    OnnxOp("Abs", direct("abs")),
    OnnxOp("Add", direct("add")),
    OnnxOp("BitShift", _bit_shift),
    OnnxOp("Ceil", direct("ceil")),
    OnnxOp("Clip", _clip),
    # a / b; integers truncate towards 0, elementwise with broadcasting.
    OnnxOp("Div", direct("div")),
    OnnxOp("Floor", direct("floor")),
    # The greatest of all operands, elementwise with broadcasting; NaN propagates.
    OnnxOp("Max", chained("max")),
    OnnxOp("Mean", _mean),
    # The least of all operands, elementwise with broadcasting; NaN propagates.
    OnnxOp("Min", chained("min")),
    OnnxOp("Mod", _mod),
    OnnxOp("Mul", direct("mul")),
    OnnxOp("Neg", direct("neg")),
    OnnxOp("Pow", _pow),
    OnnxOp("Reciprocal", direct("reciprocal")),
    OnnxOp("Round", direct("round")),
    OnnxOp("Sign", direct("sign")),
    OnnxOp("Sqrt", direct("sqrt")),
    OnnxOp("Sub", direct("sub")),
    # The sum of all operands, elementwise with broadcasting; NaN propagates.
    OnnxOp("Sum", chained("add")),
)
