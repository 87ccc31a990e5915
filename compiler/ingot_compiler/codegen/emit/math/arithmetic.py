"""The four operations, remainders, extrema, rounding: what needs no series.

In: operands of one dtype. Out: operands. Not done here: casts, integer powers.

Integer division truncates (ONNX Div); by 0 it gives 0, and the least integer by -1 gives itself.
``mod`` takes the sign of the divisor, ``fmod`` that of the dividend (C). max and min propagate NaN.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.number import Number, Numbers, while_any
from ingot_compiler.codegen.emit.operands import Operands
from ingot_compiler.codegen.llvm_value import LlvmValue, element_bits
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.types import FLOATS, UNSIGNED, DType

# Integers up to this width are exact in f64, whose division vectorises and never traps.
_F64_DIVIDES_BITS = 32
_INFINITY = float("inf")


def divide(w: Writer, dtype: DType, operands: Operands) -> LlvmValue:
    """Quotient; integers truncate."""
    if dtype in FLOATS:
        return w.binary("fdiv", *operands)
    left, right = (Number(w, operand) for operand in operands)
    zero = right.equals(0)
    return zero.choose(0, _quotient(dtype, left, zero.choose(1, right))).operand


def _quotient(dtype: DType, left: Number, divisor: Number) -> Number:
    """Truncated quotient for a divisor that is not 0."""
    w, element = left.writer, left.operand.element
    unsigned = dtype in UNSIGNED
    if element_bits(element) <= _F64_DIVIDES_BITS:
        to_double, to_integer = ("uitofp", "fptoui") if unsigned else ("sitofp", "fptosi")
        real = [w.convert(to_double, number.operand, "double") for number in (left, divisor)]
        whole = w.convert(to_integer, w.binary("fdiv", *real), "i64")
        return Number(w, w.convert("trunc", whole, element))
    if unsigned:
        return Number(w, w.binary("udiv", left.operand, divisor.operand))
    minus_one = divisor.equals(-1)
    safe = minus_one.choose(1, divisor)
    return minus_one.choose(-left, Number(w, w.binary("sdiv", left.operand, safe.operand)))


def c_remainder(w: Writer, dtype: DType, operands: Operands) -> LlvmValue:
    """``fmod``: the remainder of truncated division; integers by 0 give 0."""
    left, right = (Number(w, operand) for operand in operands)
    if dtype in FLOATS:
        return _float_remainder(left, right).operand
    zero = right.equals(0)
    divisor = zero.choose(1, right)
    return zero.choose(0, left - _quotient(dtype, left, divisor) * divisor).operand


def modulo(w: Writer, dtype: DType, operands: Operands) -> LlvmValue:
    """``mod``: the remainder with the sign of the divisor; integers by 0 give 0."""
    rest = Number(w, c_remainder(w, dtype, operands))
    if dtype in UNSIGNED:
        return rest.operand
    right = Number(w, operands[1])
    if dtype in FLOATS:
        differs = (rest < 0) ^ (right < 0)
        moved = (differs & rest.compare("une", 0)).choose(rest + right, rest)
        return moved.equals(0).choose(right.constant(0).with_sign_of(right), moved).operand
    differs = (rest ^ right) < 0
    return (differs & rest.compare("ne", 0)).choose(rest + right, rest).operand


def _float_remainder(left: Number, right: Number) -> Number:
    """Exact long division in binary; NaN for an infinite dividend and for a divisor of 0."""
    size, divisor = left.abs(), right.abs()
    good = (divisor > 0) & (size < _INFINITY) & (divisor < _INFINITY)
    # Lanes with a special result take no part in the loops.
    rest, least = good.choose(size, size.constant(0)), good.choose(divisor, size.constant(1))
    found = _long_division(rest, least)
    too_large = divisor.equals(_INFINITY) & (size < _INFINITY)
    special = too_large.choose(size, size.constant(float("nan")))
    return good.choose(found, special).with_sign_of(left)


def _long_division(rest: Number, least: Number) -> Number:
    """What subtracting ``least`` leaves: double it up to ``rest``, then subtract on the way
    back."""

    def double(scaled: Number) -> Number:
        return (scaled * 2 <= rest).choose(scaled * 2, scaled)

    def subtract(over: Number, scaled: Number) -> Numbers:
        fits = (over >= scaled) & (scaled >= least)
        return fits.choose(over - scaled, over), scaled * 0.5

    (most,) = while_any((least,), lambda old: old[0] * 2 <= rest, lambda old: (double(old[0]),))
    found, _ = while_any((rest, most), lambda old: old[1] >= least, lambda old: subtract(*old))
    return found


def maximum(w: Writer, dtype: DType, operands: Operands) -> LlvmValue:
    """The greater; NaN if either is."""
    return _extreme(w, dtype, operands, "ogt", "max")


def minimum(w: Writer, dtype: DType, operands: Operands) -> LlvmValue:
    """The smaller; NaN if either is."""
    return _extreme(w, dtype, operands, "olt", "min")


def _extreme(w: Writer, dtype: DType, operands: Operands, predicate: str, name: str) -> LlvmValue:
    if dtype == "bool":
        return w.binary("or" if name == "max" else "and", *operands)
    if dtype not in FLOATS:
        return w.intrinsic(("u" if dtype in UNSIGNED else "s") + name, *operands)
    left, right = operands
    # The first select is one instruction on x86-64; it keeps a NaN on the left, the second one on
    # the right.
    chosen = w.select(w.compare(predicate, right, left), right, left)
    return w.select(w.compare("uno", right, right), right, chosen)


def negate(w: Writer, _: DType, operands: Operands) -> LlvmValue:
    """-x."""
    return (-Number(w, operands[0])).operand


def absolute(w: Writer, dtype: DType, operands: Operands) -> LlvmValue:
    """|x|; the least integer stays."""
    x = Number(w, operands[0])
    if dtype in FLOATS:
        return x.abs().operand
    return x.operand if dtype in UNSIGNED or dtype == "bool" else (x < 0).choose(-x, x).operand


def sign(w: Writer, dtype: DType, operands: Operands) -> LlvmValue:
    """-1, 0 or 1; NaN for NaN."""
    x = Number(w, operands[0])
    if dtype in FLOATS:
        one = x.constant(1).with_sign_of(x)
        return x.compare("one", 0).choose(one, x).operand
    positive = x.compare("ne", 0).choose(1, x.constant(0))
    return positive.operand if dtype in UNSIGNED else (x < 0).choose(-1, positive).operand


def reciprocal(w: Writer, dtype: DType, operands: Operands) -> LlvmValue:
    """1 / x."""
    one = Number(w, operands[0]).constant(1).operand
    return divide(w, dtype, (one, operands[0]))


def relu(w: Writer, dtype: DType, operands: Operands) -> LlvmValue:
    """max(x, 0); NaN for NaN."""
    x = Number(w, operands[0])
    if dtype in UNSIGNED or dtype == "bool":
        return x.operand
    return (x < 0).choose(0, x).operand
