"""Contractions on tiles that one instruction multiplies (AMX).

In: ``Unit`` and ``Panel`` of a contraction. Out: sums on the stack, and their epilogue. Not done
here: choosing such tiles (``kernels.matrix_tiles``), the instructions (``tile_registers``).

Two tiles of sums beside each other, and two above each other where registers are left for them,
take a tile of A for each row and a tile of B for each column. A tile of B is 16 lines of a panel, as
they lie. A tile of A is read where its rows lie at one distance; else they are brought together on
the stack. Tiles at the end of a depth are narrower, in registers of their own; those behind the last
row have fewer rows, for which the registers are configured again. Between products, lines of the next
panel are fetched: one after the other, since fetches that come all at once hold up what is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from ingot_compiler.codegen.emit.blocks.epilogue import (
    Columns,
    Results,
    Rows,
    emit_stored,
)
from ingot_compiler.codegen.emit.blocks.products.accumulators import (
    NextPanel,
    Pointers,
    merged_dims,
)
from ingot_compiler.codegen.emit.blocks.products.contraction_unit import Panel, Unit
from ingot_compiler.codegen.emit.blocks.products.multiply_step import INTO_L2, LINE_BYTES
from ingot_compiler.codegen.emit.blocks.products.next_panel import next_panel
from ingot_compiler.codegen.emit.blocks.products.split_factors import (
    emit_unsplit_tile,
    parts_of,
)
from ingot_compiler.codegen.emit.blocks.products.tile_registers import (
    TileRegisters,
    TileShape,
    release_tiles,
)
from ingot_compiler.codegen.emit.control import for_each, if_below, multiple_below
from ingot_compiler.codegen.emit.convert import MEMORY, REGISTER
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.memory import emit_load
from ingot_compiler.codegen.emit.operands import ZERO, i64
from ingot_compiler.codegen.llvm_value import SIZES_BYTES, LlvmValue
from ingot_compiler.ir.dims import Dim, dim_min, dim_mod
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.kernels.matrix_tiles import TILE_ROW_BYTES, TILE_ROWS
from ingot_compiler.kernels.row_pitch import row_pitch
from ingot_compiler.lowering.loops.bf16_pairs import PART_PRODUCTS
from ingot_runtime.lazy_dataclass import dataclass

_LINES_MAX = 16  # of a part that a step fetches

Offsets = tuple[LlvmValue, LlvmValue]
"""The offsets of A and of B, in elements."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Up to 16 rows of A: a pointer and a pitch, in bytes, or a pointer for each and where they are
    brought together."""

    pointers: Pointers
    pitch: int | None
    gathered: LlvmValue | None


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of both factors: the rows of A, 16 by 16, the vectors of B, and what is fetched of B's
    next panel."""

    rows: tuple[_Rows, ...]
    columns: Pointers
    behind: NextPanel | None


def emit_matrix_tiles(unit: Unit, panel: Panel) -> None:
    """Emit all rows of one panel, a tile of the statement at a time."""
    statement, w = unit.statement, unit.context.writer
    left = dim_min(statement.row_block, statement.rows - statement.row_start)
    count, start = (emit_index(unit.context, dim) for dim in (left, statement.row_start))
    height = statement.tile.rows
    whole = multiple_below(w, count, height)
    if whole.integer != 0:
        tile = _tile(unit, panel, height, None)
        for_each(w, ZERO, whole, height, lambda row: tile.emit(w.add(start, row)))
    rest, behind = w.sub(count, whole), w.add(start, whole)

    def fewer() -> None:
        """Rows that one tile holds need no second one."""
        if height == TILE_ROWS or (rest.integer or height) <= TILE_ROWS:
            _tile(unit, panel, TILE_ROWS, rest).emit(behind)
        elif rest.integer is not None:
            _tile(unit, panel, height, rest).emit(behind)
        else:
            w.if_else(
                w.compare("sle", rest, i64(TILE_ROWS)),
                lambda: _tile(unit, panel, TILE_ROWS, rest).emit(behind),
                lambda: _tile(unit, panel, height, rest).emit(behind),
            )

    if_below(w, ZERO, rest, fewer)
    release_tiles(w)


