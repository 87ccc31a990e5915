"""Contractions: ``C = sum over taps and depth of A * B``, in register tiles with a fused epilogue.

In: a ``Contraction`` and the emission context of its kernel. Out: code in the kernel's function.
Not done here: choosing the tile (``tiles``), the rows of a panel (``contraction_rows``), packing B,
splitting over threads.

The sum of every element has the order of its blocks (``sum_blocks``), so that no tile, tail, row
block or thread count changes a bit. Rows beyond the last are a tile of their own where the extent
is known; otherwise they are clamped to the last row and not stored. Columns beyond the last full
panel are a narrower copy, or go vector by vector where their number is symbolic.
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.codegen.emit.blocks.epilogue import load_numbers
from ingot_compiler.codegen.emit.blocks.products.accumulators import (
    AccumulatorTile,
    Pointers,
)
from ingot_compiler.codegen.emit.blocks.products.along_depth import emit_along_depth
from ingot_compiler.codegen.emit.blocks.products.byte_products import flips_signs, sign_bits
from ingot_compiler.codegen.emit.blocks.products.contraction_rows import emit_rows
from ingot_compiler.codegen.emit.blocks.products.contraction_unit import (
    Panel,
    Unit,
    addends_of_b,
    columns_of_b,
    contraction_unit,
    vectors_of_b,
)
from ingot_compiler.codegen.emit.blocks.products.multiply import emit_sum
from ingot_compiler.codegen.emit.blocks.products.strassen import emit_strassen
from ingot_compiler.codegen.emit.blocks.products.team_contraction import emit_alone, emit_team
from ingot_compiler.codegen.emit.blocks.products.turned_panel import emit_turned_panel
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.convert import REGISTER
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lanes import known_tail_mask, tail_mask
from ingot_compiler.codegen.emit.operands import Operands, i64, zeros
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.kernels.tiles import lanes_of_rest
from ingot_compiler.lowering.loops.loop_blocks import is_turned_whole, lies_along_depth
from ingot_compiler.lowering.loops.program import Contraction


def emit_contraction(context: EmitContext, statement: Contraction) -> None:
    """Emit one unit of a contraction: its row block and its panel of columns."""
    if statement.team is not None:
        if context.target.team_units == statement.team.units:
            emit_team(context, statement, statement.team)
        else:
            emit_alone(context, statement, emit_contraction)
        return
    if statement.strassen is not None:
        emit_strassen(context, statement, statement.strassen, emit_contraction)
        return
    if lies_along_depth(statement):
        emit_along_depth(context, statement)
        return
    unit = contraction_unit(context, statement)
    start = emit_index(context, statement.column_start)
    with context.scope():
        load_numbers(context, statement.epilogue, unit.lanes)
        if isinstance(statement.columns, int):
            _emit_known_columns(unit, statement.columns, start)
        else:
            _emit_symbolic_columns(unit, emit_index(context, statement.columns), start)


def _emit_known_columns(unit: Unit, columns: int, start: LlvmValue) -> None:
    """Emit the full panel, the narrower last one, or a choice between them."""
    w, rest = unit.context.writer, columns % unit.width

    def full() -> None:
        _emit_panel(unit, start, unit.statement.tile.vectors, None)

    def narrow() -> None:
        mask = known_tail_mask(rest, unit.lanes)
        lanes = lanes_of_rest(rest, unit.statement.dtype, unit.factors.together, w.target)
        narrow = 0 if lanes == unit.lanes else lanes
        _emit_panel(unit, start, -(-rest // unit.lanes), mask, narrow)

    if rest == 0:
        full()
    elif columns < unit.width:
        narrow()
    else:
        _emit_choice(unit, i64(columns - unit.width), start, full, narrow)


def _emit_symbolic_columns(unit: Unit, columns: LlvmValue, start: LlvmValue) -> None:
    """Emit the full panel, and one of as many vectors for a last one of which the last vector alone
    is no whole one; of fewer, a loop over single vectors."""
    w, lanes, vectors = unit.context.writer, unit.lanes, unit.statement.tile.vectors

    def full() -> None:
        _emit_panel(unit, start, unit.statement.tile.vectors, None)

    def single(column: LlvmValue) -> None:
        _emit_panel(unit, column, 1, tail_mask(w, column, columns, lanes))

    def singles() -> None:
        for_each(w, start, columns, lanes, single)

    def masked() -> None:
        mask = tail_mask(w, w.add(start, i64(unit.width - lanes)), columns, lanes)
        _emit_panel(unit, start, vectors, mask)

    def narrow() -> None:
        if vectors == 1:
            singles()
            return
        nearly = w.sub(columns, i64(unit.width - lanes + 1))
        _emit_choice(unit, nearly, start, masked, singles)

    _emit_choice(unit, w.sub(columns, i64(unit.width)), start, full, narrow)


def _emit_choice(
    unit: Unit,
    last: LlvmValue,
    start: LlvmValue,
    full: Callable[[], None],
    rest: Callable[[], None],
) -> None:
    """Run `full` where the panel at `start` begins at column `last` or before, else `rest`."""
    w = unit.context.writer
    if start.integer is not None and last.integer is not None:
        emit = full if start.integer <= last.integer else rest
        emit()
        return
    w.if_else(w.compare("sle", start, last), full, rest)


def _emit_panel(
    unit: Unit, column: LlvmValue, vectors: int, mask: LlvmValue | None, last_lanes: int = 0
) -> None:
    """Emit all row tiles of one panel."""
    b = vectors_of_b(unit, column, vectors)
    flips = not unit.statement.in_matrix_tiles and flips_signs(unit.context.target, unit.factors)
    starts = _starts(unit, b) if flips else ()
    addends = addends_of_b(unit, column, vectors)
    columns = columns_of_b(unit, column, vectors, are_whole=mask is None)
    if is_turned_whole(unit.statement):
        b, columns = emit_turned_panel(unit, columns), ()
    emit_rows(unit, Panel(column, mask, b, starts, last_lanes, addends, columns))


def _starts(unit: Unit, b: Pointers) -> Operands:
    """What the sums of the columns start at: 0 less what flipping the signs of A adds."""
    w, factors = unit.context.writer, unit.factors
    zero = zeros(REGISTER[factors.sum], unit.lanes)
    tile = AccumulatorTile(w, b[:1], b, unit.lanes, factors, fixed=sign_bits(unit.lanes))
    return tuple(w.binary("sub", zero, total) for total in emit_sum(tile, unit.sum))
