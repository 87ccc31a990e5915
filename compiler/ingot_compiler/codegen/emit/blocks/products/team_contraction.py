"""Contractions of a team of units: the units share memory for their factors, and each has its own
results.

In: a ``Contraction`` with a team, the context of its kernel. Out: code. Not done here: the sum
(``team_sum``), contractions of one unit (``contraction``).

The team computes whole tiles. Rows and columns that are not there are the last ones again, and are
not stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ingot_compiler.codegen.emit.blocks.epilogue import (
    Columns,
    Results,
    Rows,
    emit_epilogue,
    load_numbers,
)
from ingot_compiler.codegen.emit.blocks.products.contraction_rows import row_pointers
from ingot_compiler.codegen.emit.blocks.products.contraction_unit import Unit, contraction_unit
from ingot_compiler.codegen.emit.blocks.products.team_memory import (
    TeamColumns,
    TeamMemory,
    team_slots,
)
from ingot_compiler.codegen.emit.blocks.products.team_sum import emit_team_sum
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.control import for_each, if_below
from ingot_compiler.codegen.emit.convert import MEMORY
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lanes import known_tail_mask, tail_mask
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.dims import dim_mul, symbol
from ingot_compiler.kernels.tiles import lanes_of
from ingot_compiler.lowering.loops.loop_parts import RegisterTile, Team
from ingot_compiler.lowering.loops.program import Contraction

_PART = "part of a panel"
_ALONE = RegisterTile(4, 2)  # eight sums, which any machine has registers for


def emit_team(context: EmitContext, statement: Contraction, team: Team) -> None:
    """Emit one unit, whose team runs beside it."""
    unit = contraction_unit(context, statement)
    place = emit_index(context, team.place)
    row, column = (
        emit_index(context, start) for start in (statement.row_start, statement.column_start)
    )
    with context.scope():
        load_numbers(context, statement.epilogue, unit.lanes)
        rows = _rows(unit, row, team.units)
        columns = _columns(unit, column)
        memory = TeamMemory(
            unit, team.units, place, rows, columns, *team_slots(unit, team.units, place)
        )
        _emit_results(unit, (row, column), emit_team_sum(memory), team.units)


def emit_alone(
    context: EmitContext, statement: Contraction, emit: Callable[[EmitContext, Contraction], None]
) -> None:
    """Emit one unit on a machine without such a memory: ``emit`` writes parts of it, with tiles
    that the machine has registers for."""
    w, tile = context.writer, statement.tile
    own = RegisterTile(min(tile.rows, _ALONE.rows), min(tile.vectors, _ALONE.vectors))
    width = own.vectors * lanes_of(statement.dtype, context.target)
    start = statement.column_start + dim_mul(symbol(_PART), width)
    alone = replace(statement, team=None, tile=own, column_start=start)

    def part(number: LlvmValue) -> None:
        with context.scope():
            context.bind({_PART: number})
            first, columns = (emit_index(context, each) for each in (start, statement.columns))
            if_below(w, first, columns, lambda: emit(context, alone))

    first, rows = (emit_index(context, each) for each in (statement.row_start, statement.rows))
    parts = i64(tile.vectors // own.vectors)
    if_below(w, first, rows, lambda: for_each(w, ZERO, parts, 1, part))


def _rows(unit: Unit, row: LlvmValue, units: int) -> Operands:
    """Where the rows of A of this unit begin."""
    w, statement, count = unit.context.writer, unit.statement, unit.statement.tile.rows
    if _divides(count * units, statement.rows):
        pointers = row_pointers(unit, row, count, None)
        return tuple(w.offset(base, i64(at), MEMORY[unit.factors.a]) for base, at in pointers)
    last = w.sub(emit_index(unit.context, statement.rows), i64(1))
    numbers = (w.intrinsic("smin", w.add(row, i64(number)), last) for number in range(count))
    return tuple(unit.address_of_a(number) for number in numbers)


def _columns(unit: Unit, column: LlvmValue) -> tuple[TeamColumns, ...]:
    """Where the vectors of B begin; lanes that no panel holds must not be read."""
    w, columns, lanes = unit.context.writer, unit.statement.columns, unit.lanes
    assert isinstance(columns, int)
    found = list[TeamColumns]()
    for first in range(0, unit.width, lanes):
        start, mask = w.add(column, i64(first)), None
        if columns % unit.width:
            start = w.intrinsic("smin", start, i64((columns - 1) // lanes * lanes))
        if columns % lanes and unit.statement.b_panels is None:
            mask = tail_mask(w, start, i64(columns), lanes)
        found.append(TeamColumns(unit.address_of_b(start), mask))
    return tuple(found)


def _emit_results(
    unit: Unit, start: tuple[LlvmValue, LlvmValue], sums: Operands, units: int
) -> None:
    """The epilogue, of the columns that are there."""
    columns, (row, column) = unit.statement.columns, start
    assert isinstance(columns, int)
    rest = columns % unit.width

    def full() -> None:
        _emit_rows(unit, row, _tile_columns(unit, column, unit.width), sums, units)

    def narrow() -> None:
        _emit_rows(unit, row, _tile_columns(unit, column, rest), sums, units)

    if not rest:
        full()
    elif columns < unit.width:
        narrow()
    else:
        w = unit.context.writer
        w.if_else(w.compare("sle", column, i64(columns - unit.width)), full, narrow)


def _tile_columns(unit: Unit, column: LlvmValue, count: int) -> Columns:
    mask = known_tail_mask(count, unit.lanes)
    return Columns(unit.statement.column, column, -(-count // unit.lanes), unit.lanes, mask)


def _emit_rows(unit: Unit, row: LlvmValue, columns: Columns, sums: Operands, units: int) -> None:
    """The epilogue, of the rows that are there."""
    w, statement, count = unit.context.writer, unit.statement, unit.statement.tile.rows
    vectors = statement.tile.vectors
    kept = tuple(total for number, total in enumerate(sums) if number % vectors < columns.vectors)

    def rows(valid: LlvmValue | None) -> None:
        results = Results(
            Rows(statement.row, row, count, valid),
            columns, statement.accumulator, statement.dtype, statement.epilogue,
        )  # fmt: skip
        emit_epilogue(unit.context, results, kept)

    if _divides(count * units, statement.rows):
        rows(None)
        return
    left = w.sub(emit_index(unit.context, statement.rows), row)
    valid = w.intrinsic("smin", left, i64(count))
    w.if_then(w.compare("sgt", left, ZERO), lambda: rows(valid))


def _divides(height: int, rows: object) -> bool:
    """Whether all tiles are whole."""
    return isinstance(rows, int) and rows % height == 0
