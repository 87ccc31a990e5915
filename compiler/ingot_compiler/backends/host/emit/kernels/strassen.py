"""Contractions by Strassen's algorithm: a block of rows, tile by tile.

In: a ``Contraction`` with a ``StrassenTile`` and the emission context of its kernel, what emits
chains. Out: LLVM IR in the kernel's function. Not done here: choosing the tile
(``choose_strassen``), the parts (``strassen_factors``, ``strassen_products``,
``strassen_results``).

Rows that fill no tile, and tiles with a result that is not finite, are computed as chains: the bits
of the latter are those of a direct product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ingot_compiler.backends.host.emit.context import EmitContext
from ingot_compiler.backends.host.emit.control import for_each, values_if
from ingot_compiler.backends.host.emit.index import emit_index
from ingot_compiler.backends.host.emit.kernels.epilogue import load_numbers
from ingot_compiler.backends.host.emit.kernels.strassen_factors import emit_new_factors
from ingot_compiler.backends.host.emit.kernels.strassen_products import emit_products
from ingot_compiler.backends.host.emit.kernels.strassen_results import (
    emit_results,
    emit_stored_results,
)
from ingot_compiler.backends.host.emit.kernels.strassen_unit import StrassenUnit, strassen_unit
from ingot_compiler.backends.host.emit.operands import Operands, i64
from ingot_compiler.backends.host.llvm_value import LlvmValue, constant
from ingot_compiler.ir.dims import symbol
from ingot_compiler.lowering.loops import Contraction, RegisterTile
from ingot_compiler.lowering.strassen import StrassenTile

Emit = Callable[[EmitContext, Contraction], None]
_COLUMN = "first column"  # no other name has a space


def emit_strassen(
    context: EmitContext, statement: Contraction, tile: StrassenTile, chains: Emit
) -> None:
    """Emit one unit: the sums of its rows, if they are new, and its tiles; ``chains`` emits a
    contraction without the algorithm."""
    w, unit = context.writer, strassen_unit(context, statement, tile)
    is_whole = _is_whole(unit)
    if is_whole is None:
        emit_new_factors(unit)
    else:
        w.if_then(is_whole, lambda: emit_new_factors(unit))
    first = emit_index(context, statement.column_start)
    last = w.add(first, i64(statement.tile.vectors * unit.lanes))
    with context.scope():
        load_numbers(context, statement.epilogue, unit.lanes)
        for_each(
            w, first, last, unit.width, lambda column: _emit_tile(unit, column, is_whole, chains)
        )


def _is_whole(unit: StrassenUnit) -> LlvmValue | None:
    """Whether the unit has all rows of a tile; None: all units do."""
    s, w = unit.statement, unit.writer
    assert isinstance(s.rows, int)
    whole = s.rows // s.tile.rows * s.tile.rows
    return None if whole == s.rows else w.compare("slt", unit.start, i64(whole))


def _emit_tile(
    unit: StrassenUnit, column: LlvmValue, is_whole: LlvmValue | None, chains: Emit
) -> None:
    w = unit.writer

    def products() -> Operands:
        emit_products(unit, column)
        return (emit_results(unit),)

    if is_whole is None:
        (is_odd,) = products()
    else:
        (is_odd,) = values_if(w, is_whole, (constant(1, "i1"),), products)
    w.if_else(
        is_odd,
        lambda: _emit_chains(unit, column, chains),
        lambda: emit_stored_results(unit, column),
    )


def _emit_chains(unit: StrassenUnit, column: LlvmValue, chains: Emit) -> None:
    """The tile as a direct product, one half of its columns after the other."""
    s, w, width = unit.statement, unit.writer, unit.width // 2
    direct = replace(
        s,
        strassen=None,
        tile=RegisterTile(unit.height, unit.tile.vectors),
        column_start=symbol(_COLUMN),
    )

    def half(first: LlvmValue) -> None:
        with unit.context.scope():
            unit.context.bind({_COLUMN: first})
            chains(unit.context, direct)

    for_each(w, column, w.add(column, i64(unit.width)), width, half)
