"""Copies between layouts: square tiles that are transposed in registers.

In: a ``Transpose`` and the emission context of its kernel. Out: code in the kernel's function.
Not done here: which operands are read so (``kinds.pointwise``), what becomes of the elements (their
epilogue).

A tile has as many rows and columns as a vector has f32 lanes, twice as many for bytes. Each of its
columns is one contiguous vector in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.codegen.emit.blocks.epilogue import is_light
from ingot_compiler.codegen.emit.blocks.few_columns import plain_copy, store_interleaved
from ingot_compiler.codegen.emit.blocks.few_rows import has_few_rows, load_separated
from ingot_compiler.codegen.emit.blocks.shuffles import transposed, transposed_bytes
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.control import for_each, if_below, multiple_below
from ingot_compiler.codegen.emit.convert import MEMORY, from_memory
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lanes import load_lanes, tail_mask
from ingot_compiler.codegen.emit.memory import emit_address
from ingot_compiler.codegen.emit.operands import ZERO, i64, zeros
from ingot_compiler.codegen.emit.statement import emit_statements
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.dims import Dim, dim_add, dim_min, substitute, symbol
from ingot_compiler.ir.types import DType, dtype_size_bits
from ingot_compiler.lowering.loops.program import Transpose
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _Tile:
    """Rows from ``row`` on and columns from ``column`` on; None: as many as there are lanes."""

    context: EmitContext
    statement: Transpose
    row: LlvmValue
    rows: LlvmValue | None
    column: LlvmValue
    columns: LlvmValue | None

    @property
    def lanes(self) -> int:
        """Rows and columns of a whole tile."""
        return _tile_lanes(self.context, self.statement)

    def mask(self, count: LlvmValue | None) -> LlvmValue | None:
        """The lanes of ``count`` rows or columns; None: all."""
        return None if count is None else tail_mask(self.context.writer, ZERO, count, self.lanes)


def emit_transpose(context: EmitContext, statement: Transpose) -> None:
    """Emit the block: all tiles of a strip of columns, then the next strip."""
    row_start, row_end = _bounds(context, statement.row_start, statement.row_block, statement.rows)
    column_start, column_end = _bounds(
        context, statement.column_start, statement.column_block, statement.columns
    )

    def strip(column: LlvmValue, columns: LlvmValue | None) -> None:
        def tile(row: LlvmValue, rows: LlvmValue | None) -> None:
            _emit_tile(_Tile(context, statement, row, rows, column, columns))

        _over_tiles(context, lanes, (row_start, row_end, statement.rows), tile)

    lanes = _tile_lanes(context, statement)
    _over_tiles(context, lanes, (column_start, column_end, statement.columns), strip)


def _tile_lanes(context: EmitContext, statement: Transpose) -> int:
    """Return the rows and columns of a tile.

    Vectors of as many bytes as there are f32 lanes leave most of each register empty, twice as many
    use it better, if there are so many columns. Twice as many elements of two bytes need more
    registers than there are.
    """
    lanes, columns = context.target.f32_lanes, statement.columns
    are_bytes = all(_is_byte(context.dtypes[buffer]) for _, buffer, _ in statement.values)
    wide = are_bytes and lanes > 1 and not (isinstance(columns, int) and columns < 2 * lanes)
    return 2 * lanes if wide else lanes


def _is_byte(dtype: DType) -> bool:
    return dtype_size_bits(dtype) == 8


def _bounds(
    context: EmitContext, start: Dim, block: int, extent: Dim
) -> tuple[LlvmValue, LlvmValue]:
    end = dim_add(start, block)
    whole = isinstance(extent, int) and extent % block == 0
    return emit_index(context, start), emit_index(context, end if whole else dim_min(end, extent))


def _over_tiles(
    context: EmitContext,
    lanes: int,
    bounds: tuple[LlvmValue, LlvmValue, Dim],
    body: Callable[[LlvmValue, LlvmValue | None], None],
) -> None:
    """Run ``body`` for whole tiles, then for the rest; ``bounds`` are a start, which is a multiple
    of the lanes, an end, which is one too or the extent, and the extent."""
    w, (start, end, extent) = context.writer, bounds
    whole = multiple_below(w, end, lanes)
    for_each(w, start, whole, lanes, lambda index: body(index, None))
    rest = i64(extent % lanes) if isinstance(extent, int) else None
    if rest is None or rest.integer:
        if_below(w, whole, end, lambda: body(whole, rest or w.sub(end, whole)))


def _emit_tile(tile: _Tile) -> None:
    """Emit one tile: loads, shuffles, the epilogue of every row."""
    context, statement = tile.context, tile.statement
    with context.scope():
        context.bind({statement.row: tile.row, statement.column: tile.column})
        copy = None if tile.rows is not None else plain_copy(context, statement, tile.lanes)
        if copy is not None:
            ((_, buffer, index),) = statement.values
            store_interleaved(context, copy[0], _load(tile, buffer, index)[: copy[1]])
            return
        planes = [_transposed(tile, buffer, index) for _, buffer, index in statement.values]
    mask = tile.mask(tile.columns)
    known = tile.lanes if tile.rows is None else tile.rows.integer
    if known is None or not is_light(statement.epilogue, known):
        _emit_through_stack(tile, mask, planes)
        return
    for number in range(known):
        _emit_row(tile, i64(number), mask, [plane[number] for plane in planes])


def _transposed(tile: _Tile, buffer: int, index: Dim) -> list[LlvmValue]:
    context, writer = tile.context, tile.context.writer
    rows = None if tile.rows is None else tile.rows.integer
    is_whole = tile.columns is None and rows == tile.statement.rows
    if rows and is_whole and has_few_rows(tile.statement, index):
        pointer = emit_address(context, buffer, index)
        return load_separated(writer, pointer, MEMORY[context.dtypes[buffer]], tile.lanes, rows)
    vectors = _load(tile, buffer, index)
    if _is_byte(tile.context.dtypes[buffer]):
        return transposed_bytes(writer, vectors)
    return transposed(writer, vectors)


def _load(tile: _Tile, buffer: int, index: Dim) -> list[LlvmValue]:
    """One vector of rows per column; zeros for rows and columns that do not exist."""
    w, name = tile.context.writer, tile.statement.column
    element = MEMORY[tile.context.dtypes[buffer]]
    mask = tile.mask(tile.rows)
    known = tile.lanes if tile.columns is None else tile.columns.integer
    vectors: list[LlvmValue] = []
    for number in range(tile.lanes):
        if known is not None and number >= known:
            vectors.append(zeros(element, tile.lanes))
            continue
        active = mask if known is not None else _if_column_exists(tile, number, mask)
        shifted = substitute(index, {name: symbol(name) + number})
        pointer = emit_address(tile.context, buffer, shifted)
        vectors.append(load_lanes(w, pointer, element, tile.lanes, active))
    return vectors


def _if_column_exists(tile: _Tile, number: int, mask: LlvmValue | None) -> LlvmValue:
    """``mask`` where the column exists, else no lane."""
    assert tile.columns is not None
    w = tile.context.writer
    exists = w.splat(w.compare("slt", i64(number), tile.columns), tile.lanes)
    return exists if mask is None else w.binary("and", exists, mask)


def _emit_row(
    tile: _Tile, row: LlvmValue, mask: LlvmValue | None, values: Sequence[LlvmValue]
) -> None:
    """Run the epilogue for row number ``row`` of the tile; ``values`` as they were in memory."""
    context, statement, w = tile.context, tile.statement, tile.context.writer
    with context.scope():
        context.bind({statement.row: w.add(tile.row, row)})
        context.vectorize(statement.column, tile.column, mask, lanes=tile.lanes)
        for (name, buffer, _), value in zip(statement.values, values, strict=True):
            dtype = context.dtypes[buffer]
            context.define(name, from_memory(w, value, dtype), dtype)
        emit_statements(context, statement.epilogue)


def _emit_through_stack(
    tile: _Tile, mask: LlvmValue | None, planes: Sequence[Sequence[LlvmValue]]
) -> None:
    """Store the tiles, then loop over their rows."""
    w, lanes = tile.context.writer, tile.lanes
    slots = [w.slot(plane[0].element, lanes * lanes) for plane in planes]
    for slot, plane in zip(slots, planes, strict=True):
        for number, value in enumerate(plane):
            w.store(value, w.offset(slot, i64(number * lanes), value.element))

    def body(row: LlvmValue) -> None:
        first = w.mul(row, i64(lanes))
        values = [
            w.load(w.offset(slot, first, plane[0].element), plane[0].element, lanes)
            for slot, plane in zip(slots, planes, strict=True)
        ]
        _emit_row(tile, row, mask, values)

    for_each(w, ZERO, tile.rows or i64(lanes), 1, body)
