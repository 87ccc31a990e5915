"""The columns of B of one unit that lie along the depth, turned once for all of its rows.

In: a unit, where the columns of a panel begin. Out: ``[depth][column]`` in scratch. Not done here:
the shuffles (``turned_factor``), the sums (``contraction_rows``).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.blocks.products.accumulators import Pointers, side_by_side
from ingot_compiler.codegen.emit.blocks.products.contraction_unit import Unit
from ingot_compiler.codegen.emit.blocks.products.turned_factor import ColumnPlaces
from ingot_compiler.codegen.emit.control import for_each, if_below, multiple_below
from ingot_compiler.codegen.emit.convert import MEMORY
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lanes import tail_mask
from ingot_compiler.codegen.emit.operands import ZERO, i64
from ingot_compiler.codegen.llvm_value import LlvmValue


def emit_turned_panel(unit: Unit, places: Pointers) -> Pointers:
    """Emit whole blocks, then a masked one; where the vectors of the first row begin."""
    context, w, lanes = unit.context, unit.context.writer, unit.lanes
    element, scratch, count = MEMORY[unit.factors.b], context.scratch, len(places) // lanes
    columns = ColumnPlaces(w, lanes, element, places)
    extent = emit_index(context, unit.statement.depth_extent)

    def block(first: LlvmValue, mask: LlvmValue | None = None) -> None:
        here = w.offset(scratch, w.mul(first, i64(unit.width)), element)
        for vector in range(count):
            for number, row in enumerate(columns.rows(vector, first, mask)):
                place = number * unit.width + vector * lanes
                w.store(row, w.offset(here, i64(place), element))

    whole = multiple_below(w, extent, lanes)
    for_each(w, ZERO, whole, lanes, block)
    if_below(w, whole, extent, lambda: block(whole, tail_mask(w, whole, extent, lanes)))
    return side_by_side(scratch, count, lanes)
