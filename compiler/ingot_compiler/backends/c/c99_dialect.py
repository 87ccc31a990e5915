"""How C99 spells types and bits, and lanes where the compiler has vectors of GCC.

In: elements, lanes, texts. Out: ``c99(lanes_max)``. Not done here: what instructions become
(``c_text``), the types and small functions that the text names (``support.h``).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import ClassVar

from ingot_compiler.backends.c_text.dialect import CDialect
from ingot_compiler.backends.c_text.values import (
    CONSTANT,
    GLOBAL,
    PRIVATE,
    CValue,
    size_bytes,
)
from ingot_compiler.codegen.kernel_ir import Array

_LETTERS = {
    "i1": "i32", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "float": "f32",
    "double": "f64", "ptr": "i64",
}  # fmt: skip
_BITS = {
    "i1": "u32", "i16": "u16", "i32": "u32", "i64": "u64", "float": "u32", "double": "u64",
    "ptr": "u64",
}  # fmt: skip
_FLOATS = ("float", "double")


class C99(CDialect):
    """Vectors of at most ``lanes_max`` lanes; of one lane there are none."""

    scalar_names: ClassVar[Mapping[str, str]] = {
        "i1": "int32_t", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
        "float": "float", "double": "double", "ptr": "int64_t",
    }  # fmt: skip
    unsigned_names: ClassVar[Mapping[str, str]] = {
        "i1": "uint32_t", "i8": "uint8_t", "i16": "uint16_t", "i32": "uint32_t",
        "i64": "uint64_t", "float": "uint32_t", "double": "uint64_t", "ptr": "uint64_t",
    }  # fmt: skip
    spaces: ClassVar[Mapping[str, str]] = {GLOBAL: "", PRIVATE: "", CONSTANT: "const"}
    byte = "unsigned char"
    long_suffix = "LL"
    either_both = ("||", "&&")

    def __init__(self, lanes_max: int, *, indices: bool = False) -> None:
        """``indices``: what has 64 bits and no lanes is an index, as wide as an address."""
        self.lanes_max = lanes_max
        self._wide = {"i64": "intptr_t", "ptr": "intptr_t"} if indices else {}

    def scalar_name(self, element: str) -> str:
        """``float``."""
        return self._wide.get(element) or super().scalar_name(element)

    def type_name(self, element: str, lanes: int = 0) -> str:
        """``float``, or ``f32x8``."""
        if lanes <= 1:
            return self.scalar_name(element)
        return f"{_LETTERS.get(element, 'i8')}x{lanes}"

    def unsigned_name(self, element: str, lanes: int = 0) -> str:
        """``uint32_t``, or ``u32x8``."""
        if lanes <= 1:
            if wide := self._wide.get(element):
                return f"u{wide}"
            return self.unsigned_names.get(element, "uint8_t")
        return f"{_BITS.get(element, 'u8')}x{lanes}"

    def memory_name(self, element: str, lanes: int) -> str:
        """A type that may lie over any other, at a multiple of its element."""
        if lanes <= 1:
            return f"{_LETTERS.get(element, 'i8')}_at"
        return f"{self.type_name(element, lanes)}_at"

    def typed_pointer(self, space: str, element: str, lanes: int, *, read: bool) -> str:
        """What lies in a table is constant already."""
        return super().typed_pointer(space, element, lanes, read=read and space != CONSTANT)

    def stack_suffix(self, alignment_bytes: int, count: int) -> str:
        """The macro of ``support.h``. A single number begins as 0: GCC does not see that a loop
        writes it first."""
        start = " = {0}" if count == 1 else ""
        return f"ALIGNED({alignment_bytes}){start}"

    def lane_of(self, piece: str, number: int, known: str) -> str:
        """``piece[3]``."""
        del known
        return f"{piece}[{number}]"

    def vector(self, element: str, texts: Sequence[str]) -> str:
        """``((f32x4){a, b, c, d})``."""
        if len(texts) == 1:
            return texts[0]
        return f"(({self.type_name(element, len(texts))}){{{', '.join(texts)}}})"

    def splat(self, element: str, lanes: int, text: str) -> str:
        """A vector, or a scalar, all of whose lanes are one number."""
        return self.vector(element, [text] * lanes) if lanes > 1 else text

    def splat_unsigned(self, element: str, lanes: int, text: str) -> str:
        """``((u32x4){a, a, a, a})``."""
        if lanes <= 1:
            return f"({self.unsigned_name(element)})({text})"
        return f"(({self.unsigned_name(element, lanes)}){{{', '.join([text] * lanes)}}})"

    def as_unsigned(self, element: str, lanes: int, text: str) -> str:
        """A cast, or the function of ``support.h`` for a float. Narrow numbers are widened, since
        an ``int`` may be too small for their product."""
        c_type = self.unsigned_name(element, lanes)
        if lanes <= 1 and element in _FLOATS:
            return f"bits_of_{_LETTERS[element]}({text})"
        if lanes <= 1 and c_type in ("uint8_t", "uint16_t"):
            return f"(uint32_t)({c_type})({text})"
        return f"({c_type})({text})"

    def from_unsigned(self, element: str, lanes: int, text: str) -> str:
        """The way back."""
        if lanes <= 1 and element in _FLOATS:
            return f"{_LETTERS[element]}_of_bits({text})"
        return f"({self.type_name(element, lanes)})({text})"

    def seen_as(self, value: CValue, element: str, lanes: int) -> list[str]:
        """Vectors of one width are cast; else lane by lane."""
        inside = self.piece_lanes(lanes)
        same = inside * size_bytes(element) == value.piece_lanes * size_bytes(value.element)
        if inside > 1 and value.piece_lanes > 1 and same:
            c_type = self.type_name(element, inside)
            return [f"({c_type})({piece})" for piece in value.pieces]
        count = max(lanes, 1)
        made = [self._lane_seen_as(value, element, number, count) for number in range(count)]
        if inside <= 1:
            return made
        return [self.vector(element, made[at : at + inside]) for at in range(0, lanes, inside)]

    def _lane_seen_as(self, value: CValue, element: str, number: int, count: int) -> str:
        """One lane of ``count``, from the bits of the lanes that lie there, the lowest first."""
        lanes = max(value.lanes, 1)
        if count == lanes:
            bits = self.as_unsigned(value.element, 0, self.lane(value, number))
        elif count < lanes:
            each, wide = lanes // count, self.unsigned_name(element)
            parts = [
                self.as_unsigned(value.element, 0, self.lane(value, number * each + at))
                for at in range(each)
            ]
            step = 8 * size_bytes(value.element)
            bits = " | ".join(f"({wide})({part}) << {at * step}" for at, part in enumerate(parts))
        else:
            at, place = divmod(number, count // lanes)
            whole = self.as_unsigned(value.element, 0, self.lane(value, at))
            c_type = self.unsigned_name(element)
            bits = f"({c_type})(({whole}) >> {place * 8 * size_bytes(element)})"
        return self.from_unsigned(element, 0, bits)

    def converted_lanes(self, c_type: str, text: str) -> str:
        """The compiler's own function."""
        return f"__builtin_convertvector({text}, {c_type})"

    def mask_of(self, element: str, lanes: int, text: str) -> str:
        """Lanes of 32 bits; comparisons have the width of what is compared."""
        if size_bytes(element) == size_bytes("i32") or element == "i1":
            return f"({self.type_name('i1', lanes)})({text})"
        return self.converted("i1", lanes, text)

    def chosen(self, element: str, lanes: int, condition: str, left: str, right: str) -> str:
        """By the bits of the condition."""
        bits, c_type = self.unsigned_name(element, lanes), self.type_name(element, lanes)
        mask = f"({bits})({condition})"
        return f"({c_type})(({mask} & ({bits})({left})) | (~{mask} & ({bits})({right})))"

    def rounded(self, function: str, element: str, lanes: int, text: str) -> str:
        """The functions of ``support.h``, lane by lane where the compiler has no better one."""
        name = f"{function}_{_LETTERS[element]}"
        return f"{name}x{lanes}({text})" if lanes > 1 else f"{name}({text})"

    def multiplied_pairs(self, left: CValue, right: CValue) -> list[str]:
        """Lane by lane."""
        products = [
            f"(uint32_t)((int32_t){self.lane(left, at)} * (int32_t){self.lane(right, at)})"
            for at in range(left.lanes)
        ]
        pairs = zip(products[::2], products[1::2], strict=True)
        sums = [f"(int32_t)({even} + {odd})" for even, odd in pairs]
        most = self.piece_lanes(len(sums))
        return [self.vector("i32", sums[at : at + most]) for at in range(0, len(sums), most)]

    def table(self, name: str, array: Array) -> str:
        """A static array of the bits of the numbers, since an initialiser cannot call a
        function."""
        c_type = self.unsigned_name(array.element)
        numbers = ", ".join(self._table_number(each, array.element) for each in array.numbers)
        return f"static const {c_type} {name}[] = {{{numbers}}};"

    def _table_number(self, number: int, element: str) -> str:
        if element in _FLOATS:
            return self.float_bits(number, element)
        suffix = "ULL" if size_bytes(element) == size_bytes("i64") else "u"
        return f"{number % (1 << 8 * size_bytes(element))}{suffix}"


@functools.cache
def c99(lanes_max: int, *, indices: bool) -> C99:
    """The dialect with vectors of that many lanes."""
    return C99(lanes_max, indices=indices)
