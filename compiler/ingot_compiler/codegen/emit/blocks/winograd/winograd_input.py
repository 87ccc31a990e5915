"""Transforms a block of tiles of an image into frequencies.

In: a unit. Out: ``[frequency][tile][block of taps][channel]`` in scratch. Not done here: the
transform of one axis (``winograd_transforms``).

A tile that reaches beyond the last row or column reads the last pixels again: its results there are
not stored, and no number comes in that is not of the tile.
"""

from __future__ import annotations

import numpy as np

from ingot_compiler.codegen.emit.blocks.winograd.winograd_transforms import to_frequencies
from ingot_compiler.codegen.emit.blocks.winograd.winograd_unit import WinogradUnit
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.memory import emit_address
from ingot_compiler.codegen.emit.operands import ZERO, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.dims import dim_floordiv, substitute, symbol
from ingot_compiler.kernels.winograd_tiles import TAPS

_NO_BLOCK = -1


def emit_new_input(unit: WinogradUnit) -> None:
    """Transform the block, unless the unit before had the same one of the same group."""
    w, s, here = unit.writer, unit.statement, unit.start
    if s.groups > 1:
        group = emit_index(unit.context, dim_floordiv(s.column_start, unit.group_columns))
        here = w.add(w.mul(here, i64(s.groups)), group)
    last = w.slot("i64")
    with w.at(w.entry):
        w.store(i64(_NO_BLOCK), last)

    def transform() -> None:
        w.store(here, last)
        unit.each_tile(lambda number: _emit_tile(unit, number))

    w.if_then(w.compare("ne", here, w.load(last, "i64")), transform)


def _emit_tile(unit: WinogradUnit, number: LlvmValue) -> None:
    """Transform one tile, block of taps by block."""
    w = unit.writer
    for block, (rows, columns) in enumerate(np.ndindex(unit.shape.blocks)):
        place = w.add(w.mul(number, i64(unit.depth)), i64(block * unit.statement.channels))
        target = w.offset(unit.values, place, "float")
        _emit_block(unit, target, (rows * TAPS, columns * TAPS))


def _emit_block(unit: WinogradUnit, target: LlvmValue, first_tap: tuple[int, int]) -> None:
    """Transform what a block of taps reads, a vector of channels at a time."""
    w, channels = unit.writer, unit.statement.channels
    pixels = _pixel_addresses(unit, first_tap)

    def vector(channel: LlvmValue) -> None:
        loaded = [
            [w.load(w.offset(pixel, channel, "float"), "float", unit.lanes) for pixel in row]
            for row in pixels
        ]
        columns = [to_frequencies(w, column) for column in zip(*loaded, strict=True)]
        here = w.offset(target, channel, "float")
        frequency = 0
        for row in zip(*columns, strict=True):
            for value in to_frequencies(w, row):
                place = i64(frequency * unit.scratch.values_pitch)
                w.store(value, w.offset(here, place, "float"))
                frequency += 1

    for_each(w, ZERO, i64(channels), unit.lanes, vector)


def _pixel_addresses(unit: WinogradUnit, first_tap: tuple[int, int]) -> list[list[LlvmValue]]:
    """Where the pixels of a tile begin, from the one of its first result's tap on."""
    s, context, w = unit.statement, unit.context, unit.writer
    rows, columns = unit.shape.patch
    stride = substitute(s.a_index, {s.x: symbol(s.x) + 1}) - s.a_index
    offsets = [
        emit_index(
            context, (unit.row(1, first_tap[1] + number, s.kernel[1] - 1) - symbol(s.x)) * stride
        )
        for number in range(columns)
    ]
    addresses: list[list[LlvmValue]] = []
    for number in range(rows):
        y = unit.row(0, first_tap[0] + number, s.kernel[0] - 1)
        first = emit_address(context, s.a, substitute(s.a_index, {s.y: y, s.channel: 0}))
        addresses.append([w.offset(first, offset, "float") for offset in offsets])
    return addresses