def _tile(unit: Unit, panel: Panel, height: int, valid: LlvmValue | None) -> _Tile:
    """The registers as so many rows want them."""
    registers = TileRegisters(unit.context.writer, unit.factors, _shape(unit), height // TILE_ROWS)
    rows: list[LlvmValue] = []
    for above in range(0, height, TILE_ROWS):
        is_last = above + TILE_ROWS == height
        left = valid and unit.context.writer.sub(valid, i64(above))
        rows.append(left if left is not None and is_last else i64(TILE_ROWS))
    registers.configure(rows)
    return _Tile(unit, panel, registers, height, valid)


def _shape(unit: Unit) -> TileShape:
    """How much of a tap's depth whole tiles hold, and what is behind them."""
    extent, size = unit.statement.depth_extent, SIZES_BYTES[MEMORY[unit.factors.a]]
    assert isinstance(extent, int)
    rest = extent * size % TILE_ROW_BYTES
    return TileShape(extent - rest // size, TILE_ROW_BYTES // size, rest)


@dataclass(frozen=True, slots=True)
class _Tile:
    """Tiles of ``height`` rows of a panel; ``valid`` of them exist (None: all)."""

    unit: Unit
    panel: Panel
    registers: TileRegisters
    height: int
    valid: LlvmValue | None

    def emit(self, row: LlvmValue) -> None:
        """Emit the rows from ``row`` on."""
        unit, panel, statement = self.unit, self.panel, self.unit.statement
        element, split = REGISTER[unit.factors.sum], statement.split
        w = unit.context.writer
        sums = w.slot(element, self.height * panel.vectors * unit.lanes)
        if split is None:
            self._products(row, sums)
        else:
            rows = row, self.valid, self.height
            w.if_else(
                emit_load(unit.context, split.fits, 0),
                lambda: self._products(row, sums),
                lambda: emit_unsplit_tile(unit, panel, split, rows, sums),
            )
        results = Results(
            Rows(statement.row, row, self.height, self.valid),
            Columns(statement.column, panel.column, panel.vectors, unit.lanes, panel.mask),
            statement.accumulator,
            statement.dtype,
            statement.epilogue,
        )
        emit_stored(unit.context, results, sums, element)

    def _products(self, row: LlvmValue, sums: LlvmValue) -> None:
        """Multiply tiles, and store their sums."""
        unit, vectors = self.unit, self.panel.vectors
        parts = tuple(
            self._part(part, columns, row) for part, columns in parts_of(unit, self.panel)
        )
        self._begin(row)
        self._taps(self._axes(), (ZERO, ZERO), lambda at: self._depth(parts, at))
        self.registers.store(sums, vectors)

    def _begin(self, row: LlvmValue) -> None:
        """Set the sums to 0, or to those that lie before them."""
        unit, carried = self.unit, self.unit.statement.carried
        if carried is None:
            self.registers.clear(self.panel.vectors)
            return
        pitch = coefficient(carried.index, unit.statement.row)
        assert isinstance(pitch, int)
        pitch_bytes = pitch * SIZES_BYTES[MEMORY[unit.factors.sum]]
        for block in range(self.height // TILE_ROWS):
            first_row = unit.context.writer.add(row, i64(block * TILE_ROWS))
            first = unit.address_of_carried(carried, first_row, self.panel.column)
            self.registers.load_sums(block, first, pitch_bytes, self.panel.vectors)

    def _axes(self) -> Sequence[tuple[Dim, Dim, Dim]]:
        """The loops of taps: extent, steps of A and of B."""
        s = self.unit.statement
        return merged_dims(s.taps, s.a_index, s.b_index) if s.taps else ()

    def _taps(
        self,
        axes: Sequence[tuple[Dim, Dim, Dim]],
        at: Offsets,
        body: Callable[[Offsets], None],
    ) -> None:
        """Run ``body`` for each tap, outer to inner."""
        if not axes:
            body(at)
            return
        w = self.unit.context.writer
        extent, *steps = (emit_index(self.unit.context, dim) for dim in axes[0])

        def turn(index: LlvmValue) -> None:
            a, b = (
                w.add(offset, w.mul(index, step)) for offset, step in zip(at, steps, strict=True)
            )
            self._taps(axes[1:], (a, b), body)

        for_each(w, ZERO, extent, 1, turn)

    def _depth(self, parts: Sequence[_Part], at: Offsets) -> None:
        """Add the products of one tap, of all parts that are multiplied."""
        w, shape, panels = (
            self.unit.context.writer,
            self.registers.shape,
            self.unit.statement.b_panels,
        )
        assert panels

        def step(index: LlvmValue, *, is_rest: bool) -> None:
            here = w.add(at[0], index), w.add(at[1], w.mul(index, i64(panels.columns)))
            fetches = self._fetches(parts, here[1])
            loaded: tuple[int, int] = (-1, -1)
            for own, other in PART_PRODUCTS[len(parts)]:
                is_new = own != loaded[0], other != loaded[1]
                self._multiply(parts[own], parts[other], here, is_new, fetches, is_rest=is_rest)
                loaded = own, other

        for_each(w, ZERO, i64(shape.whole), shape.depth, lambda index: step(index, is_rest=False))
        if shape.rest_bytes:
            step(i64(shape.whole), is_rest=True)

    def _multiply(
        self,
        left: _Part,
        right: _Part,
        at: Offsets,
        is_new: tuple[bool, bool],
        fetches: Iterator[Sequence[LlvmValue]],
        *,
        is_rest: bool,
    ) -> None:
        """Multiply a part of A by one of B, of which the new ones are loaded just before they are
        needed."""
        w, element = self.unit.context.writer, MEMORY[self.unit.factors.b]
        blocks, vectors = range(self.height // TILE_ROWS), range(self.panel.vectors)
        by_block = [(block, vector) for block in blocks for vector in vectors]
        order = by_block if is_new[0] else sorted(by_block, key=lambda place: place[1])
        for block, vector in order:
            if is_new[0] and vector == 0:
                self._load_a(block, left.rows[block], at[0], is_rest=is_rest)
            if is_new[1] and block == 0:
                pointer, displacement = right.columns[vector]
                place = w.offset(pointer, w.add(at[1], i64(displacement)), element)
                self.registers.load_b(vector, place, is_rest=is_rest)
            self.registers.multiply(block, vector, is_rest=is_rest)
            for fetch in next(fetches):
                w.prefetch(fetch, INTO_L2)

    def _fetches(self, parts: Sequence[_Part], offset: LlvmValue) -> Iterator[Sequence[LlvmValue]]:
        """What each product of a step fetches of the next panel: lines of all parts, in turn."""
        w, element = self.unit.context.writer, MEMORY[self.unit.factors.b]
        lines: list[LlvmValue] = []
        for part in parts:
            if (behind := part.behind) is not None:
                first = behind.place(w, offset, element)
                step_bytes = self.panel.vectors * TILE_ROWS * TILE_ROW_BYTES
                count = -(-step_bytes // LINE_BYTES // behind.tile_count)
                numbers = range(min(count, _LINES_MAX))
                lines += (w.offset(first, i64(number * LINE_BYTES), "i8") for number in numbers)
        tiles = self.height // TILE_ROWS * self.panel.vectors
        products = len(PART_PRODUCTS[len(parts)]) * tiles
        ends = [len(lines) * number // products for number in range(products + 1)]
        return iter([lines[first:last] for first, last in pairwise(ends)])

    def _part(self, unit: Unit, columns: Pointers, row: LlvmValue) -> _Part:
        """Where a part of A and of B begins."""
        w, size = unit.context.writer, SIZES_BYTES[MEMORY[unit.factors.a]]
        pitch = self._pitch(unit)
        rows: list[_Rows] = []
        for above in range(0, self.height, TILE_ROWS):
            first = w.add(row, i64(above))
            if pitch is not None:
                rows.append(_Rows(((unit.address_of_a(first), 0),), pitch * size, None))
                continue
            last = w.sub(w.add(row, self.valid or i64(self.height)), i64(1))
            places = (w.intrinsic("smin", w.add(first, i64(at)), last) for at in range(TILE_ROWS))
            pointers = tuple((unit.address_of_a(place), 0) for place in places)
            rows.append(_Rows(pointers, None, w.slot("i8", TILE_ROWS * TILE_ROW_BYTES)))
        return _Part(tuple(rows), columns, next_panel(unit, columns, row))

    @staticmethod
    def _pitch(unit: Unit) -> int | None:
        """The distance of the rows of a tile, where that is one for all; tiles begin at multiples
        of their height."""
        index, row = unit.a_index, unit.statement.row
        pitch = coefficient(index, row)
        if pitch is None and dim_mod(unit.statement.row_start, TILE_ROWS) == 0:
            pitch = row_pitch(index, row, TILE_ROWS)
        return pitch if isinstance(pitch, int) else None

    def _load_a(self, block: int, rows: _Rows, offset: LlvmValue, *, is_rest: bool) -> None:
        """Load a tile of A, whose first row is ``offset`` elements behind its beginning."""
        w, element = self.unit.context.writer, MEMORY[self.unit.factors.a]
        first, pitch = w.offset(rows.pointers[0][0], offset, element), rows.pitch
        if rows.gathered is not None:
            lanes = self.registers.shape.lanes(is_rest=is_rest)
            for number, (pointer, _) in enumerate(rows.pointers):
                found = w.load(w.offset(pointer, offset, element), "i32", lanes, 1)
                line = w.offset(rows.gathered, i64(number * TILE_ROW_BYTES), "i8")
                w.store(found, line, 1)
            first, pitch = rows.gathered, TILE_ROW_BYTES
        assert pitch is not None
        self.registers.load_a(block, first, pitch, is_rest=is_rest)
