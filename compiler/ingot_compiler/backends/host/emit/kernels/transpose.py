"""Copies between layouts: square tiles that are transposed in registers.

In: a ``Transpose`` and the emission context of its kernel. Out: LLVM IR in the kernel's function.
Not done here: which operands are read so (``kinds.pointwise``), what becomes of the elements (their
epilogue).

A tile has as many rows and columns as a vector has f32 lanes. Each of its columns is one contiguous
vector in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ingot_compiler.backends.host.emit.context import EmitContext
from ingot_compiler.backends.host.emit.convert import MEMORY, from_memory
from ingot_compiler.backends.host.emit.index import emit_index
from ingot_compiler.backends.host.emit.kernels.epilogue import (
    DIRECT_INSTRUCTIONS_MAX,
    statement_weight,
)
from ingot_compiler.backends.host.emit.kernels.shuffles import transposed
from ingot_compiler.backends.host.emit.memory import emit_address
from ingot_compiler.backends.host.emit.statement import emit_statements
from ingot_compiler.backends.host.llvm_value import LlvmValue, constant
from ingot_compiler.ir.dims import Dim, dim_add, dim_min, substitute, symbol
from ingot_compiler.lowering.loops import Transpose


@dataclass(frozen=True, slots=True)
class _Tile:
    """Rows from ``row`` on and columns from ``column`` on; None: as many as there are lanes."""

    row: LlvmValue
    rows: LlvmValue | None
    column: LlvmValue
    columns: LlvmValue | None


def emit_transpose(context: EmitContext, statement: Transpose) -> None:
    """Emit the block: all tiles of a strip of columns, then the next strip."""
    row_start, row_end = _bounds(context, statement.row_start, statement.row_block, statement.rows)
    column_start, column_end = _bounds(
        context, statement.column_start, statement.column_block, statement.columns
    )

    def strip(column: LlvmValue, columns: LlvmValue | None) -> None:
        def tile(row: LlvmValue, rows: LlvmValue | None) -> None:
            _emit_tile(context, statement, _Tile(row, rows, column, columns))

        _over_tiles(context, row_start, row_end, statement.rows, tile)

    _over_tiles(context, column_start, column_end, statement.columns, strip)


def _bounds(
    context: EmitContext, start: Dim, block: int, extent: Dim
) -> tuple[LlvmValue, LlvmValue]:
    end = dim_add(start, block)
    whole = isinstance(extent, int) and extent % block == 0
    return emit_index(context, start), emit_index(context, end if whole else dim_min(end, extent))


def _over_tiles(
    context: EmitContext,
    start: LlvmValue,
    end: LlvmValue,
    extent: Dim,
    body: Callable[[LlvmValue, LlvmValue | None], None],
) -> None:
    """Run ``body`` for whole tiles, then for the rest; ``start`` is a multiple of the lanes,
    ``end`` too or the extent."""
    w, lanes = context.writer, context.target.f32_lanes
    last = w.sub(end, start)
    count = last.integer
    rest = constant(extent % lanes, "i64") if isinstance(extent, int) else None
    whole = constant(end.integer // lanes * lanes, "i64") if end.integer is not None else None
    if whole is None:
        whole = (
            w.binary("and", end, constant(-lanes, "i64")) if count is None or count % lanes else end
        )

    def step(index: LlvmValue, _: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        body(index, None)
        return ()

    w.loop(start, whole, lanes, (), step)
    if rest is not None and rest.integer == 0:
        return
    if whole.integer is not None and end.integer is not None:
        if whole.integer < end.integer:
            body(whole, constant(end.integer - whole.integer, "i64"))
        return
    w.if_then(w.compare("slt", whole, end), lambda: body(whole, rest or w.sub(end, whole)))


def _emit_tile(context: EmitContext, statement: Transpose, tile: _Tile) -> None:
    """Emit one tile: loads, shuffles, the epilogue of every row."""
    w, lanes = context.writer, context.target.f32_lanes
    with context.scope():
        context.bind({statement.row: tile.row, statement.column: tile.column})
        planes = [
            transposed(w, _load(context, statement, tile, *value[1:])) for value in statement.values
        ]
    mask = (
        None if tile.columns is None else context.tail_mask(constant(0, "i64"), tile.columns, lanes)
    )
    known = lanes if tile.rows is None else tile.rows.integer
    weight = sum(map(statement_weight, statement.epilogue))
    if known is not None and weight * known <= DIRECT_INSTRUCTIONS_MAX:
        for number in range(known):
            _emit_row(
                context,
                statement,
                tile,
                constant(number, "i64"),
                mask,
                [plane[number] for plane in planes],
            )
    else:
        _emit_through_stack(context, statement, tile, mask, planes)


def _load(
    context: EmitContext, statement: Transpose, tile: _Tile, buffer: int, index: Dim
) -> list[LlvmValue]:
    """One vector of rows per column; zeros for rows and columns that do not exist."""
    w, lanes = context.writer, context.target.f32_lanes
    element = MEMORY[context.dtypes[buffer]]
    mask = None if tile.rows is None else context.tail_mask(constant(0, "i64"), tile.rows, lanes)
    vectors: list[LlvmValue] = []
    for number in range(lanes):
        active = mask
        if tile.columns is not None and tile.columns.integer is None:
            exists = w.splat(w.compare("slt", constant(number, "i64"), tile.columns), lanes)
            active = exists if mask is None else w.binary("and", exists, mask)
        elif (
            tile.columns is not None
            and tile.columns.integer is not None
            and number >= tile.columns.integer
        ):
            vectors.append(LlvmValue("zeroinitializer", element, lanes))
            continue
        pointer = emit_address(context, buffer, _shifted(index, statement.column, number))
        vectors.append(
            w.load(pointer, element, lanes)
            if active is None
            else w.masked_load(pointer, active, element)
        )
    return vectors


def _emit_row(
    context: EmitContext,
    statement: Transpose,
    tile: _Tile,
    row: LlvmValue,
    mask: LlvmValue | None,
    values: Sequence[LlvmValue],
) -> None:
    """Run the epilogue for row number ``row`` of the tile; ``values`` as they were in memory."""
    w = context.writer
    with context.scope():
        context.bind({statement.row: w.add(tile.row, row)})
        context.vectorize(statement.column, tile.column, mask)
        for (name, buffer, _), value in zip(statement.values, values, strict=True):
            dtype = context.dtypes[buffer]
            context.define(name, from_memory(w, value, dtype), dtype)
        emit_statements(context, statement.epilogue)


def _emit_through_stack(
    context: EmitContext,
    statement: Transpose,
    tile: _Tile,
    mask: LlvmValue | None,
    planes: Sequence[Sequence[LlvmValue]],
) -> None:
    """Store the tiles, then loop over their rows."""
    w, lanes = context.writer, context.target.f32_lanes
    slots = [w.slot(plane[0].element, lanes * lanes) for plane in planes]
    for slot, plane in zip(slots, planes, strict=True):
        for number, value in enumerate(plane):
            w.store(value, w.offset(slot, constant(number * lanes, "i64"), value.element))

    def body(row: LlvmValue, _: tuple[LlvmValue, ...]) -> Sequence[LlvmValue]:
        first = w.mul(row, constant(lanes, "i64"))
        values = [
            w.load(w.offset(slot, first, plane[0].element), plane[0].element, lanes)
            for slot, plane in zip(slots, planes, strict=True)
        ]
        _emit_row(context, statement, tile, row, mask, values)
        return ()

    w.loop(constant(0, "i64"), tile.rows or constant(lanes, "i64"), 1, (), body)


def _shifted(index: Dim, name: str, number: int) -> Dim:
    return substitute(index, {name: symbol(name) + number})
