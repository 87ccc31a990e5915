"""The products of a block's frequencies with transformed weights.

In: a unit whose block is transformed. Out: ``[frequency][tile][column]`` in scratch. Not done here:
one register tile (``multiply``).

A sum is that of ``PARTIAL_SUMS`` chains, each over its part of the channels, added in their order.
Tiles behind the last one of a block are computed from what lies there, and used by nobody.
"""

from __future__ import annotations

from ingot_compiler.backends.host.emit.control import for_each
from ingot_compiler.backends.host.emit.index import emit_index
from ingot_compiler.backends.host.emit.kernels.accumulators import (
    AccumulatorTile,
    Axis,
    Factors,
    Pointers,
    SumLoops,
)
from ingot_compiler.backends.host.emit.kernels.multiply import emit_sum
from ingot_compiler.backends.host.emit.kernels.winograd_unit import WinogradUnit
from ingot_compiler.backends.host.emit.operands import ZERO, i64
from ingot_compiler.backends.host.llvm_value import LlvmValue
from ingot_compiler.backends.host.winograd_tiles import PARTIAL_SUMS
from ingot_compiler.ir.dims import dim_floordiv
from ingot_compiler.lowering.loop_blocks import PANEL_COLUMNS

_FACTORS = Factors("f32", "f32", "f32")
# Weights of many channels come from memory: cold 14x14x256 takes 980 us in place of 1096, 7x7x512
# 1243 in place of 1538; 28x28x128 takes 2 % more, so that it has none.
_STEPS_AHEAD, _AHEAD_CHANNELS_MIN = 128, 256


def emit_products(unit: WinogradUnit) -> None:
    """Frequency by frequency, each part of the channels for all tiles."""
    w, s, scratch = unit.writer, unit.statement, unit.scratch
    part = s.channels // PARTIAL_SUMS
    first = emit_index(unit.context, dim_floordiv(s.column_start, PANEL_COLUMNS))
    weights = unit.context.buffers[s.transformed]
    panel = w.offset(weights, w.mul(first, i64(_panel_step(unit))), "float")

    def frequency(number: LlvmValue) -> None:
        values = w.offset(unit.values, w.mul(number, i64(scratch.values_pitch)), "float")
        products = w.offset(unit.products, w.mul(number, i64(scratch.products_pitch)), "float")
        here = w.offset(panel, w.mul(number, i64(s.channels * PANEL_COLUMNS)), "float")

        def channels(start: LlvmValue, *, is_first: bool) -> None:
            a = w.offset(values, start, "float")
            b = w.offset(here, w.mul(start, i64(PANEL_COLUMNS)), "float")
            _emit_part(unit, (a, b, products), is_first=is_first)

        channels(ZERO, is_first=True)
        for_each(w, i64(part), i64(s.channels), part, lambda start: channels(start, is_first=False))

    for_each(w, ZERO, i64(unit.shape.frequency_count), 1, frequency)


def _panel_step(unit: WinogradUnit) -> int:
    """Elements from a panel of transformed weights to the next."""
    return unit.shape.frequency_count * unit.statement.channels * PANEL_COLUMNS


def _emit_part(
    unit: WinogradUnit, places: tuple[LlvmValue, LlvmValue, LlvmValue], *, is_first: bool
) -> None:
    """Add the products of one frequency over a part of the channels, register tile by tile."""
    w, s = unit.writer, unit.statement
    values, weights, products = places
    loops = SumLoops((Axis(s.channels // PARTIAL_SUMS, 1, PANEL_COLUMNS),))
    rows, vectors = s.registers.rows, s.registers.vectors

    def tile(number: LlvmValue) -> None:
        a = w.offset(values, w.mul(number, i64(s.channels)), "float")
        pointers = tuple((a, row * s.channels) for row in range(rows))
        b = _vectors_of_weights(unit, weights)
        ahead = _STEPS_AHEAD if s.channels >= _AHEAD_CHANNELS_MIN else 0
        register_tile = AccumulatorTile(w, pointers, b, unit.lanes, _FACTORS, steps_ahead=ahead)
        sums = emit_sum(register_tile, loops)
        result = w.offset(products, w.mul(number, i64(unit.width)), "float")
        for index, total in enumerate(sums):
            row, vector = divmod(index, vectors)
            place = w.offset(result, i64(row * unit.width + vector * unit.lanes), "float")
            before = None if is_first else w.load(place, "float", unit.lanes)
            w.store(w.binary("fadd", before, total) if before else total, place)

    for_each(w, ZERO, unit.count, rows, tile)


def _vectors_of_weights(unit: WinogradUnit, first: LlvmValue) -> Pointers:
    places = (
        divmod(vector * unit.lanes, PANEL_COLUMNS)
        for vector in range(unit.statement.registers.vectors)
    )
    return tuple((first, panel * _panel_step(unit) + at) for panel, at in places)
