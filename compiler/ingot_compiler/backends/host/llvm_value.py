"""Values of LLVM IR as text: SSA names and constants, with their types.

In: names, numbers, element types. Out: ``LlvmValue``, texts of types and constants. Not done here:
instructions (``instructions``).
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
    """An SSA name or constant: ``text`` of LLVM type ``element`` (``lanes`` 0) or
    ``<lanes x element>``."""

    text: str
    element: str
    lanes: int = 0

    @property
    def type(self) -> str:
        """The LLVM type."""
        return vector_type(self.element, self.lanes)

    @property
    def typed(self) -> str:
        """Type and text, as instructions want it."""
        return f"{self.type} {self.text}"

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating point."""
        return self.element in FLOAT_ELEMENTS

    @property
    def is_constant(self) -> bool:
        """Whether the text is the value itself."""
        return not self.text.startswith("%")

    @property
    def integer(self) -> int | None:
        """The value of a scalar integer constant, else None."""
        return int(self.text) if not self.lanes and self.text.lstrip("-").isdigit() else None


def vector_type(element: str, lanes: int) -> str:
    """The LLVM type of ``lanes`` elements; 0 is a scalar."""
    return f"<{lanes} x {element}>" if lanes else element


def element_bits(element: str) -> int:
    """Width in registers; i1 is 1."""
    return 1 if element == "i1" else 8 * SIZES_BYTES[element]


def float_text(value: float, element: str) -> str:
    """Write a float constant exactly, rounded to the element type first."""
    code = {"half": "e", "float": "f", "double": "d"}[element]
    if math.isfinite(value):
        try:
            value = float(struct.unpack(f"<{code}", struct.pack(f"<{code}", value))[0])
        except OverflowError:
            value = float("inf") if value > 0 else float("-inf")
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def constant(value: float, element: str, lanes: int = 0) -> LlvmValue:
    """A constant, the same in all lanes."""
    if element == "i1":
        text = "true" if value else "false"
    else:
        text = float_text(value, element) if element in FLOAT_ELEMENTS else str(int(value))
    return LlvmValue(f"splat ({element} {text})" if lanes else text, element, lanes)


def constants(values: Sequence[float], element: str) -> LlvmValue:
    """A vector constant with the given numbers."""
    lanes = ", ".join(f"{element} {value}" for value in values)
    return LlvmValue(f"<{lanes}>", element, len(values))


def suffix(operand: LlvmValue) -> str:
    """The operand's type in an overloaded intrinsic's name: ``v16f32``."""
    element = _SUFFIXES.get(operand.element, operand.element)
    return f"v{operand.lanes}{element}" if operand.lanes else element
