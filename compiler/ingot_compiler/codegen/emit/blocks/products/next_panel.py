"""What the tiles of a panel of B fetch of the panel behind it, while they use their own.

In: ``Unit``, where the vectors of a panel begin, a row. Out: ``NextPanel``. Not done here: the
loops that fetch (``multiply``, ``matrix_tiles``).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.blocks.products.accumulators import NextPanel, Pointers
from ingot_compiler.codegen.emit.blocks.products.contraction_unit import Unit
from ingot_compiler.codegen.emit.convert import MEMORY
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.operands import i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.dims import (
    Dim,
    dim_add,
    dim_floordiv,
    dim_max,
    dim_min,
    dim_product,
    substitute,
    symbol_set,
)
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.lowering.kinds.program import INDEX
from ingot_compiler.lowering.loops.program import Contraction

CACHED_ELEMENTS_MAX = 1 << 18  # 1 MiB of f32: what is not larger stays near


def next_panel(unit: Unit, b: Pointers, row: LlvmValue) -> NextPanel | None:
    """What the tile at a row fetches of the panel behind the one that begins at ``b``: of a large
    B, several tiles above one another, all of which read a panel before the next one.

    One thread of an Emerald Rapids, weights from memory, by the time without: 0.87 with 32 rows,
    0.91 with 128, 0.99 with 512; bert_base 0.94, gpt2_prefill 0.87, by x86-64-v3 0.93. One of a
    Zen 5 reaches 97 % of its peak with such a kernel, 90 to 93 without.
    """
    statement, context, height = unit.statement, unit.context, unit.statement.tile.rows
    extents, w = [extent for _, extent in statement.taps], unit.context.writer
    size = dim_product((*extents, statement.depth_extent, unit.width))
    (first_row, rows), columns = _rows_of_panel(statement), statement.columns
    if not isinstance(size, int) or not isinstance(columns, int) or not statement.b_panels:
        return None
    is_large = size // unit.width * columns > CACHED_ELEMENTS_MAX
    is_fetched = unit.factors.sum == "f32" or statement.in_matrix_tiles
    if not is_large or not is_fetched or typical(rows) <= height:
        return None
    tiles = dim_max(1, dim_floordiv(dim_add(rows, height - 1), height))
    count, start = emit_index(context, tiles), emit_index(context, first_row)
    number = w.binary("udiv", w.sub(row, start), i64(height))
    first, displacement = b[0]
    share = w.binary("udiv", w.mul(number, i64(size)), count)
    place = w.add(_behind(unit, share, size, len(b)), i64(displacement))
    ratio = w.binary("udiv", i64(len(b) << NextPanel.RATIO_BITS), count)
    return NextPanel(w.offset(first, place, MEMORY[unit.factors.b]), ratio, typical(tiles))


def _behind(unit: Unit, share: LlvmValue, size: int, vectors: int) -> LlvmValue:
    """Where a share of a panel, of so many elements, lies in the next one: vectors lie beside each
    other in memory, or their parts of a depth that is multiplied in turns do."""
    w, panels = unit.context.writer, unit.statement.b_panels
    assert panels
    own, step = size * panels.columns // unit.width, panels.step
    if own == step or not isinstance(step, int):
        return w.add(share, i64(size))
    vector = w.binary("udiv", share, i64(own))
    return w.add(w.add(share, w.mul(vector, i64(step - own))), i64(vectors * step))


def _rows_of_panel(statement: Contraction) -> tuple[Dim, Dim]:
    """The first of the rows that meet a panel before the next one, and how many there are: all, or
    those of a unit where the unit behind it has other columns."""
    start = statement.column_start
    first, second = (substitute(start, {INDEX: index}) for index in (0, 1))
    if first == second and not symbol_set(start) - {INDEX}:
        return 0, statement.rows
    return statement.row_start, dim_min(statement.row_block, statement.rows)
