"""Strassen's seven products of one tile.

In: a unit whose factors are in scratch, a column. Out: the sums of each product on the stack. Not
done here: their sums (``strassen_results``), the chains (``multiply``).

A product of one block of the depth is a chain from 0 in registers, and is added to those before it:
long chains would lose what the algorithm's own sums cost, and registers do not hold two.
"""

from __future__ import annotations

from ingot_compiler.backends.host.emit.control import for_each
from ingot_compiler.backends.host.emit.kernels.accumulators import (
    AccumulatorTile,
    Axis,
    Pointers,
    SumLoops,
)
from ingot_compiler.backends.host.emit.kernels.contraction_unit import vectors_of_b
from ingot_compiler.backends.host.emit.kernels.multiply import emit_sum
from ingot_compiler.backends.host.emit.kernels.strassen_unit import StrassenUnit
from ingot_compiler.backends.host.emit.operands import ZERO, Operands, i64, zeros
from ingot_compiler.backends.host.llvm_value import LlvmValue
from ingot_compiler.lowering.strassen import PRODUCTS


def emit_products(unit: StrassenUnit, column: LlvmValue) -> None:
    """All products of the tile whose first column is ``column``."""
    w, depth, lanes = unit.writer, unit.tile.depth, unit.lanes
    panels = unit.statement.b_panels
    assert panels is not None
    vectors = vectors_of_b(unit.unit, column, 2 * unit.tile.vectors)
    _clear(unit)

    def block(number: LlvmValue) -> None:
        offset = w.mul(number, i64(2 * depth * panels.columns))
        moved = tuple((w.offset(first, offset, "float"), place) for first, place in vectors)
        a = w.mul(number, i64(depth))
        for product in range(len(PRODUCTS)):
            sums = _emit_product(unit, product, a, moved)
            first = unit.product(product)
            for index, value in enumerate(sums):
                place = w.offset(first, i64(index * lanes), "float")
                total = w.binary("fadd", w.load(place, "float", lanes), value)
                w.store(total, place)

    for_each(w, ZERO, i64(unit.blocks), 1, block)


def _clear(unit: StrassenUnit) -> None:
    """Sums start at 0."""
    w, zero = unit.writer, zeros("float", unit.lanes)
    count = len(PRODUCTS) * unit.height * unit.tile.vectors * unit.lanes
    for_each(
        w, ZERO, i64(count), unit.lanes, lambda at: w.store(zero, w.offset(unit.products, at, "float"))
    )


def _emit_product(unit: StrassenUnit, product: int, a: LlvmValue, b: Pointers) -> Operands:
    """One product of one block of the depth, whose rows of A begin ``a`` elements behind the factor."""
    w, pitch, panels = unit.writer, unit.scratch.pitch, unit.statement.b_panels
    assert panels is not None
    first = w.offset(unit.factor(product), a, "float")
    rows = tuple((first, row * pitch) for row in range(unit.height))
    sides = [_block_of_b(unit, b, part, panels.columns) for part, _ in PRODUCTS[product][1]]
    others = dict(zip(("b_added", "b_subtracted"), ((), ()), strict=True))
    if len(sides) > 1:
        sign = PRODUCTS[product][1][1][1]
        others["b_added" if sign > 0 else "b_subtracted"] = sides[1]
    tile = AccumulatorTile(w, rows, sides[0], unit.lanes, unit.unit.factors, **others)
    return emit_sum(tile, SumLoops((Axis(unit.tile.depth, 1, panels.columns),)))


def _block_of_b(unit: StrassenUnit, b: Pointers, part: int, row: int) -> Pointers:
    """The vectors of one of the four blocks."""
    down, beside = divmod(part, 2)
    own = b[beside * unit.tile.vectors : (beside + 1) * unit.tile.vectors]
    return tuple((first, place + down * unit.tile.depth * row) for first, place in own)
