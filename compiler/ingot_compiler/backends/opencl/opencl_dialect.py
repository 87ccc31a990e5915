"""How OpenCL C spells types, lanes and bits.

In: elements, lanes, texts. Out: ``OPENCL_C``. Not done here: what instructions become (``c_text``),
the macros (``prelude.cl``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from ingot_compiler.backends.c_text.dialect import CDialect
from ingot_compiler.backends.c_text.values import CONSTANT, GLOBAL, PRIVATE, CValue
from ingot_compiler.codegen.kernel_ir import Array
from ingot_compiler.ir.errors import InternalError

_UNSIGNED = {"i8": "uchar", "i16": "ushort", "i32": "uint", "i64": "ulong"}
_MACROS = {"floor": "FLOOR", "ceil": "CEIL", "roundeven": "ROUND_EVEN", "trunc": "TRUNC"}


class OpenClC(CDialect):
    """Vectors of at most eight lanes."""

    lanes_max = 8
    scalar_names: ClassVar[Mapping[str, str]] = {
        "i1": "int", "i8": "char", "i16": "short", "i32": "int", "i64": "long", "float": "float",
        "double": "double", "ptr": "long",
    }  # fmt: skip
    unsigned_names: ClassVar[Mapping[str, str]] = {
        **_UNSIGNED, "i1": "uint", "float": "uint", "double": "ulong", "ptr": "ulong",
    }  # fmt: skip
    spaces: ClassVar[Mapping[str, str]] = {
        GLOBAL: "__global",
        PRIVATE: "__private",
        CONSTANT: "__constant",
    }
    byte = "uchar"
    long_suffix = "L"
    either_both = ("|", "&")

    def type_name(self, element: str, lanes: int = 0) -> str:
        """``float8``."""
        return f"{self.scalar_name(element)}{lanes if lanes > 1 else ''}"

    def unsigned_name(self, element: str, lanes: int = 0) -> str:
        """``uint8``."""
        name = self.unsigned_names.get(element, self.unsigned_names["i8"])
        return f"{name}{lanes if lanes > 1 else ''}"

    def memory_name(self, element: str, lanes: int) -> str:
        """A vector lies at a multiple of its element."""
        return f"{self.type_name(element, lanes)}{'_at' if lanes > 1 else ''}"

    def stack_suffix(self, alignment_bytes: int, count: int) -> str:
        """An attribute."""
        del count
        return f"__attribute__((aligned({alignment_bytes})))"

    def lane_of(self, piece: str, number: int, known: str) -> str:
        """``piece.s3``, or what is known."""
        return known or f"{piece}.s{number:x}"

    def vector(self, element: str, texts: Sequence[str]) -> str:
        """``(float4)(a, b, c, d)``."""
        return f"({self.type_name(element, len(texts))})({', '.join(texts)})"

    def splat(self, element: str, lanes: int, text: str) -> str:
        """``(float4)(a)``."""
        return f"({self.type_name(element, lanes)})({text})"

    def splat_unsigned(self, element: str, lanes: int, text: str) -> str:
        """``(uint4)(a)``."""
        return f"({self.unsigned_name(element, lanes)})({text})"

    def as_unsigned(self, element: str, lanes: int, text: str) -> str:
        """``as_uint4(a)``."""
        return f"as_{self.unsigned_name(element, lanes)}({text})"

    def from_unsigned(self, element: str, lanes: int, text: str) -> str:
        """``as_float4(a)``."""
        return f"as_{self.type_name(element, lanes)}({text})"

    def seen_as(self, value: CValue, element: str, lanes: int) -> list[str]:
        """The bits of a value as another type, in as many pieces, twice as many or half as many."""
        count, c_type = self.piece_count(lanes), self.type_name(element, self.piece_lanes(lanes))
        if count == len(value.pieces):
            return [f"as_{c_type}({piece})" for piece in value.pieces]
        if count == 2 * len(value.pieces):
            wide = self.type_name(element, 2 * self.lanes_max)
            return [f"as_{wide}({piece}).{half}" for piece in value.pieces for half in ("lo", "hi")]
        if 2 * count == len(value.pieces):
            wide = self.type_name(value.element, 2 * self.lanes_max)
            pairs = zip(value.pieces[::2], value.pieces[1::2], strict=True)
            return [f"as_{c_type}(({wide})({low}, {high}))" for low, high in pairs]
        raise InternalError(f"{value.lanes} x {value.element} seen as {lanes} x {element}")

    def converted_lanes(self, c_type: str, text: str) -> str:
        """``TO(float4, a)``."""
        return f"TO({c_type}, {text})"

    def mask_of(self, element: str, lanes: int, text: str) -> str:
        """Lanes of ``int``; comparisons have the width of what is compared."""
        if element in ("i32", "i1", "float"):
            return f"({text})"
        return self.converted("i1", lanes, text)

    def chosen(self, element: str, lanes: int, condition: str, left: str, right: str) -> str:
        """The language's own operator."""
        del element, lanes
        return f"{condition} ? {left} : {right}"

    def rounded(self, function: str, element: str, lanes: int, text: str) -> str:
        """The macros of the prelude; a square root lane by lane."""
        if function in _MACROS:
            return f"{_MACROS[function]}({text})"
        name = f"SQRT_{self.scalar_name(element)}"
        if lanes <= 1:
            return f"{name}({text})"
        return self.vector(element, [f"{name}({text}.s{lane})" for lane in range(lanes)])

    def multiplied_pairs(self, left: CValue, right: CValue) -> list[str]:
        """Even lanes and odd ones."""
        halves = [
            f"(TO(int4, {a}.even) * TO(int4, {b}.even) + TO(int4, {a}.odd) * TO(int4, {b}.odd))"
            for a, b in zip(left.pieces, right.pieces, strict=True)
        ]
        if len(halves) == 1:
            return halves
        pairs = zip(halves[::2], halves[1::2], strict=True)
        return [f"(int8)({low}, {high})" for low, high in pairs]

    def table(self, name: str, array: Array) -> str:
        """``__constant float name[] = {...};``."""
        numbers = ", ".join(self.scalar_text(each, array.element, 0) for each in array.numbers)
        return f"__constant {self.scalar_name(array.element)} {name}[] = {{{numbers}}};"


OPENCL_C = OpenClC()
