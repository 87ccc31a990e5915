"""Contractions on tiles that one instruction multiplies (AMX).

In: ``Unit`` and ``Panel`` of a contraction. Out: sums on the stack, and their epilogue. Not done
here: choosing such tiles (``kernels.matrix_tiles``), the instructions (``tile_registers``).

Two tiles of sums beside each other take a tile of A, then one of B each. A tile of B is 16 lines of
a panel, as they lie. A tile of A is read where its rows lie at one distance; else they are brought
together on the stack. Tiles at the end of a depth are narrower, in registers of their own; those
behind the last row have fewer rows, for which the registers are configured again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.codegen.emit.blocks.epilogue import (
    Columns,
    Results,
    Rows,
    emit_stored,
)
from ingot_compiler.codegen.emit.blocks.products.accumulators import Pointers, merged_dims
from ingot_compiler.codegen.emit.blocks.products.contraction_unit import Panel, Unit
from ingot_compiler.codegen.emit.blocks.products.split_factors import (
    emit_unsplit_tile,
    parts_of_a,
    parts_of_b,
)
from ingot_compiler.codegen.emit.blocks.products.tile_registers import TileRegisters, TileShape
from ingot_compiler.codegen.emit.control import for_each, if_below, multiple_below
from ingot_compiler.codegen.emit.convert import MEMORY, REGISTER
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.memory import emit_load
from ingot_compiler.codegen.emit.operands import ZERO, i64
from ingot_compiler.codegen.llvm_value import SIZES_BYTES, LlvmValue
from ingot_compiler.ir.dims import Dim, dim_min
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.kernels.matrix_tiles import TILE_ROW_BYTES, TILE_ROWS
from ingot_compiler.lowering.loops.bf16_pairs import PART_PRODUCTS
from ingot_runtime.lazy_dataclass import dataclass

Offsets = tuple[LlvmValue, LlvmValue]
"""The offsets of A and of B, in elements."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Up to 16 rows of A: a pointer and a pitch, in bytes, or a pointer for each and where they are
    brought together."""

    pointers: Pointers
    pitch: int | None
    gathered: LlvmValue | None


def emit_matrix_tiles(unit: Unit, panel: Panel) -> None:
    """Emit all rows of one panel, 16 at a time."""
    statement, w = unit.statement, unit.context.writer
    left = dim_min(statement.row_block, statement.rows - statement.row_start)
    count, start = (emit_index(unit.context, dim) for dim in (left, statement.row_start))
    whole = multiple_below(w, count, TILE_ROWS)
    registers = TileRegisters(w, unit.factors, _shape(unit))
    tile = _Tile(unit, panel, registers)
    if whole.integer != 0:
        registers.configure(i64(TILE_ROWS))
        for_each(w, ZERO, whole, TILE_ROWS, lambda row: tile.emit(w.add(start, row), None))

    def rest() -> None:
        valid = w.sub(count, whole)
        registers.configure(valid)
        tile.emit(w.add(start, whole), valid)

    if_below(w, whole, count, rest)
    registers.release()


def _shape(unit: Unit) -> TileShape:
    """How much of a tap's depth whole tiles hold, and what is behind them."""
    extent, size = unit.statement.depth_extent, SIZES_BYTES[MEMORY[unit.factors.a]]
    assert isinstance(extent, int)
    rest = extent * size % TILE_ROW_BYTES
    return TileShape(extent - rest // size, TILE_ROW_BYTES // size, rest)


@dataclass(frozen=True, slots=True)
class _Tile:
    """What all rows of a panel share."""

    unit: Unit
    panel: Panel
    registers: TileRegisters

    def emit(self, row: LlvmValue, valid: LlvmValue | None) -> None:
        """Emit up to 16 rows from ``row`` on; ``valid`` of them exist (None: all)."""
        unit, panel, statement = self.unit, self.panel, self.unit.statement
        element, split = REGISTER[unit.factors.sum], statement.split
        w = unit.context.writer
        if split is None:
            sums = self._products(row, valid)
        else:
            place = sums = w.slot(element, TILE_ROWS * panel.vectors * unit.lanes)

            def products() -> None:
                self._products(row, valid, place)

            w.if_else(
                emit_load(unit.context, split.fits, 0),
                products,
                lambda: emit_unsplit_tile(unit, panel, split, (row, valid), place),
            )
        results = Results(
            Rows(statement.row, row, TILE_ROWS, valid),
            Columns(statement.column, panel.column, panel.vectors, unit.lanes, panel.mask),
            statement.accumulator,
            statement.dtype,
            statement.epilogue,
        )
        emit_stored(unit.context, results, sums, element)

    def _products(
        self, row: LlvmValue, valid: LlvmValue | None, place: LlvmValue | None = None
    ) -> LlvmValue:
        """Multiply tiles, and store their sums."""
        unit, vectors = self.unit, self.panel.vectors
        rows = tuple(self._rows(part, row, valid) for part in parts_of_a(unit))
        self.registers.clear(vectors)
        self._taps(self._axes(), (ZERO, ZERO), lambda at: self._depth(rows, at))
        element = REGISTER[unit.factors.sum]
        sums = place or unit.context.writer.slot(element, TILE_ROWS * vectors * unit.lanes)
        self.registers.store(sums, vectors)
        return sums

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

    def _depth(self, rows: Sequence[_Rows], at: Offsets) -> None:
        """Add the products of one tap, of all parts that are multiplied."""
        w, shape, panels = (
            self.unit.context.writer,
            self.registers.shape,
            self.unit.statement.b_panels,
        )
        assert panels
        columns = parts_of_b(self.unit, self.panel)
        products = PART_PRODUCTS[len(rows)]

        def step(index: LlvmValue, *, is_rest: bool) -> None:
            a, b = w.add(at[0], index), w.add(at[1], w.mul(index, i64(panels.columns)))
            loaded: tuple[int, int] = (-1, -1)
            for own, other in products:
                if own != loaded[0]:
                    self._load_a(rows[own], a, is_rest=is_rest)
                for vector, (pointer, displacement) in enumerate(columns[other]):
                    place = None
                    if other != loaded[1]:
                        element = MEMORY[self.unit.factors.b]
                        place = w.offset(pointer, w.add(b, i64(displacement)), element)
                    self.registers.multiply(vector, place, is_rest=is_rest)
                loaded = own, other

        for_each(w, ZERO, i64(shape.whole), shape.depth, lambda index: step(index, is_rest=False))
        if shape.rest_bytes:
            step(i64(shape.whole), is_rest=True)

    def _rows(self, unit: Unit, row: LlvmValue, valid: LlvmValue | None) -> _Rows:
        """Where rows of A begin; those that do not exist are the last one once more."""
        w = unit.context.writer
        pitch = coefficient(unit.a_index, unit.statement.row)
        if isinstance(pitch, int):
            size = SIZES_BYTES[MEMORY[unit.factors.a]]
            return _Rows(((unit.address_of_a(row), 0),), pitch * size, None)
        last = w.add(row, w.sub(valid or i64(TILE_ROWS), i64(1)))
        places = (w.intrinsic("smin", w.add(row, i64(at)), last) for at in range(TILE_ROWS))
        pointers = tuple((unit.address_of_a(place), 0) for place in places)
        return _Rows(pointers, None, w.slot("i8", TILE_ROWS * TILE_ROW_BYTES))

    def _load_a(self, rows: _Rows, offset: LlvmValue, *, is_rest: bool) -> None:
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
        self.registers.load_a(first, pitch, is_rest=is_rest)
