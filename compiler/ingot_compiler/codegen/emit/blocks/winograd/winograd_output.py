"""Transforms the products of a block's frequencies into results.

In: a unit whose products are there. Out: IR that runs the epilogue for each result. Not done here:
the transform of one axis (``winograd_transforms``), the epilogue (``epilogue``).

A number that is not finite, in the tile or in a sum on the way, makes a result of the tile one: each
frequency goes into some result. Then, and only then, the tile's results are computed as a
contraction does, over taps and channels: the same bits.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.blocks.epilogue import (
    Columns,
    Results,
    Rows,
    emit_epilogue,
)
from ingot_compiler.codegen.emit.blocks.products.accumulators import (
    AccumulatorTile,
    Factors,
    SumLoops,
)
from ingot_compiler.codegen.emit.blocks.products.multiply import emit_sum
from ingot_compiler.codegen.emit.blocks.products.sum_loops import loops_in_blocks
from ingot_compiler.codegen.emit.blocks.winograd.winograd_transforms import to_results
from ingot_compiler.codegen.emit.blocks.winograd.winograd_unit import WinogradUnit
from ingot_compiler.codegen.emit.control import for_each, values_if
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lanes import tail_mask
from ingot_compiler.codegen.emit.memory import emit_address
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64, zeros
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.dims import (
    Dim,
    dim_add,
    dim_floordiv,
    dim_min,
    dim_mod,
    dim_mul,
    substitute,
    symbol,
)
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.lowering.loops.loop_blocks import PANEL_COLUMNS


def emit_results(unit: WinogradUnit) -> None:
    """Tile by tile, vector by vector."""
    w, s = unit.writer, unit.statement
    start = emit_index(unit.context, s.column_start)
    left = s.columns - s.column_start if s.columns % unit.width else unit.width
    width = emit_index(unit.context, dim_min(unit.width, left))

    def tile(number: LlvmValue) -> None:
        products = w.offset(unit.products, w.mul(number, i64(unit.width)), "float")

        def vector(offset: LlvmValue) -> None:
            _emit_vector(unit, w.offset(products, offset, "float"), w.add(start, offset))

        for_each(w, ZERO, width, unit.lanes, vector)

    unit.each_tile(tile)


def _emit_vector(unit: WinogradUnit, products: LlvmValue, column: LlvmValue) -> None:
    """The results of a tile for one vector of columns, row by row."""
    w, s = unit.writer, unit.statement
    found = _transformed(unit, products)
    total = found[0]
    for value in found[1:]:
        total = w.binary("fadd", total, value)
    scaled = w.binary("fmul", total, zeros("float", unit.lanes))
    is_odd = w.any_lane(w.compare("uno", scaled, scaled))
    values = values_if(w, is_odd, found, lambda: _direct_sums(unit, column))
    whole = s.columns % unit.lanes == 0
    mask = None if whole else tail_mask(w, column, i64(s.columns), unit.lanes)
    across = unit.shape.tile[1]
    for index, value in enumerate(values):
        y, x = divmod(index, across)
        _emit_result(unit, (y, x), value, Columns(s.column, column, 1, unit.lanes, mask))


def _transformed(unit: WinogradUnit, products: LlvmValue) -> Operands:
    """The results of a tile from its frequencies, row by row."""
    w, (rows, across) = unit.writer, unit.shape.patch

    def load(number: int) -> LlvmValue:
        place = i64(number * unit.scratch.products_pitch)
        return w.load(w.offset(products, place, "float"), "float", unit.lanes)

    columns = [
        to_results(w, [load(row * across + column) for row in range(rows)])
        for column in range(across)
    ]
    return tuple(value for row in zip(*columns, strict=True) for value in to_results(w, row))


def _emit_result(
    unit: WinogradUnit, place: tuple[int, int], value: LlvmValue, columns: Columns
) -> None:
    """Run the epilogue for one result of a tile, if it is there."""
    context, w, s = unit.context, unit.writer, unit.statement
    y = emit_index(context, symbol(s.y) + place[0])
    x = emit_index(context, symbol(s.x) + place[1])

    def run() -> None:
        with context.scope():
            context.bind({s.y: y})
            rows = Rows(s.x, x, 1)
            emit_epilogue(
                context, Results(rows, columns, s.accumulator, "f32", s.epilogue), [value]
            )

    inside = [
        w.compare("slt", at, emit_index(context, s.extents[axis]))
        for axis, at in enumerate((y, x))
        if place[axis] > 0 and not unit.is_whole(axis)
    ]
    if not inside:
        run()
        return
    w.if_then(inside[0] if len(inside) == 1 else w.binary("and", *inside), run)


def _direct_sums(unit: WinogradUnit, column: LlvmValue) -> Operands:
    """The results of a tile for one vector of columns, summed over taps and channels."""
    context, w, s = unit.context, unit.writer, unit.statement
    pixels: list[tuple[LlvmValue, int]] = []
    for y in range(unit.shape.tile[0]):
        for x in range(unit.shape.tile[1]):
            at: dict[str, Dim] = {s.y: unit.row(0, y), s.x: unit.row(1, x), s.channel: 0}
            pixels.append((emit_address(context, s.a, substitute(s.a_index, at)), 0))
    with context.scope():
        context.bind({s.column: column})
        taps = s.kernel[0] * s.kernel[1]
        panel = dim_floordiv(symbol(s.column), PANEL_COLUMNS) * (taps * s.channels * PANEL_COLUMNS)
        weights = emit_address(
            context, s.w, dim_add(panel, dim_mod(symbol(s.column), PANEL_COLUMNS))
        )
    factors = Factors("f32", context.dtypes[s.w], "f32")
    tile = AccumulatorTile(w, tuple(pixels), ((weights, 0),), unit.lanes, factors)
    return emit_sum(tile, _direct_loops(unit))


def _direct_loops(unit: WinogradUnit) -> SumLoops:
    """Taps, outer to inner, then channels; the last taps join these where they lie as one, as those of
    a contraction do."""
    s = unit.statement
    taps, depth = [(s.y, s.kernel[0]), (s.x, s.kernel[1])], s.channels
    tap = dim_mul(s.kernel[1], symbol(s.y)) + symbol(s.x)
    weight = dim_mul(PANEL_COLUMNS, dim_mul(s.channels, tap) + symbol(s.channel))
    a_index = s.a_index
    if (coefficient(a_index, s.x), coefficient(a_index, s.channel)) == (s.channels, 1):
        depth *= taps.pop()[1]
        a_index, weight = (substitute(index, {s.x: 0}) for index in (a_index, weight))
    return loops_in_blocks(unit.context, (*taps, (s.channel, depth)), a_index, weight)
