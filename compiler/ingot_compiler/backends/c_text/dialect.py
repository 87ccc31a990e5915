"""How a language of the C family spells types, lanes and bits.

In: elements, numbers of lanes, texts. Out: texts. Not done here: which instruction
becomes what (``arithmetic``, ``lanes``, ``memory``), a language itself (a back end each).
"""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from ingot_compiler.backends.c_text.values import CValue
from ingot_compiler.codegen.kernel_ir import Array
from ingot_compiler.codegen.llvm_value import FLOAT_ELEMENTS, SIZES_BYTES, LlvmValue
from ingot_compiler.ir.errors import InternalError

_LEAST_BITS = {"i1": 32, "i32": 32, "i64": 64, "ptr": 64}


class CDialect(ABC):
    """One language. ``lanes_max``: of a vector, 1 where there are none; ``scalar_names``,
    ``unsigned_names``: types by element, those of ``i8`` for elements that are not named;
    ``spaces``: what stands before ``byte`` in a pointer; ``long_suffix``: of numbers of 64 bits;
    ``either_both``: what joins two comparisons of scalars."""

    lanes_max: int
    scalar_names: ClassVar[Mapping[str, str]]
    unsigned_names: ClassVar[Mapping[str, str]]
    spaces: ClassVar[Mapping[str, str]]
    byte: str
    long_suffix: str
    either_both: tuple[str, str]

    # -- types -------------------------------------------------------------------------------------

    def scalar_name(self, element: str) -> str:
        """The type of an element; integers of other widths hold a flag."""
        return self.scalar_names.get(element, self.scalar_names["i8"])

    @abstractmethod
    def type_name(self, element: str, lanes: int = 0) -> str:
        """The type of a scalar, or of a piece."""

    @abstractmethod
    def unsigned_name(self, element: str, lanes: int = 0) -> str:
        """The type of the unsigned integer of an element's width, also of a float's."""

    @abstractmethod
    def memory_name(self, element: str, lanes: int) -> str:
        """The type by which a scalar or a piece is read and written."""

    @abstractmethod
    def stack_suffix(self, alignment_bytes: int, count: int) -> str:
        """What stands behind an array of ``count`` that lies at a multiple of so many bytes."""

    def pointer(self, space: str, name: str) -> str:
        """The declaration of a pointer to bytes."""
        return f"{self._before(space)}{self.byte} *{name}"

    def typed_pointer(self, space: str, element: str, lanes: int, *, read: bool) -> str:
        """A cast to a pointer to a scalar or a piece."""
        constant = "const " if read else ""
        return f"({self._before(space)}{constant}{self.memory_name(element, lanes)} *)"

    def _before(self, space: str) -> str:
        word = self.spaces[space]
        return f"{word} " if word else ""

    # -- lanes -------------------------------------------------------------------------------------

    def piece_count(self, lanes: int) -> int:
        """Pieces of a value."""
        if lanes > self.lanes_max and lanes % self.lanes_max:
            raise InternalError(f"{lanes} lanes are no pieces of {self.lanes_max}")
        return max(1, -(-lanes // self.lanes_max))

    def piece_lanes(self, lanes: int) -> int:
        """Lanes of each piece; 0 for a scalar."""
        return min(lanes, self.lanes_max)

    def piece_of(self, value: CValue, number: int) -> str:
        """The piece that has a lane; a scalar stands for all."""
        return value.text if value.lanes <= 1 else value.pieces[number // self.lanes_max]

    def lane(self, value: CValue, number: int) -> str:
        """One lane as a scalar."""
        piece = self.piece_of(value, number)
        if value.lanes <= 1 or self.lanes_max == 1:
            return piece
        return self.lane_of(piece, number % self.lanes_max, value.lane)

    @abstractmethod
    def lane_of(self, piece: str, number: int, known: str) -> str:
        """One lane of a piece that has several; ``known``: what it is made of, if that is said."""

    @abstractmethod
    def vector(self, element: str, texts: Sequence[str]) -> str:
        """A piece of several lanes, given each."""

    @abstractmethod
    def splat(self, element: str, lanes: int, text: str) -> str:
        """A piece, or a scalar, all of whose lanes are the same."""

    @abstractmethod
    def splat_unsigned(self, element: str, lanes: int, text: str) -> str:
        """A piece, or a scalar, of the unsigned integer of the element's width, all of whose lanes
        are the same."""

    # -- bits --------------------------------------------------------------------------------------

    @abstractmethod
    def as_unsigned(self, element: str, lanes: int, text: str) -> str:
        """The bits of an element as an integer without a sign."""

    @abstractmethod
    def from_unsigned(self, element: str, lanes: int, text: str) -> str:
        """The element with the bits of an integer without a sign."""

    @abstractmethod
    def seen_as(self, value: CValue, element: str, lanes: int) -> list[str]:
        """The bits of a value as another type, piece by piece; the count of pieces may change."""

    # -- numbers -----------------------------------------------------------------------------------

    def converted(self, element: str, lanes: int, text: str) -> str:
        """A number, or a piece of as many lanes, as another element."""
        return self._converted_to(self.type_name(element, lanes), lanes, text)

    def converted_unsigned(self, element: str, lanes: int, text: str) -> str:
        """A number, or a piece of as many lanes, converted to the unsigned integer of the element's
        width."""
        return self._converted_to(self.unsigned_name(element, lanes), lanes, text)

    def _converted_to(self, c_type: str, lanes: int, text: str) -> str:
        return self.converted_lanes(c_type, text) if lanes > 1 else f"({c_type})({text})"

    @abstractmethod
    def converted_lanes(self, c_type: str, text: str) -> str:
        """A piece of several lanes as a type of as many, lane by lane."""

    @abstractmethod
    def mask_of(self, element: str, lanes: int, text: str) -> str:
        """A comparison of two pieces as lanes of i1."""

    @abstractmethod
    def chosen(self, element: str, lanes: int, condition: str, left: str, right: str) -> str:
        """One of two pieces, or scalars, lane by lane; ``condition`` has the width of the
        element, and lanes where they have."""

    @abstractmethod
    def rounded(self, function: str, element: str, lanes: int, text: str) -> str:
        """``floor``, ``ceil``, ``trunc``, ``roundeven``, ``sqrt``."""

    @abstractmethod
    def multiplied_pairs(self, left: CValue, right: CValue) -> list[str]:
        """Sums of the products of pairs of i16 that lie beside each other, as i32."""

    @abstractmethod
    def table(self, name: str, array: Array) -> str:
        """The declaration of an array under a name."""

    # -- constants ---------------------------------------------------------------------------------

    def constant_value(self, value: LlvmValue) -> CValue:
        """A constant operand."""
        count, lanes = self.piece_count(value.lanes), self.piece_lanes(value.lanes)
        numbers = value.numbers or (0,)  # of poison any will do
        texts = [self.scalar_text(number, value.element, lanes) for number in numbers]
        lane = ""
        if not value.lanes:
            pieces = texts
        elif len(texts) == 1:
            (lane,) = texts
            pieces = [self.splat(value.element, lanes, lane)] * count
        else:
            starts = range(0, value.lanes, lanes)
            pieces = [self.vector(value.element, texts[at : at + lanes]) for at in starts]
        return CValue(value.element, value.lanes, tuple(pieces), lane=lane)

    def scalar_text(self, number: int, element: str, lanes: int) -> str:
        """A number of a constant; ``lanes``: those of the vector that it is a part of."""
        if element == "i1":
            return ("-1" if lanes else "1") if number else "0"
        if element in FLOAT_ELEMENTS:
            return self._float_text(number, element)
        return self._integer_text(number, element)

    def _integer_text(self, number: int, element: str) -> str:
        bits = 8 * SIZES_BYTES.get(element, 1)
        number = (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        suffix = self.long_suffix if _LEAST_BITS.get(element) == 64 else ""
        if element in _LEAST_BITS and number == -(1 << _LEAST_BITS[element] - 1):
            return f"({number + 1}{suffix} - 1)"
        text = f"({number}{suffix})" if number < 0 else f"{number}{suffix}"
        return text if element in _LEAST_BITS else f"({self.scalar_name(element)}){text}"

    def _float_text(self, bits: int, element: str) -> str:
        """A float from the bits of the double that has its value."""
        value: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
        if math.isfinite(value):
            text = f"{value.hex()}{'f' if element == 'float' else ''}"
            return f"({text})" if text.startswith("-") else text
        return self.from_unsigned(element, 0, self.float_bits(bits, element))

    def float_bits(self, bits: int, element: str) -> str:
        """The bits of a float, from those of the double that has its value."""
        if element == "double":
            return f"{bits:#x}U{self.long_suffix}"
        value: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
        return f"{struct.unpack('<I', struct.pack('<f', value))[0]:#x}u"
