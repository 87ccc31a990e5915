"""Strassen's seven products of one tile.

In: a unit whose factors are in scratch, a column. Out: the sums of each product on the stack. Not
done here: their sums (``strassen_results``), the chains (``multiply``).

A product of one block of the depth is a chain from 0 in registers, and is added to those before it:
long chains would lose what the algorithm's own sums cost, and registers do not hold two.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ingot_compiler.codegen.emit.blocks.products.accumulators import (
    AccumulatorTile,
    Axis,
    Pointers,
    SumLoops,
)
from ingot_compiler.codegen.emit.blocks.products.contraction_unit import addends_of_b, vectors_of_b
from ingot_compiler.codegen.emit.blocks.products.multiply import emit_sum
from ingot_compiler.codegen.emit.blocks.products.strassen_unit import StrassenUnit
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.convert import MEMORY
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.lowering.loops.strassen import PRODUCTS


def emit_products(unit: StrassenUnit, column: LlvmValue) -> None:
    """All products of the tile whose first column is ``column``."""
    w, depth = unit.writer, unit.tile.depth
    panels = unit.statement.b_panels
    assert panels is not None
    vectors = vectors_of_b(unit.unit, column, 2 * unit.tile.vectors)
    addends = addends_of_b(unit.unit, column, 2 * unit.tile.vectors)
    element = MEMORY[unit.unit.factors.b]

    def block(number: LlvmValue) -> None:
        offset = w.mul(number, i64(2 * depth * panels.columns))
        moved = tuple((w.offset(first, offset, element), place) for first, place in vectors)
        a, is_first = w.mul(number, i64(depth)), w.compare("eq", number, ZERO)
        for product in range(len(PRODUCTS)):
            sums = _emit_product(unit, product, a, moved, addends)
            places = [
                w.offset(unit.product(product), i64(index * unit.lanes), "float")
                for index in range(len(sums))
            ]
            w.if_else(is_first, partial(_store, w, sums, places), partial(_add, w, sums, places))

    for_each(w, ZERO, i64(unit.blocks), 1, block)


def _store(w: Writer, sums: Operands, places: Sequence[LlvmValue]) -> None:
    for value, place in zip(sums, places, strict=True):
        w.store(value, place)


def _add(w: Writer, sums: Operands, places: Sequence[LlvmValue]) -> None:
    for value, place in zip(sums, places, strict=True):
        w.store(w.binary("fadd", w.load(place, "float", value.lanes), value), place)


def _emit_product(
    unit: StrassenUnit, product: int, a: LlvmValue, b: Pointers, addends: Operands
) -> Operands:
    """One product of one block of the depth, whose rows of A begin ``a`` elements behind the
    factor; ``addends`` are added to the columns of B."""
    w, pitch, panels = unit.writer, unit.scratch.pitch, unit.statement.b_panels
    assert panels is not None
    first = w.offset(unit.factor(product), a, "float")
    rows = tuple((first, row * pitch) for row in range(unit.height))
    parts = [part for part, _ in PRODUCTS[product][1]]
    sides = [_block_of_b(unit, b, part, panels.columns) for part in parts]
    others = list(zip(sides[1:], PRODUCTS[product][1][1:], strict=True))
    added, subtracted = (
        next((block for block, (_, sign) in others if sign == wanted), ()) for wanted in (1, -1)
    )
    tile = AccumulatorTile(
        w,
        rows,
        sides[0],
        unit.lanes,
        unit.unit.factors,
        b_added=added,
        b_subtracted=subtracted,
        steps_ahead=2 * unit.tile.depth if product in (1, 2, 3, 4) else 0,
        b_addends=_addends(unit, addends, parts[0]),
        other_addends=_addends(unit, addends, parts[-1]) if len(parts) > 1 else (),
    )
    return emit_sum(tile, SumLoops((Axis(unit.tile.depth, 1, panels.columns),)))


def _addends(unit: StrassenUnit, addends: Operands, part: int) -> Operands:
    """What is added to the columns of one of the four blocks."""
    first = part % 2 * unit.tile.vectors
    return addends[first : first + unit.tile.vectors]


def _block_of_b(unit: StrassenUnit, b: Pointers, part: int, row: int) -> Pointers:
    """The vectors of one of the four blocks."""
    down, beside = divmod(part, 2)
    own = b[beside * unit.tile.vectors : (beside + 1) * unit.tile.vectors]
    return tuple((first, place + down * unit.tile.depth * row) for first, place in own)
