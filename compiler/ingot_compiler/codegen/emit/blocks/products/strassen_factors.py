"""Sums of blocks of A, the left factors of Strassen's seven products.

In: a unit. Out: ``[product][row][depth of all blocks]`` in scratch. Not done here: sums of blocks
of B, which the products make as they read them (``strassen_products``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.codegen.emit.blocks.products.strassen_unit import StrassenUnit
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.operands import ZERO, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.lowering.loops.strassen import PRODUCTS, Side

_NO_ROW = -1


def emit_new_factors(unit: StrassenUnit, count: LlvmValue) -> None:
    """Add the blocks of the unit's first ``count`` rows, unless the unit before had the same ones."""
    w = unit.writer
    last = w.slot("i64")
    with w.at(w.entry):
        w.store(i64(_NO_ROW), last)

    def tile(row: LlvmValue) -> None:
        w.store(unit.start, last)
        here = unit.at_tile(row)
        for_each(w, ZERO, i64(unit.height), 1, lambda line: _emit_row(here, line))

    def add() -> None:
        for_each(w, ZERO, count, unit.statement.tile.rows, tile)

    w.if_then(w.compare("ne", unit.start, w.load(last, "i64")), add)


def _emit_row(unit: StrassenUnit, row: LlvmValue) -> None:
    """The factors of a row of each block, a vector at a time."""
    w, depth = unit.writer, unit.tile.depth
    above = w.add(unit.start, row)
    rows = [
        unit.unit.address_of_a(above),
        unit.unit.address_of_a(w.add(above, i64(unit.height))),
    ]
    target = w.offset(unit.factors, w.mul(row, i64(unit.scratch.pitch)), "float")

    def block(number: LlvmValue) -> None:
        source = _place_of_block(unit, number)
        made = w.offset(target, w.mul(number, i64(depth)), "float")

        def vector(at: LlvmValue) -> None:
            parts = _load(unit, rows, w.add(source, at))
            here = w.offset(made, at, "float")
            for product, (side, _) in enumerate(PRODUCTS):
                place = i64(product * unit.height * unit.scratch.pitch)
                w.store(summed(w, side, parts), w.offset(here, place, "float"))

        for_each(w, ZERO, i64(depth), unit.lanes, vector)

    for_each(w, ZERO, i64(unit.blocks), 1, block)


def _place_of_block(unit: StrassenUnit, number: LlvmValue) -> LlvmValue:
    """How far behind its first element a row of A has a block of the depth of both halves."""
    s, w, length = unit.statement, unit.writer, 2 * unit.tile.depth
    if not s.taps:
        return w.mul(number, i64(length))
    ((tap, _),) = s.taps
    depth, step = s.depth_extent, coefficient(s.a_index, tap)
    assert isinstance(depth, int)
    assert step is not None
    in_tap = i64(depth // length)
    first = w.mul(w.binary("udiv", number, in_tap), emit_index(unit.context, step))
    return w.add(first, w.mul(w.binary("urem", number, in_tap), i64(length)))


def _load(unit: StrassenUnit, rows: Sequence[LlvmValue], offset: LlvmValue) -> list[LlvmValue]:
    """A vector of each of the four blocks."""
    w = unit.writer
    places = (
        w.offset(w.offset(row, offset, "float"), i64(half * unit.tile.depth), "float")
        for row in rows
        for half in range(2)
    )
    return [w.load(place, "float", unit.lanes) for place in places]


def summed(w: Writer, side: Side, parts: Sequence[LlvmValue]) -> LlvmValue:
    """A sum of blocks, or of products, the first of which has no sign."""
    (first, _), *others = side
    total = parts[first]
    for part, sign in others:
        total = w.binary("fadd" if sign > 0 else "fsub", total, parts[part])
    return total
