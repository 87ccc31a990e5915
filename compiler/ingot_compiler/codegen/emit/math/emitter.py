"""The entries of ``FUNCTIONS``, and how a formula becomes one.

In: formulas over ``Number``, LLVM opcodes. Out: emitters. Not done here: the formulas.
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.codegen.emit.number import Number
from ingot_compiler.codegen.emit.operands import Operands
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.types import FLOATS, DType

# The writer, the operands' dtype, the operands (one shape) -> the result.
Emitter = Callable[[Writer, DType, Operands], LlvmValue]
Formula = Callable[[Number], Number]


def unary(formula: Formula) -> Emitter:
    """An emitter from a formula."""
    return lambda w, _, operands: formula(Number(w, operands[0])).operand


def in_double(formula: Formula) -> Emitter:
    """An emitter from a formula for f64: f32 is widened and the result rounded, for rare
    functions."""
    return unary(lambda x: formula(x) if x.is_double else formula(x.to("double")).to("float"))


def by_width(single: Formula, double: Formula) -> Emitter:
    """An emitter from a formula for f32 and another one for f64."""
    return unary(lambda x: double(x) if x.is_double else single(x))


def instruction(opcode: str) -> Emitter:
    """An operation of two integers or bools that LLVM has."""
    return lambda w, _, operands: w.binary(opcode, *operands)


def binary(opcode: str) -> Emitter:
    """An operation that LLVM has: ``opcode`` for integers, ``f`` + ``opcode`` for floats."""
    return lambda w, dtype, operands: w.binary(
        f"f{opcode}" if dtype in FLOATS else opcode, *operands
    )


def intrinsic(name: str) -> Emitter:
    """A float intrinsic that becomes an instruction; integers pass (they are rounded already)."""
    return lambda w, dtype, operands: (
        w.intrinsic(name, operands[0]) if dtype in FLOATS else operands[0]
    )
