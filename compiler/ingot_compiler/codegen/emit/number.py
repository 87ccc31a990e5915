"""Formulas over lanes, written with operators.

In: a writer and operands of one shape (scalar or any number of lanes). Out: ``Number`` expressions
that write one instruction per operator. Not done here: any function.

Comparisons are ordered (False for NaN) and signed. Operators take Python numbers as constants of
the same type. Nothing is contracted: ``fma`` is asked for by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.codegen.emit.operands import Operands
from ingot_compiler.codegen.llvm_value import LlvmValue, constant, element_bits
from ingot_compiler.codegen.writer import Writer

_FLOAT_OF_BITS = {32: "float", 64: "double"}


class Number:
    """An operand that knows where to write."""

    __slots__ = ("operand", "writer")

    def __init__(self, writer: Writer, operand: LlvmValue) -> None:
        self.writer = writer
        self.operand = operand

    def constant(self, value: float) -> Number:
        """A constant of this type."""
        return Number(self.writer, constant(value, self.operand.element, self.operand.lanes))

    def _other(self, value: Number | float) -> LlvmValue:
        return value.operand if isinstance(value, Number) else self.constant(value).operand

    def _binary(self, opcode: str, other: Number | float) -> Number:
        return Number(self.writer, self.writer.binary(opcode, self.operand, self._other(other)))

    def _arithmetic(self, name: str, other: Number | float) -> Number:
        return self._binary(f"f{name}" if self.operand.is_float else name, other)

    def _ordered(self, name: str, other: Number | float) -> Number:
        return self.compare(f"{'o' if self.operand.is_float else 's'}{name}", other)

    def _convert(self, opcode: str, element: str) -> Number:
        return Number(self.writer, self.writer.convert(opcode, self.operand, element))

    def __add__(self, other: Number | float) -> Number:
        return self._arithmetic("add", other)

    __radd__ = __add__

    def __sub__(self, other: Number | float) -> Number:
        return self._arithmetic("sub", other)

    def __rsub__(self, other: float) -> Number:
        return self.constant(other) - self

    def __mul__(self, other: Number | float) -> Number:
        return self._arithmetic("mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Number | float) -> Number:
        return self._binary("fdiv", other)

    def __rtruediv__(self, other: float) -> Number:
        return self.constant(other) / self

    def __neg__(self) -> Number:
        if not self.operand.is_float:
            return self.constant(0) - self
        element, lanes = self.operand.element, self.operand.lanes
        return Number(self.writer, self.writer.define("fneg", (self.operand,), element, lanes))

    def __and__(self, other: Number | int) -> Number:
        return self._binary("and", other)

    def __or__(self, other: Number | int) -> Number:
        return self._binary("or", other)

    def __xor__(self, other: Number | int) -> Number:
        return self._binary("xor", other)

    def __invert__(self) -> Number:
        return self ^ (1 if self.operand.element == "i1" else -1)

    def __lshift__(self, other: Number | int) -> Number:
        return self._binary("shl", other)

    def __rshift__(self, other: Number | int) -> Number:
        """Shift right, filling with the sign."""
        return self._binary("ashr", other)

    def shift_logical(self, other: Number | int) -> Number:
        """Shift right, filling with zeros."""
        return self._binary("lshr", other)

    def compare(self, predicate: str, other: Number | float) -> Number:
        """``icmp`` or ``fcmp`` by name."""
        return Number(self.writer, self.writer.compare(predicate, self.operand, self._other(other)))

    def __lt__(self, other: Number | float) -> Number:
        return self._ordered("lt", other)

    def __le__(self, other: Number | float) -> Number:
        return self._ordered("le", other)

    def __gt__(self, other: Number | float) -> Number:
        return self._ordered("gt", other)

    def __ge__(self, other: Number | float) -> Number:
        return self._ordered("ge", other)

    def equals(self, other: Number | float) -> Number:
        """Equality; False for NaN."""
        return self.compare("oeq" if self.operand.is_float else "eq", other)

    def is_nan(self) -> Number:
        """Whether the value is not a number."""
        return self.compare("uno", self)

    def fma(self, factor: Number | float, addend: Number | float) -> Number:
        """``self * factor + addend``, rounded once where the target can."""
        operands = (self.operand, self._other(factor), self._other(addend))
        return Number(self.writer, self.writer.fma(*operands))

    def polynomial(self, coefficients: Sequence[float]) -> Number:
        """Horner's rule in this variable, the highest power's coefficient first."""
        total = self.constant(coefficients[0])
        for coefficient in coefficients[1:]:
            total = total.fma(self, coefficient)
        return total

    def intrinsic(self, name: str, *others: Number | float) -> Number:
        """``llvm.NAME`` on this type; only ones that become instructions."""
        operands = (self.operand, *(self._other(other) for other in others))
        return Number(self.writer, self.writer.intrinsic(name, *operands))

    def abs(self) -> Number:
        """Magnitude of a float."""
        return self.intrinsic("fabs")

    def with_sign_of(self, other: Number) -> Number:
        """This magnitude with the sign bit of ``other``."""
        return self.intrinsic("copysign", other)

    def bits(self) -> Number:
        """A float's bits as an integer."""
        return self._convert("bitcast", f"i{element_bits(self.operand.element)}")

    def as_float(self) -> Number:
        """Bits back as the float of the same width."""
        return self._convert("bitcast", _FLOAT_OF_BITS[element_bits(self.operand.element)])

    def to(self, element: str) -> Number:
        """Between float and double, or between integer widths (signed)."""
        wider = element_bits(element) > element_bits(self.operand.element)
        if self.operand.is_float:
            return self._convert("fpext" if wider else "fptrunc", element)
        return self._convert("sext" if wider else "trunc", element)

    def choose(self, then: Number | float, otherwise: Number) -> Number:
        """``self ? then : otherwise`` for an i1."""
        left = then.operand if isinstance(then, Number) else otherwise.constant(then).operand
        return Number(self.writer, self.writer.select(self.operand, left, otherwise.operand))

    def any_lane(self) -> LlvmValue:
        """Whether an i1 holds anywhere, a scalar."""
        return self.writer.any_lane(self.operand)

    @property
    def is_double(self) -> bool:
        """Whether the elements are f64."""
        return self.operand.element == "double"


Numbers = tuple[Number, ...]


def clamp(x: Number, least: float, greatest: float) -> Number:
    """Limit to a range; NaN stays NaN."""
    upper = (x > greatest).choose(greatest, x)
    return (upper < least).choose(least, upper)


def while_any(
    start: Numbers, condition: Callable[[Numbers], Number], body: Callable[[Numbers], Numbers]
) -> Numbers:
    """``while any lane of condition(numbers): numbers = body(numbers)``, from ``start`` on."""
    w = start[0].writer

    def numbers(operands: Operands) -> Numbers:
        return tuple(Number(w, operand) for operand in operands)

    results = w.loop_while(
        [number.operand for number in start],
        lambda operands: condition(numbers(operands)).any_lane(),
        lambda operands: [number.operand for number in body(numbers(operands))],
    )
    return numbers(results)
