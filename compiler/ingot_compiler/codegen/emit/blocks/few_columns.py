"""Copies columns that lie one behind the other to rows of few elements: columns are interleaved.

In: a ``Transpose``, the vectors of a tile. Out: whether it is such a copy; whole vectors of rows,
stored. Not done here: loads, tiles that are not whole, other epilogues (``transpose``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.memory import emit_address
from ingot_compiler.codegen.emit.operands import i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.lowering.loops.loop_values import Local
from ingot_compiler.lowering.loops.program import Store, Transpose

_COLUMNS_MAX = 6  # each result is made by as many shuffles, less one: 8 take longer than rows


def plain_copy(context: EmitContext, statement: Transpose, lanes: int) -> tuple[Store, int] | None:
    """The store and the columns of a copy whose rows are all columns of the block, one row behind
    the other, and no more than a tile has."""
    columns, (store, *others) = statement.columns, statement.epilogue
    if not isinstance(columns, int) or not 1 < columns <= min(lanes, _COLUMNS_MAX):
        return None
    if others or len(statement.values) != 1 or not isinstance(store, Store):
        return None
    ((name, buffer, _),) = statement.values
    is_copy = store.value == Local(name, context.dtypes[buffer])
    is_same = context.dtypes[store.buffer] == context.dtypes[buffer]
    steps = [coefficient(store.index, symbol) for symbol in (statement.row, statement.column)]
    is_whole = statement.column_start == 0 and steps == [columns, 1]
    return (store, columns) if is_copy and is_same and is_whole else None


def store_interleaved(context: EmitContext, store: Store, columns: Sequence[LlvmValue]) -> None:
    """Store a tile; its first row and column are bound."""
    w, first = context.writer, columns[0]
    pointer = emit_address(context, store.buffer, store.index)
    for number in range(len(columns)):
        place = w.offset(pointer, i64(number * first.lanes), first.element)
        w.store(_interleaved(w, columns, number * first.lanes), place)


def _interleaved(w: Writer, columns: Sequence[LlvmValue], start: int) -> LlvmValue:
    """The elements from ``start`` on of all rows, one behind the other."""
    lanes = columns[0].lanes
    places = [divmod(start + lane, len(columns)) for lane in range(lanes)]
    found = w.shuffle(columns[0], [row for row, _ in places])
    for number, column in enumerate(columns[1:], 1):
        chosen = [lanes + row if own == number else lane for lane, (row, own) in enumerate(places)]
        found = w.shuffle(found, chosen, column)
    return found
