"""The tile registers of a contraction: their shapes, and the instructions on them.

In: pointers. Out: code. Not done here: loops, rows and columns (``matrix_tiles``).

Up to two tiles of sums above each other have a tile of A each, two beside each other a tile of B
each. The end of a depth has tiles of its own shape, of one of A and two of B, for which there are
registers where sums are not above each other. The configuration is 64 bytes that ``ldtilecfg``
reads: a palette, the bytes of a row of each register, its rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.codegen.emit.blocks.products.accumulators import Factors
from ingot_compiler.codegen.emit.operands import i64
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.types import UNSIGNED
from ingot_compiler.kernels.matrix_tiles import TILE_ROW_BYTES, TILE_ROWS
from ingot_runtime.lazy_dataclass import dataclass

_VECTORS = 2  # tiles beside each other
_A, _B = (2, 5), (3, 4)  # behind sums of one height: of the depth; then those of its end
_REST_B = (6, 7)
_HIGH_A, _HIGH_B = (4, 5), (6, 7)  # behind sums above each other
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


def release_tiles(writer: Writer) -> None:
    """Leave no state of tiles to other code of the thread."""
    writer.call_void("llvm.x86.tilerelease", ())


class TileRegisters:
    """The registers, as a kernel uses them, of so many ``blocks`` of rows above each other."""

    __slots__ = ("_blocks", "_configuration", "_factors", "_writer", "shape")

    def __init__(self, writer: Writer, factors: Factors, shape: TileShape, blocks: int) -> None:
        assert blocks == 1 or not shape.rest_bytes, "no registers are left for the end of a depth"
        self.shape = shape
        self._writer, self._factors, self._blocks = writer, factors, blocks
        self._configuration = writer.slot("i8", _CONFIGURATION_BYTES)

    def configure(self, rows: Sequence[LlvmValue]) -> None:
        """Give the registers their shapes, and set them to 0; the tiles of A and of sums of each
        block have so many rows."""
        w, place = self._writer, self._configuration
        rest = self.shape.rest_bytes
        row_bytes: dict[int, int] = {}
        heights: dict[int, LlvmValue] = {}
        for block, count in enumerate(rows):
            own = [self._a(block, is_rest=False), *self._sums(block, _VECTORS)]
            heights |= dict.fromkeys(own, count)
        heights |= {self._b(vector, is_rest=False): i64(TILE_ROWS) for vector in range(_VECTORS)}
        row_bytes |= dict.fromkeys(heights, TILE_ROW_BYTES)
        if rest:
            heights[self._a(0, is_rest=True)] = rows[0]
            row_bytes[self._a(0, is_rest=True)] = rest
            for vector in range(_VECTORS):
                heights[self._b(vector, is_rest=True)] = i64(rest // _WORD_BYTES)
                row_bytes[self._b(vector, is_rest=True)] = TILE_ROW_BYTES
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

    def clear(self, vectors: int) -> None:
        """Set the sums of so many tiles beside each other to 0."""
        for block in range(self._blocks):
            for register in self._sums(block, vectors):
                self._writer.call_void("llvm.x86.tilezero", (_number(register),))

    def load_sums(self, block: int, first: LlvmValue, pitch_bytes: int, vectors: int) -> None:
        """Load the sums of a block of rows, which lie so far apart."""
        for number, register in enumerate(self._sums(block, vectors)):
            place = self._writer.offset(first, i64(number * TILE_ROW_BYTES), "i8")
            self._load(register, place, pitch_bytes)

    def load_a(self, block: int, first: LlvmValue, pitch_bytes: int, *, is_rest: bool) -> None:
        """Load a tile of A, whose rows lie so far apart."""
        self._load(self._a(block, is_rest=is_rest), first, pitch_bytes)

    def load_b(self, vector: int, first: LlvmValue, *, is_rest: bool) -> None:
        """Load a tile of B, whose lines lie together."""
        self._load(self._b(vector, is_rest=is_rest), first, TILE_ROW_BYTES)

    def multiply(self, block: int, vector: int, *, is_rest: bool) -> None:
        """Add the products of a tile of A and one of B to a tile of sums."""
        factors = self._a(block, is_rest=is_rest), self._b(vector, is_rest=is_rest)
        operands = [
            _number(register) for register in (self._sums(block, _VECTORS)[vector], *factors)
        ]
        self._writer.call_void(f"llvm.x86.{self._instruction()}", operands)

    def store(self, place: LlvmValue, vectors: int) -> None:
        """Store so many tiles of sums beside each other, those of each block behind those
        before."""
        pitch_bytes = vectors * TILE_ROW_BYTES
        for block in range(self._blocks):
            for number, register in enumerate(self._sums(block, vectors)):
                at = i64(block * TILE_ROWS * pitch_bytes + number * TILE_ROW_BYTES)
                operands = _number(register), self._writer.offset(place, at, "i8"), i64(pitch_bytes)
                self._writer.call_void("llvm.x86.tilestored64", operands)

    def _sums(self, block: int, vectors: int) -> range:
        return range(block * _VECTORS, block * _VECTORS + vectors)

    def _a(self, block: int, *, is_rest: bool) -> int:
        return _HIGH_A[block] if self._blocks > 1 else _A[is_rest]

    def _b(self, vector: int, *, is_rest: bool) -> int:
        whole = _HIGH_B if self._blocks > 1 else _B
        return (_REST_B if is_rest else whole)[vector]

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
