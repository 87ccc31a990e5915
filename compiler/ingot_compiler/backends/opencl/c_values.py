"""Values of LLVM IR as C: types, constants, vectors in pieces of at most eight lanes.

In: ``LlvmValue``. Out: texts of OpenCL C. Not done here: instructions.

i1 is an ``int`` of 0 or 1; lanes of it are lanes of an ``int`` vector, 0 or -1, as comparisons give
them. C has no vector of one lane: it is a scalar there. Pointers are of bytes, in one address space each; lanes of pointers are byte offsets (``long``
lanes) from one base.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass

from ingot_compiler.backends.host.llvm_value import SIZES_BYTES, LlvmValue
from ingot_compiler.ir.errors import InternalError

LANES_MAX = 8
_NAMES = {
    "i1": "int", "i8": "char", "i16": "short", "i32": "int", "i64": "long", "float": "float",
    "double": "double", "ptr": "long",
}  # fmt: skip
_UNSIGNED = {"char": "uchar", "short": "ushort", "int": "uint", "long": "ulong"}
_LEAST = {"int": "(-2147483647 - 1)", "long": "(-9223372036854775807L - 1)"}
_SAME_LANES = re.compile(r"\(\w+\)\(([^,]+)\)")
_LEAST_BITS = {"int": 32, "long": 64}


@dataclass(frozen=True, slots=True)
class CValue:
    """``pieces``: C expressions without operators, one per piece of the lanes, or one scalar.

    A pointer has an address ``space`` (``__global``, ``__private``, ``__constant``); lanes of
    pointers also have a ``base``.
    """

    element: str
    lanes: int
    pieces: tuple[str, ...]
    space: str = ""
    base: str = ""

    @property
    def piece_lanes(self) -> int:
        """Lanes of each piece; 0 for a scalar."""
        return min(self.lanes, LANES_MAX)

    @property
    def text(self) -> str:
        """The only piece."""
        (only,) = self.pieces
        return only

    def lane(self, number: int) -> str:
        """One lane as a scalar; a scalar stands for all."""
        if self.lanes <= 1:
            return self.text
        piece = self.pieces[number // LANES_MAX]
        same = _SAME_LANES.fullmatch(piece)
        return same[1] if same else f"{piece}.s{number % LANES_MAX:x}"


def scalar_name(element: str) -> str:
    """The C type of an element; integers of other widths hold a flag."""
    return _NAMES.get(element, "char")


def type_name(element: str, lanes: int = 0) -> str:
    """The C type of a scalar, or of a piece."""
    return f"{scalar_name(element)}{lanes}" if lanes > 1 else scalar_name(element)


def unsigned_name(element: str, lanes: int = 0) -> str:
    """The same without a sign; for floats the integer of their width."""
    name = {"float": "int", "double": "long"}.get(scalar_name(element), scalar_name(element))
    return f"{_UNSIGNED[name]}{lanes}" if lanes > 1 else _UNSIGNED[name]


def converted(kind: str, lanes: int, text: str) -> str:
    """A number, or a vector of as many lanes, as another type of C."""
    return f"TO({kind}, {text})" if lanes > 1 else f"({kind})({text})"


def size_bytes(element: str) -> int:
    """Bytes of an element in memory."""
    return SIZES_BYTES[element]


def piece_count(lanes: int) -> int:
    """Pieces of a value."""
    if lanes > LANES_MAX and lanes % LANES_MAX:
        raise InternalError(f"{lanes} lanes are no pieces of {LANES_MAX}")
    return max(1, -(-lanes // LANES_MAX))


def constant_value(value: LlvmValue) -> CValue:
    """A constant operand; ``value`` is no name."""
    count, lanes = piece_count(value.lanes), min(value.lanes, LANES_MAX)
    kind = type_name(value.element, lanes)
    if not value.lanes:
        return CValue(value.element, 0, (scalar_text(value.text, value.element, 0),))
    if value.text.startswith("<"):
        texts = [part.split(" ", 1)[1] for part in value.text[1:-1].split(", ")]
        numbers = [scalar_text(text, value.element, lanes) for text in texts]
        pieces = [", ".join(numbers[at : at + lanes]) for at in range(0, value.lanes, lanes)]
        return CValue(value.element, value.lanes, tuple(f"({kind})({text})" for text in pieces))
    found = re.fullmatch(r"splat \(\w+ (\S+)\)", value.text)
    text = found[1] if found else "0"  # zeroinitializer, poison
    number = scalar_text(text, value.element, lanes)
    return CValue(value.element, value.lanes, (f"({kind})({number})",) * count)


def scalar_text(text: str, element: str, lanes: int) -> str:
    """A number; ``lanes``: those of the vector that it is a part of."""
    if element == "i1":
        is_true = text in ("true", "1")
        return ("-1" if lanes else "1") if is_true else "0"
    if element in ("float", "double"):
        return _float_text(
            0 if text in ("0", "zeroinitializer", "poison") else int(text, 16), element
        )
    number = 0 if text in ("zeroinitializer", "poison") else int(text)
    name = scalar_name(element)
    bits = 8 * SIZES_BYTES.get(element, 1)
    number = (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
    if name in _LEAST and number == -(1 << _LEAST_BITS[name] - 1):
        return _LEAST[name]
    suffix = "L" if name == "long" else ""
    text = f"({number}{suffix})" if number < 0 else f"{number}{suffix}"
    return text if name in ("int", "long") else f"({name}){text}"


def _float_text(bits: int, element: str) -> str:
    """A float from the bits of the double that LLVM writes for it."""
    value: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    if math.isfinite(value):
        text = f"{value.hex()}{'f' if element == 'float' else ''}"
        return f"({text})" if text.startswith("-") else text
    if element == "double":
        return f"as_double({bits:#x}UL)"
    narrow = struct.unpack("<I", struct.pack("<f", value))[0]
    return f"as_float({narrow:#x}u)"
