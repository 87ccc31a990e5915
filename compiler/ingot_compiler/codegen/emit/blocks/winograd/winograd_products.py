"""The products of a block's frequencies with transformed weights.

In: a unit whose block is transformed. Out: ``[frequency][tile][column]`` in scratch. Not done here:
one register tile (``multiply``).

A sum is that of ``PARTS`` sums, each over its part of the depth, added in their order; each of
these is a chain, or that of several in registers.
Tiles behind the last one of a block are computed from what lies there, and used by nobody.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.blocks.products.accumulators import (
    AccumulatorTile,
    Axis,
    Factors,
    Pointers,
    SumLoops,
)
from ingot_compiler.codegen.emit.blocks.products.multiply import emit_sum
from ingot_compiler.codegen.emit.blocks.winograd.winograd_ahead import fetch_ahead
from ingot_compiler.codegen.emit.blocks.winograd.winograd_unit import WinogradUnit
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.dims import dim_floordiv
from ingot_compiler.kernels.winograd_tiles import PARTS, chains_of_part
from ingot_compiler.lowering.loops.loop_blocks import PANEL_COLUMNS
from ingot_runtime.lazy_dataclass import dataclass

_FACTORS = Factors("f32", "f32", "f32")
# Weights of many channels come from memory: cold 14x14x256 takes 980 us in place of 1096, 7x7x512
# 1243 in place of 1538; 28x28x128 takes 2 % more, so that it has none.
_STEPS_AHEAD, _AHEAD_DEPTH_MIN = 128, 256


@dataclass(frozen=True, slots=True)
class _Frequency:
    """Where the block's values, the unit's weights and the block's products of a frequency begin."""

    values: LlvmValue
    weights: LlvmValue
    products: LlvmValue


def emit_products(unit: WinogradUnit) -> None:
    """Frequency by frequency."""
    w, s, scratch = unit.writer, unit.statement, unit.scratch
    first = emit_index(unit.context, dim_floordiv(s.column_start, PANEL_COLUMNS))
    weights = unit.context.buffers[s.transformed]
    panel = w.offset(weights, w.mul(first, i64(_panel_step(unit))), "float")

    def frequency(number: LlvmValue) -> None:
        here = _Frequency(
            w.offset(unit.values, w.mul(number, i64(scratch.values_pitch)), "float"),
            w.offset(panel, w.mul(number, i64(unit.depth * PANEL_COLUMNS)), "float"),
            w.offset(unit.products, w.mul(number, i64(scratch.products_pitch)), "float"),
        )
        fetch_ahead(unit, number)
        if unit.holds_sums:
            _emit_held(unit, here)
        else:
            _emit_parts(unit, here)

    for_each(w, ZERO, i64(unit.shape.frequency_count), 1, frequency)


def _panel_step(unit: WinogradUnit) -> int:
    """Elements from a panel of transformed weights to the next."""
    return unit.shape.frequency_count * unit.depth * PANEL_COLUMNS


def _emit_held(unit: WinogradUnit, frequency: _Frequency) -> None:
    """Register tile by register tile, the whole depth of each: sums stay in registers."""
    w = unit.writer

    def tile(number: LlvmValue) -> None:
        sums = _sums(unit, frequency, number, ZERO, PARTS)
        for place, total in zip(_places(unit, frequency, number), sums, strict=True):
            w.store(total, place)

    for_each(w, ZERO, unit.count, unit.statement.registers.rows, tile)


def _emit_parts(unit: WinogradUnit, frequency: _Frequency) -> None:
    """Each part of the depth for all tiles: its weights stay in L1, sums wait in scratch."""
    w, part = unit.writer, unit.depth // PARTS
    chains = chains_of_part(unit.depth, unit.shape)

    def tiles(start: LlvmValue, *, is_first: bool) -> None:
        def tile(number: LlvmValue) -> None:
            sums = _sums(unit, frequency, number, start, chains)
            for place, total in zip(_places(unit, frequency, number), sums, strict=True):
                before = None if is_first else w.load(place, "float", unit.lanes)
                w.store(w.binary("fadd", before, total) if before else total, place)

        for_each(w, ZERO, unit.count, unit.statement.registers.rows, tile)

    tiles(ZERO, is_first=True)
    for_each(w, i64(part), i64(unit.depth), part, lambda start: tiles(start, is_first=False))


def _sums(
    unit: WinogradUnit, frequency: _Frequency, number: LlvmValue, start: LlvmValue, count: int
) -> Operands:
    """Emit the sums of a register tile from a depth on: ``count`` chains each, added in their
    order."""
    w = unit.writer
    length = unit.depth // (PARTS * chains_of_part(unit.depth, unit.shape))

    def more(offset: LlvmValue, before: Operands) -> Operands:
        chains = _chains(unit, frequency, number, w.add(start, offset), length)
        return tuple(w.binary("fadd", *pair) for pair in zip(before, chains, strict=True))

    first = _chains(unit, frequency, number, start, length)
    return w.loop(i64(length), i64(count * length), length, first, more) if count > 1 else first


def _chains(
    unit: WinogradUnit, frequency: _Frequency, number: LlvmValue, start: LlvmValue, length: int
) -> Operands:
    """A chain for each sum of a register tile, over so much depth."""
    w, depth = unit.writer, unit.depth
    a = w.offset(w.offset(frequency.values, start, "float"), w.mul(number, i64(depth)), "float")
    rows = tuple((a, row * depth) for row in range(unit.statement.registers.rows))
    b = w.offset(frequency.weights, w.mul(start, i64(PANEL_COLUMNS)), "float")
    ahead = _STEPS_AHEAD if depth >= _AHEAD_DEPTH_MIN else 0
    vectors = _vectors_of_weights(unit, b)
    tile = AccumulatorTile(w, rows, vectors, unit.lanes, _FACTORS, steps_ahead=ahead)
    return emit_sum(tile, SumLoops((Axis(length, 1, PANEL_COLUMNS),)))


def _vectors_of_weights(unit: WinogradUnit, first: LlvmValue) -> Pointers:
    places = (
        divmod(vector * unit.lanes, PANEL_COLUMNS)
        for vector in range(unit.statement.registers.vectors)
    )
    return tuple((first, panel * _panel_step(unit) + at) for panel, at in places)


def _places(unit: WinogradUnit, frequency: _Frequency, number: LlvmValue) -> Operands:
    """Where the products of a register tile are, in the order of its sums."""
    w, registers = unit.writer, unit.statement.registers
    first = w.offset(frequency.products, w.mul(number, i64(unit.width)), "float")
    return tuple(
        w.offset(first, i64(row * unit.width + vector * unit.lanes), "float")
        for row in range(registers.rows)
        for vector in range(registers.vectors)
    )
