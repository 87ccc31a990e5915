"""Contractions by Strassen's algorithm: a block of rows, tile by tile.

In: a ``Contraction`` with a ``StrassenTile`` and the emission context of its kernel, what emits
a direct product. Out: code in the kernel's function. Not done here: choosing the tile
(``choose_strassen``), the parts (``strassen_factors``, ``strassen_products``,
``strassen_results``).

Rows and columns that fill no tile, and tiles with a result that is not finite, are computed without
it: the bits of the latter are those of a direct product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ingot_compiler.codegen.emit.blocks.epilogue import load_numbers
from ingot_compiler.codegen.emit.blocks.products.strassen_factors import emit_new_factors
from ingot_compiler.codegen.emit.blocks.products.strassen_products import emit_products
from ingot_compiler.codegen.emit.blocks.products.strassen_results import (
    emit_results,
    emit_stored_results,
)
from ingot_compiler.codegen.emit.blocks.products.strassen_unit import StrassenUnit, strassen_unit
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.control import for_each, if_below, multiple_below
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.operands import ZERO, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.dims import Dim, dim_min, symbol
from ingot_compiler.lowering.loops.loop_parts import RegisterTile, StrassenTile
from ingot_compiler.lowering.loops.program import Contraction

Emit = Callable[[EmitContext, Contraction], None]
_ROW, _COLUMN = "first row", "first column"  # no other name has a space


def emit_strassen(
    context: EmitContext, statement: Contraction, tile: StrassenTile, direct: Emit
) -> None:
    """Emit one unit: the sums of its rows, if they are new, and its tiles; ``direct`` emits a
    contraction without the algorithm."""
    w, unit = context.writer, strassen_unit(context, statement, tile)
    left = dim_min(statement.row_block, statement.rows - statement.row_start)
    count = emit_index(context, left)
    first = emit_index(context, statement.column_start)
    last = w.add(first, i64(statement.tile.vectors * unit.lanes))
    whole = _whole_rows(unit, count, last)
    emit_new_factors(unit, whole)

    def column(at: LlvmValue) -> None:
        def tile_of(row: LlvmValue) -> None:
            _emit_tile(unit.at_tile(row), at, direct)

        for_each(w, ZERO, whole, statement.tile.rows, tile_of)
        rest = unit.at_tile(whole)
        if_below(w, whole, count, lambda: _emit_direct(rest, at, statement.rows, direct))

    with context.scope():
        load_numbers(context, statement.epilogue, unit.lanes)
        for_each(w, first, last, unit.width, column)


def _whole_rows(unit: StrassenUnit, count: LlvmValue, behind: LlvmValue) -> LlvmValue:
    """How many of ``count`` rows have tiles; none in a unit that has fewer columns than a tile.
    ``behind``: its last column and one."""
    w, s = unit.writer, unit.statement
    whole = multiple_below(w, count, s.tile.rows)
    if unit.columns % unit.width == 0:
        return whole
    return w.select(w.compare("sle", behind, i64(unit.columns)), whole, ZERO)


def _emit_tile(unit: StrassenUnit, column: LlvmValue, direct: Emit) -> None:
    behind = symbol(_ROW) + unit.statement.tile.rows
    emit_products(unit, column)
    unit.writer.if_else(
        emit_results(unit),
        lambda: _emit_direct(unit, column, behind, direct),
        lambda: emit_stored_results(unit, column),
    )


def _emit_direct(unit: StrassenUnit, column: LlvmValue, behind: Dim, direct: Emit) -> None:
    """The rows from the tile's first one on, without those from ``behind`` on, as a direct product,
    one half of the tile's columns after the other."""
    s, w, width = unit.statement, unit.writer, unit.width // 2
    product = replace(
        s,
        strassen=None,
        rows=behind,
        tile=RegisterTile(unit.height, unit.tile.vectors),
        row_start=symbol(_ROW),
        column_start=symbol(_COLUMN),
    )

    def half(first: LlvmValue) -> None:
        with unit.context.scope():
            unit.context.bind({_ROW: unit.start, _COLUMN: first})
            direct(unit.context, product)

    end = w.add(column, i64(unit.width))
    if unit.columns % unit.width:
        end = w.intrinsic("smin", end, i64(unit.columns))
    for_each(w, column, end, width, half)
