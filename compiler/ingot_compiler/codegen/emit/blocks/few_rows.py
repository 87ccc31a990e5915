"""Copies from columns of few elements, which are read as whole vectors: rows are separated.

In: a ``Transpose``, where a tile of it begins. Out: the vectors of its rows. Not done here: tiles
that are not whole, the epilogue (``transpose``), the opposite way (``few_columns``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.codegen.emit.lanes import load_lanes
from ingot_compiler.codegen.emit.operands import i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.lowering.loops.program import Transpose

_ROWS_MAX = 6  # each is made by as many shuffles, less one: those of 8 take longer than a square


def has_few_rows(statement: Transpose, index: Dim) -> bool:
    """Whether a block has all rows, which are few, and the elements of a column lie behind those
    of the column before."""
    rows = statement.rows
    if not isinstance(rows, int) or not 1 < rows <= _ROWS_MAX or statement.row_start != 0:
        return False
    steps = [coefficient(index, symbol) for symbol in (statement.row, statement.column)]
    return steps == [1, rows]


def load_separated(
    w: Writer, pointer: LlvmValue, element: str, lanes: int, rows: int
) -> list[LlvmValue]:
    """A vector of each row: as many columns as there are lanes, the first at ``pointer``."""
    starts = (w.offset(pointer, i64(number * lanes), element) for number in range(rows))
    loaded = [load_lanes(w, start, element, lanes, None) for start in starts]
    return [_separated(w, loaded, row) for row in range(rows)]


def _separated(w: Writer, loaded: Sequence[LlvmValue], row: int) -> LlvmValue:
    """Every element of one row."""
    lanes = loaded[0].lanes
    places = [divmod(row + len(loaded) * column, lanes) for column in range(lanes)]
    found = w.shuffle(loaded[0], [lane for _, lane in places])
    for number, vector in enumerate(loaded[1:], 1):
        chosen = [lanes + at if own == number else lane for lane, (own, at) in enumerate(places)]
        found = w.shuffle(found, chosen, vector)
    return found
