"""Comparisons, logic, bits.

In: operands of one dtype. Out: operands; comparisons and tests give i1. Not done here: arithmetic.

Comparisons with NaN are False. A shift by the width or more gives 0 (-1 for a negative shifted
right).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.math.emitter import Emitter, unary
from ingot_compiler.codegen.emit.number import Number
from ingot_compiler.codegen.emit.operands import Operands
from ingot_compiler.codegen.llvm_value import LlvmValue, element_bits
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.philox import philox
from ingot_compiler.ir.types import FLOATS, UNSIGNED, DType

_PREDICATES = {"less": "lt", "less_equal": "le"}
_INFINITY = float("inf")


def compare(name: str) -> Emitter:
    """``equal``, ``less`` or ``less_equal``."""

    def emit(w: Writer, dtype: DType, operands: Operands) -> LlvmValue:
        if name == "equal":
            return w.compare("oeq" if dtype in FLOATS else "eq", *operands)
        kind = "o" if dtype in FLOATS else "u" if dtype in UNSIGNED or dtype == "bool" else "s"
        return w.compare(kind + _PREDICATES[name], *operands)

    return emit


def invert(w: Writer, _: DType, operands: Operands) -> LlvmValue:
    """All bits flipped; not, for bools."""
    return (~Number(w, operands[0])).operand


def shift_left(w: Writer, _: DType, operands: Operands) -> LlvmValue:
    """``left << right``."""
    left, right = (Number(w, operand) for operand in operands)
    inside = _inside(right)
    return inside.choose(left << inside.choose(right, right.constant(0)), left.constant(0)).operand


def shift_right(w: Writer, dtype: DType, operands: Operands) -> LlvmValue:
    """``left >> right``, signed integers fill with the sign."""
    left, right = (Number(w, operand) for operand in operands)
    inside = _inside(right)
    if dtype in UNSIGNED:
        shifted = left.shift_logical(inside.choose(right, right.constant(0)))
        return inside.choose(shifted, left.constant(0)).operand
    largest = right.constant(element_bits(left.operand.element) - 1)
    return (left >> inside.choose(right, largest)).operand


def random_bits(w: Writer, _: DType, operands: Operands) -> LlvmValue:
    """The bits of a counter and a key."""
    counter, key = (Number(w, operand) for operand in operands)
    found: Number = philox(counter, key, lambda x, count: x.shift_logical(count))
    return found.operand


def _inside(amount: Number) -> Number:
    return amount.compare("ult", element_bits(amount.operand.element))


def is_nan(w: Writer, _: DType, operands: Operands) -> LlvmValue:
    """Whether x is not a number."""
    return w.compare("uno", operands[0], operands[0])


def is_infinite(*, positive: bool, negative: bool) -> Emitter:
    """Whether x is one of the wanted infinities."""

    def formula(x: Number) -> Number:
        if positive and negative:
            return x.abs().equals(_INFINITY)
        if positive or negative:
            return x.equals(_INFINITY if positive else -_INFINITY)
        # A comparison that never holds keeps the shape of the operand.
        return x.compare("one", x)

    return unary(formula)
