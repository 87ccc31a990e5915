"""Emits ``quantize``: a quotient, rounded to the nearest integer, moved by a zero point and limited.

In: the context, the five arguments, the type of the result. Out: a register of it. Not done here:
rounding to an integer (``convert``), loads before a loop (``blocks.epilogue``).

The limits less the zero point are applied before the rounding, which is then one instruction with
the conversion. Where the scale is known before the loop, two products and two fused sums are the
quotient; a division of 16 lanes takes 16 cycles on server processors: with r = 1 / s rounded,
q = x * r rounded and e = x - s * q, the rounded q + e * r is x / s rounded, as long as nothing
overflows or loses bits below the least normal number. That is why s and x are multiplied first by a
power of two that takes s near 1, and x is limited before it is divided: a limit times s, rounded,
and divided by s, rounded, is the limit again. Source: P. Markstein, "Computation of elementary
functions on the IBM RISC System/6000 processor", 1990.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.codegen.emit.context import EmitContext, Typed
from ingot_compiler.codegen.emit.convert import MEMORY, emit_cast, nearest_integer
from ingot_compiler.codegen.emit.math import FUNCTIONS
from ingot_compiler.codegen.emit.operands import Operands
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.types import DType

_MANTISSA_BITS = 23
_SIGN, _MAGNITUDE = -(1 << 31), (1 << 31) - 1
_INFINITY = 0xFF << _MANTISSA_BITS
_BIASES = 2 * 127  # of an exponent and of the opposite one
# What stands for a scale of 0 and for an infinite one, times the power: over the first, the least x
# above 0 is beyond all limits, over the second the greatest one rounds to 0.
_FOR_ZERO, _FOR_INFINITY = 2.0**-40, 16.0


def emit_quantize(context: EmitContext, arguments: Sequence[Typed], dtype: DType) -> LlvmValue:
    """``cast(min(max(round(x / scale) + zero, low), high))``; any integer for NaN."""
    w = context.writer
    x, scale, zero, *limits = arguments
    offset, divisor = (_before_loop(context, each.operand) for each in (zero, scale))
    if offset is None:
        return _step_by_step(w, arguments, dtype)
    lanes = max(x.operand.lanes, scale.operand.lanes)
    value = w.splat(x.operand, lanes)

    def write_limits() -> Operands:
        moved = emit_cast(w, offset, zero.dtype, "f32")
        low, high = (w.binary("fsub", limit.operand, moved) for limit in limits)
        return low, high, emit_cast(w, offset, zero.dtype, "i32")

    operands = offset, *(limit.operand for limit in limits)
    low, high, back = _once(context, ("limits", *operands), write_limits)
    if divisor is not None and scale.number != 1 and lanes and w.target.has_fma:
        key = "factors", divisor, low, high, lanes
        near = _divided(w, value, _once(context, key, lambda: _factors(w, key[1:4], lanes)))
    else:
        if scale.number != 1:
            value = w.binary("fdiv", value, w.splat(scale.operand, lanes))
        near = _limited(w, value, low, high)
    whole = nearest_integer(w, near)
    if zero.number != 0:
        whole = w.binary("add", whole, w.splat(back, lanes))
    return w.convert("trunc", whole, MEMORY[dtype])


def _step_by_step(w: Writer, arguments: Sequence[Typed], dtype: DType) -> LlvmValue:
    """What the function means, where a zero point is not known before the loop."""
    x, scale, zero, low, high = (
        emit_cast(w, each.operand, each.dtype, "f32") for each in arguments
    )
    lanes = max(operand.lanes for operand in (x, scale, zero))

    def apply(function: str, *operands: LlvmValue) -> LlvmValue:
        wide = tuple(w.splat(operand, lanes) for operand in operands)
        return FUNCTIONS[function](w, "f32", wide)

    quotient = x if arguments[1].number == 1 else apply("div", x, scale)
    moved = apply("add", apply("round", quotient), zero)
    return emit_cast(w, apply("min", apply("max", moved, low), high), "f32", dtype)


def _before_loop(context: EmitContext, operand: LlvmValue) -> LlvmValue | None:
    """The scalar that an operand is, if it is known before the loop."""
    is_constant = not operand.name and not operand.lanes
    return operand if is_constant else context.loaded.scalars.get(operand)


def _once(context: EmitContext, key: object, write: Callable[[], Operands]) -> Operands:
    """What ``write`` writes, which ``key`` says, in front of the loop."""
    scope = context.loaded.scope
    if key not in scope.several:
        with context.writer.at(scope.lines):
            scope.several[key] = write()
    return scope.several[key]


def _limited(w: Writer, x: LlvmValue, low: LlvmValue, high: LlvmValue) -> LlvmValue:
    """One instruction for each limit on x86-64; NaN for NaN."""
    low, high = (w.splat(limit, x.lanes) for limit in (low, high))
    above = w.select(w.compare("ogt", low, x), low, x)
    return w.select(w.compare("olt", high, above), high, above)


def _factors(w: Writer, numbers: Operands, lanes: int) -> Operands:
    """What ``_divided`` needs of a scale and two limits, in all lanes: the power of two, minus the
    scale times it, the inverse of that product, and the limits of a number times the power."""
    scale, *limits = numbers
    power = _power(w, scale)
    divisor = _near_one(w, scale, power)
    inverse = w.binary("fdiv", constant(1.0, "float"), divisor)
    left, right = (w.binary("fmul", limit, divisor) for limit in limits)
    is_positive = w.compare("olt", left, right)
    ends = w.select(is_positive, left, right), w.select(is_positive, right, left)
    found = power, w.define("fneg", (divisor,), "float"), inverse, *ends
    return tuple(w.splat(number, lanes) for number in found)


def _power(w: Writer, scale: LlvmValue) -> LlvmValue:
    """A power of two, not below the least normal number; times the scale, it is below 4, and from 1
    on unless the scale is below the least normal number."""
    bits = w.binary("and", w.convert("bitcast", scale, "i32"), constant(_MAGNITUDE, "i32"))
    exponent = w.binary("lshr", bits, constant(_MANTISSA_BITS, "i32"))
    opposite = w.binary("sub", constant(_BIASES, "i32"), exponent)
    least = constant(1, "i32")
    opposite = w.select(w.compare("slt", opposite, least), least, opposite)
    shifted = w.binary("shl", opposite, constant(_MANTISSA_BITS, "i32"))
    return w.convert("bitcast", shifted, "float")


def _near_one(w: Writer, scale: LlvmValue, power: LlvmValue) -> LlvmValue:
    """The scale times the power; what stands for 0 and for infinity has its sign too."""
    bits = w.convert("bitcast", scale, "i32")
    magnitude = w.binary("and", bits, constant(_MAGNITUDE, "i32"))
    sign = w.binary("and", bits, constant(_SIGN, "i32"))
    product = w.binary("fmul", w.convert("bitcast", magnitude, "float"), power)
    for special, number in ((0, _FOR_ZERO), (_INFINITY, _FOR_INFINITY)):
        is_special = w.compare("eq", magnitude, constant(special, "i32"))
        product = w.select(is_special, constant(number, "float"), product)
    signed = w.binary("or", w.convert("bitcast", product, "i32"), sign)
    return w.convert("bitcast", signed, "float")


def _divided(w: Writer, x: LlvmValue, factors: Operands) -> LlvmValue:
    """The quotient between the limits, rounded as a division does."""
    power, opposite, inverse, low, high = factors
    x = _limited(w, w.binary("fmul", x, power), low, high)
    quotient = w.binary("fmul", x, inverse)
    return w.fma(w.fma(opposite, quotient, x), inverse, quotient)
