"""Prefetches what a unit and the next block need from distant caches, while products are computed.

In: a unit, a frequency. Out: prefetches. Not done here: weights (``multiply_step``).

The transforms wait for the pixels of a block, and for those that the epilogue adds and stores, as long
as they compute: an image of many pixels is in the third cache. Each frequency fetches for every so
many-th tile of the block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_compiler.codegen.emit.blocks.winograd.winograd_unit import WinogradUnit
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.memory import emit_address
from ingot_compiler.codegen.emit.operands import ZERO, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.dims import Dim, dim_product, substitute, symbol
from ingot_compiler.lowering.loops.loop_values import Apply, Load, Value
from ingot_compiler.lowering.loops.program import Let, Statement, Store, Winograd

_LINE_ELEMENTS = 16  # of 64 bytes
_INTO_L2 = 2
_L2_BYTES = 1 << 20


def fetch_ahead(unit: WinogradUnit, frequency: LlvmValue) -> None:
    """Fetch what the epilogue reads and writes for the frequency's tiles, and the pixels of the tiles
    that have their numbers in the next block."""

    def tile(number: LlvmValue) -> None:
        with unit.at_tile(number):
            _fetch_epilogue(unit)
        w.if_then(is_first, lambda: _fetch_pixels_of(unit, number))

    if not _is_far(unit.statement):
        return
    w = unit.writer
    is_first = w.compare("eq", emit_index(unit.context, unit.statement.column_start), ZERO)
    for_each(unit.writer, frequency, unit.count, unit.shape.frequency_count, tile)


def _is_far(s: Winograd) -> bool:
    """Whether the image is known to be more than the second cache holds."""
    count = dim_product((s.images, *s.extents, s.channels))
    return isinstance(count, int) and 4 * count > _L2_BYTES


def _fetch_pixels_of(unit: WinogradUnit, number: LlvmValue) -> None:
    """The pixels of the tile of the next block that the tiles above it and before it do not have."""
    s = unit.statement
    with unit.at_tile(unit.writer.add(number, i64(s.tile_block))):
        _fetch_pixels(unit)


def _fetch_pixels(unit: WinogradUnit) -> None:
    s = unit.statement
    above = s.kernel[0] - 1
    for y in range(above, above + unit.shape.tile[0]):
        for x in range(s.kernel[1] - 1, s.kernel[1] - 1 + unit.shape.tile[1]):
            at: dict[str, Dim] = {s.y: symbol(s.y) + y, s.x: symbol(s.x) + x, s.channel: 0}
            _fetch(unit, s.a, substitute(s.a_index, at), s.channels)


def _fetch_epilogue(unit: WinogradUnit) -> None:
    s = unit.statement
    for buffer, index in dict.fromkeys(_places(s.epilogue)):
        if substitute(index, {s.x: symbol(s.x) + 1}) == index:
            continue
        for y in range(unit.shape.tile[0]):
            for x in range(unit.shape.tile[1]):
                at = {s.y: symbol(s.y) + y, s.x: symbol(s.x) + x, s.column: s.column_start}
                _fetch(unit, buffer, substitute(index, at), unit.width)


def _fetch(unit: WinogradUnit, buffer: int, index: Dim, count: int) -> None:
    w = unit.writer
    first = emit_address(unit.context, buffer, index)
    for start in range(0, count, _LINE_ELEMENTS):
        w.prefetch(w.offset(first, i64(start), "float"), _INTO_L2)


def _places(statements: Sequence[Statement]) -> Iterator[tuple[int, Dim]]:
    """Buffers and indices that statements read and write: a store waits for its line as a load
    does."""
    for statement in statements:
        if isinstance(statement, Store):
            yield statement.buffer, statement.index
        if isinstance(statement, Let | Store):
            yield from _loads(statement.value)


def _loads(value: Value) -> Iterator[tuple[int, Dim]]:
    if isinstance(value, Load):
        yield value.buffer, value.index
    elif isinstance(value, Apply):
        for argument in value.arguments:
            yield from _loads(argument)
