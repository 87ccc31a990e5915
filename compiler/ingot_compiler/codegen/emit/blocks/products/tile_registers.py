"""The tile registers of a contraction: their shapes, and the instructions on them.

In: pointers. Out: code. Not done here: loops, rows and columns (``matrix_tiles``).

Two tiles of sums, one of A and two of B, and once more one of A and two of B of the shape that the
end of a depth has. The configuration is 64 bytes that ``ldtilecfg`` reads: a palette, the bytes of a
row of each register, its rows.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.blocks.products.accumulators import Factors
from ingot_compiler.codegen.emit.operands import i64
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.types import UNSIGNED
from ingot_compiler.kernels.matrix_tiles import TILE_ROW_BYTES, TILE_ROWS
from ingot_runtime.lazy_dataclass import dataclass

_SUMS, _A, _B, _REST_A, _REST_B = (0, 1), 2, (3, 4), 5, (6, 7)
_PALETTE = 1
_ROW_BYTES_AT, _ROWS_AT = 16, 48  # in the configuration
_CONFIGURATION_BYTES = 64
_WORD_BYTES = 4  # what lies together of a column


@dataclass(frozen=True, slots=True)
class TileShape:
    """``whole`` elements of a depth fill tiles, ``depth`` of them one; ``rest_bytes`` are behind
    them."""

    whole: int
    depth: int
    rest_bytes: int

    def lanes(self, *, is_rest: bool) -> int:
        """How many i32 a row of A has."""
        return (self.rest_bytes if is_rest else TILE_ROW_BYTES) // _WORD_BYTES


class TileRegisters:
    """The registers, as a kernel uses them."""

    __slots__ = ("_configuration", "_factors", "_writer", "shape")

    def __init__(self, writer: Writer, factors: Factors, shape: TileShape) -> None:
        self.shape = shape
        self._writer, self._factors = writer, factors
        self._configuration = writer.slot("i8", _CONFIGURATION_BYTES)

    def configure(self, rows: LlvmValue) -> None:
        """Give the registers their shapes, and set them to 0; A and the sums have so many rows."""
        w, place = self._writer, self._configuration
        rest = self.shape.rest_bytes
        row_bytes = {_A: TILE_ROW_BYTES, **dict.fromkeys((*_SUMS, *_B), TILE_ROW_BYTES)}
        heights: dict[int, LlvmValue] = dict.fromkeys((*_SUMS, _A), rows)
        heights |= dict.fromkeys(_B, i64(TILE_ROWS))
        if rest:
            row_bytes |= {_REST_A: rest, **dict.fromkeys(_REST_B, TILE_ROW_BYTES)}
            heights |= {_REST_A: rows, **dict.fromkeys(_REST_B, i64(rest // _WORD_BYTES))}
        w.store(constant(0, "i8", _CONFIGURATION_BYTES), place, _CONFIGURATION_BYTES)
        w.store(constant(_PALETTE, "i8"), place)
        for register, size in sorted(row_bytes.items()):
            at = w.offset(place, i64(_ROW_BYTES_AT + 2 * register), "i8")
            w.store(constant(size, "i16"), at, 1)
        for register, height in sorted(heights.items()):
            at = w.offset(place, i64(_ROWS_AT + register), "i8")
            known = height.integer
            w.store(
                w.convert("trunc", height, "i8") if known is None else constant(known, "i8"), at
            )
        w.call_void("llvm.x86.ldtilecfg", (place,))

    def release(self) -> None:
        """Leave no state of tiles to other code of the thread."""
        self._writer.call_void("llvm.x86.tilerelease", ())

    def clear(self, count: int) -> None:
        """Set so many tiles of sums to 0."""
        for register in _SUMS[:count]:
            self._writer.call_void("llvm.x86.tilezero", (_number(register),))

    def load_a(self, first: LlvmValue, pitch_bytes: int, *, is_rest: bool) -> None:
        """Load a tile of A, whose rows lie so far apart."""
        self._load(_REST_A if is_rest else _A, first, pitch_bytes)

    def multiply(self, number: int, b: LlvmValue | None, *, is_rest: bool) -> None:
        """Load a tile of B (None: the one that is there), and add the products of A and it to a
        tile of sums."""
        left, right = (_REST_A, _REST_B[number]) if is_rest else (_A, _B[number])
        if b is not None:
            self._load(right, b, TILE_ROW_BYTES)
        operands = [_number(register) for register in (_SUMS[number], left, right)]
        self._writer.call_void(f"llvm.x86.{self._instruction()}", operands)

    def store(self, place: LlvmValue, count: int) -> None:
        """Store so many tiles of sums beside each other."""
        for number, register in enumerate(_SUMS[:count]):
            at = self._writer.offset(place, i64(number * TILE_ROW_BYTES), "i8")
            operands = _number(register), at, i64(count * TILE_ROW_BYTES)
            self._writer.call_void("llvm.x86.tilestored64", operands)

    def _load(self, register: int, first: LlvmValue, pitch_bytes: int) -> None:
        operands = _number(register), first, i64(pitch_bytes)
        self._writer.call_void("llvm.x86.tileloadd64", operands)

    def _instruction(self) -> str:
        """By the signs of A, then of B."""
        if self._factors.a == "bf16":
            return "tdpbf16ps"
        a, b = ("u" if kind in UNSIGNED else "s" for kind in (self._factors.a, self._factors.b))
        return f"tdpb{a}{b}d"


def _number(register: int) -> LlvmValue:
    return constant(register, "i8")
