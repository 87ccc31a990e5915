"""Operands of kernel instructions: SSA names and constants, with their types.

In: names, numbers, element types. Out: ``LlvmValue``, and how LLVM IR spells it. Not done here:
instructions (``kernel_ir``).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from ingot_runtime.lazy_dataclass import dataclass

SIZES_BYTES = {
    "i1": 1,
    "i8": 1,
    "i16": 2,
    "i32": 4,
    "i64": 8,
    "half": 2,
    "float": 4,
    "double": 8,
    "ptr": 8,
}
_SUFFIXES = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}
FLOAT_ELEMENTS = ("half", "float", "double")


@dataclass(frozen=True, slots=True)
class LlvmValue:
    """A value of LLVM type ``element`` (``lanes`` 0) or ``<lanes x element>``.

    ``name`` is that of an instruction's result, an argument or an array, with its ``%`` or ``@``.
    Without one it is a constant: ``numbers`` are those of its lanes, one where all are the same,
    and none where no lane has any (poison). A float is given by ``float_bits``.
    """

    name: str
    element: str
    lanes: int = 0
    numbers: tuple[int, ...] = ()

    @property
    def type(self) -> str:
        """The LLVM type."""
        return vector_type(self.element, self.lanes)

    @property
    def text(self) -> str:
        """The value as LLVM IR writes it, without its type."""
        return self.name or _constant_text(self)

    @property
    def typed(self) -> str:
        """Type and text, as instructions want it."""
        kind = f"<{self.lanes} x {self.element}>" if self.lanes else self.element
        return f"{kind} {self.name or _constant_text(self)}"

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating point."""
        return self.element in FLOAT_ELEMENTS

    @property
    def lane_numbers(self) -> tuple[int, ...]:
        """The number of each lane of a vector constant."""
        return self.numbers * (self.lanes // len(self.numbers))

    @property
    def integer(self) -> int | None:
        """The value of a scalar integer constant, else None."""
        if self.lanes or not self.numbers or self.element == "i1" or self.is_float:
            return None
        return self.numbers[0]


def vector_type(element: str, lanes: int) -> str:
    """The LLVM type of ``lanes`` elements; 0 is a scalar."""
    return f"<{lanes} x {element}>" if lanes else element


def element_bits(element: str) -> int:
    """Width in registers; i1 is 1."""
    return 1 if element == "i1" else 8 * SIZES_BYTES[element]


def float_bits(value: float, element: str) -> int:
    """The bits of the double that has a float's value, rounded to the element type first."""
    code = {"half": "e", "float": "f", "double": "d"}[element]
    if math.isfinite(value):
        try:
            value = float(struct.unpack(f"<{code}", struct.pack(f"<{code}", value))[0])
        except OverflowError:
            value = float("inf") if value > 0 else float("-inf")
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def constant(value: float, element: str, lanes: int = 0) -> LlvmValue:
    """A constant, the same in all lanes."""
    return LlvmValue("", element, lanes, (number_of(value, element),))


def constants(values: Sequence[float], element: str) -> LlvmValue:
    """A vector constant with the given numbers."""
    return LlvmValue("", element, len(values), tuple(number_of(each, element) for each in values))


def poison(element: str, lanes: int) -> LlvmValue:
    """A vector whose lanes are never read."""
    return LlvmValue("", element, lanes)


def number_of(value: float, element: str) -> int:
    """A number as ``LlvmValue.numbers`` has it."""
    if element in FLOAT_ELEMENTS:
        return float_bits(value, element)
    return int(value != 0) if element == "i1" else int(value)


def number_text(number: int, element: str) -> str:
    """A number of a constant as LLVM IR writes it."""
    if element == "i1":
        return "true" if number else "false"
    return f"0x{number:016X}" if element in FLOAT_ELEMENTS else str(number)


def _constant_text(value: LlvmValue) -> str:
    texts = [number_text(number, value.element) for number in value.numbers]
    if not texts:
        return "poison"
    if not value.lanes:
        return texts[0]
    typed = ", ".join([f"{value.element} {text}" for text in texts])
    return f"<{typed}>" if len(texts) > 1 else f"splat ({typed})"


def suffix(operand: LlvmValue) -> str:
    """The operand's type in an overloaded intrinsic's name: ``v16f32``."""
    element = _SUFFIXES.get(operand.element, operand.element)
    return f"v{operand.lanes}{element}" if operand.lanes else element
