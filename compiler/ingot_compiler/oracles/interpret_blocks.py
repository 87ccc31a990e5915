"""Computes what the blocks of a loop program give their epilogues, one result at a time.

In: a block, the buffers, what its symbols and names are. Out: each result, and where it is. Not
done here: the epilogues (``interpret_loops``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ingot_compiler.ir.dims import Dim, evaluate
from ingot_compiler.ir.types import dtype_size_bits
from ingot_compiler.lowering.loops.bf16_pairs import (
    PART_PRODUCTS,
    TILE_DEPTH,
    add_bf16_pair,
    add_bf16_pair_to_odd,
    add_bf16_tile,
)
from ingot_compiler.lowering.loops.interpret_scalars import Number, round_to
from ingot_compiler.lowering.loops.loop_blocks import PANEL_COLUMNS
from ingot_compiler.lowering.loops.loop_parts import SplitFactors
from ingot_compiler.lowering.loops.program import (
    Attention,
    Block,
    BlockedProduct,
    Contraction,
    Depthwise,
    DepthwisePlane,
    Transpose,
    Winograd,
)
from ingot_compiler.oracles.interpret_values import Memory, Names, Symbols
from ingot_runtime.lazy_dataclass import dataclass

Results = Iterator[tuple[Symbols, Names]]
"""What an epilogue finds: the symbols of its place, and the values that the block made."""


def block_results(
    block: Block, memory: Memory, f32_lanes: int, at: Symbols, names: Names
) -> Results:
    """The results of a block at ``at`` in the order of its epilogues; each is computed when it is
    asked for. ``f32_lanes`` is the target's."""
    blocks = _Blocks(memory, f32_lanes, at, names)
    match block:
        case Contraction():
            return blocks.contraction(block)
        case BlockedProduct():
            return blocks.blocked_product(block)
        case Depthwise():
            return blocks.depthwise(block)
        case DepthwisePlane():
            return blocks.depthwise_plane(block)
        case Winograd():
            return blocks.winograd(block)
        case Attention():
            return blocks.attention(block)
        case Transpose():
            return blocks.transpose(block)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """The place of a block: ``at`` are its symbols."""

    memory: Memory
    f32_lanes: int
    at: Symbols
    names: Names

    def contraction(self, s: Contraction) -> Results:
        """Rows and columns of one tile."""
        lanes = self.f32_lanes * 32 // dtype_size_bits(s.dtype)
        ranges = (*s.taps, (s.depth, s.depth_extent))
        for row in self._block(s.row_start, s.row_block, s.rows):
            for column in self._block(s.column_start, s.tile.vectors * lanes, s.columns):
                place = {**self.at, s.row: row, s.column: column}
                if s.split is not None:
                    total = self._sum_of_parts(s, s.split, place)
                elif s.dtype == "f32" and s.b_panels and s.b_panels.together > 1:
                    total = self._sum_of_pairs(s, place)
                else:
                    total = self._sum(
                        ranges, place, (s.a, s.a_index), (s.b, s.b_index), self._addend(s, place)
                    )
                yield place, {s.accumulator: round_to(total, s.dtype)}

    def _sum_of_pairs(self, s: Contraction, place: Symbols) -> float:
        """Taps, then pairs or tiles of the depth, in the order in which they are added."""
        depth, total = evaluate(s.depth_extent, place), 0.0
        add, step = (add_bf16_tile, TILE_DEPTH) if s.in_matrix_tiles else (add_bf16_pair, 2)
        if s.rounds_to_odd:
            add = add_bf16_pair_to_odd
        for tap in _points(s.taps, place):
            for first in range(0, depth, step):
                points = [{**tap, s.depth: k} for k in range(first, min(first + step, depth))]
                missing = [0.0] * (len(points) % 2)
                a, b = (
                    [*(float(self._load(buffer, index, point)) for point in points), *missing]
                    for buffer, index in ((s.a, s.a_index), (s.b, s.b_index))
                )
                total = add(total, a, b)
        return total

    def _sum_of_parts(self, s: Contraction, split: SplitFactors, place: Symbols) -> float:
        """Taps, then tiles of the depth, in each all products of parts; or A itself by the sums of
        the parts of B."""
        depth, carried = evaluate(s.depth_extent, place), s.carried
        total = float(self._load(carried.buffer, carried.index, place)) if carried else 0.0
        left, right = (s.a, *split.a), (s.b, *split.b)
        if not self._load(split.fits, 0, place):
            for point in _points((*s.taps, (s.depth, s.depth_extent)), place):
                weight = sum(float(self._load(part, s.b_index, point)) for part in right)
                total += float(self._load(split.plain, split.plain_index, point)) * weight
            return total
        for tap in _points(s.taps, place):
            for first in range(0, depth, TILE_DEPTH):
                last = min(first + TILE_DEPTH, depth)
                points = [{**tap, s.depth: k} for k in range(first, last)]
                for own, other in PART_PRODUCTS[len(left)]:
                    a, b = (
                        [float(self._load(buffer, index, point)) for point in points]
                        for buffer, index in ((left[own], s.a_index), (right[other], s.b_index))
                    )
                    total = add_bf16_tile(total, a, b)
        return total

    def blocked_product(self, s: BlockedProduct) -> Results:
        """Rows, then columns of the panel."""
        for row in self._block(s.row_start, s.row_block, s.rows):
            for column in self._block(s.column_start, PANEL_COLUMNS, s.columns):
                place = {**self.at, s.row: row, s.column: column}
                total = 0.0
                for number in range(s.blocks * s.block):
                    weight = _weight(s, self.memory, column, number)
                    total += self._factor(s, place, row, number) * weight
                yield place, {s.accumulator: round_to(total, "f32")}

    def _factor(self, s: BlockedProduct, at: Symbols, row: int, number: int) -> float:
        """A number of A, or what its digits stand for."""
        if s.digits is not None:
            block = row * s.blocks + number // s.block
            step = float(self.memory.load(s.digits.steps, block))
            if step >= 0:
                first = block * s.digits.count * s.block + _digit_place(s, number)
                digits = (
                    int(self.memory.load(s.digits.digits, first + digit * s.block)) << 8 * digit
                    for digit in range(s.digits.count)
                )
                return step * sum(digits)
        return float(self.memory.load(s.a, evaluate(s.a_index, at) + number))

    def depthwise(self, s: Depthwise) -> Results:
        """Positions along the row, then channels."""
        for place in _points(((s.x, s.x_extent), (s.channel, s.channels)), self.at):
            total = self._sum(s.taps, place, (s.a, s.a_index), (s.w, s.w_index))
            yield place, {s.accumulator: round_to(total, s.dtype)}

    def depthwise_plane(self, s: DepthwisePlane) -> Results:
        """Rows, then pixels."""
        height, width = (evaluate(size, self.at) for size in s.image)
        for y, x in np.ndindex(*(evaluate(extent, self.at) for extent in s.extents)):
            place, total = {**self.at, s.y: y, s.x: x}, 0.0
            for point in _points(s.taps, place):
                row, column = _source_pixel(s, (y, x), point)
                if 0 <= row < height and 0 <= column < width:
                    pixel = self._load(s.a, s.a_index, {**point, s.row: row, s.column: column})
                    total += pixel * self._load(s.w, s.w_index, point)
            yield place, {s.accumulator: round_to(total, s.dtype)}

    def winograd(self, s: Winograd) -> Results:
        """Tiles, then their results, then columns; what they mean, not the way to it."""
        rows, across = (
            -(-evaluate(size, self.at) // tile)
            for size, tile in zip(s.extents, s.tile, strict=True)
        )
        tiles = evaluate(s.images, self.at) * rows * across
        width = s.registers.vectors * self.f32_lanes
        for number in self._block(s.tile_start, s.tile_block, tiles):
            (image, row), column = divmod(number // across, rows), number % across
            for place in self._tile_results(s, (row * s.tile[0], column * s.tile[1])):
                for at in self._block(s.column_start, width, s.columns):
                    found = {**self.at, s.image: image, **place, s.column: at}
                    total = self._direct_sum(s, found)
                    yield found, {s.accumulator: round_to(total, "f32")}

    def _tile_results(self, s: Winograd, first: tuple[int, int]) -> Iterator[Symbols]:
        """The results of a tile that begins at ``first``."""
        ends = [evaluate(size, self.at) for size in s.extents]
        for y in range(first[0], min(first[0] + s.tile[0], ends[0])):
            for x in range(first[1], min(first[1] + s.tile[1], ends[1])):
                yield {s.y: y, s.x: x}

    def _direct_sum(self, s: Winograd, place: Symbols) -> Number:
        """The sum over taps and channels."""
        panel, lane = divmod(place[s.column], PANEL_COLUMNS)
        total: Number = 0
        for number, tap in enumerate(np.ndindex(s.kernel)):
            pixel = {**place, s.y: place[s.y] + tap[0], s.x: place[s.x] + tap[1]}
            for channel in range(s.channels):
                row = (panel * math.prod(s.kernel) + number) * s.channels + channel
                weight = self.memory.load(s.w, row * PANEL_COLUMNS + lane)
                total += self._load(s.a, s.a_index, {**pixel, s.channel: channel}) * weight
        return total

    def transpose(self, s: Transpose) -> Results:
        """Rows, then columns."""
        for row in self._block(s.row_start, s.row_block, s.rows):
            for column in self._block(s.column_start, s.column_block, s.columns):
                place = {**self.at, s.row: row, s.column: column}
                yield (
                    place,
                    {name: self._load(buffer, index, place) for name, buffer, index in s.values},
                )

    def attention(self, s: Attention) -> Results:
        """Queries, then elements of the value."""
        for query in self._block(s.query_start, s.query_block, s.queries):
            inside = {**self.at, s.query: query}
            weights = _weights(self._scores(s, inside, query), nan_to_zero=s.nan_to_zero)
            for column in range(s.value_extent):
                place, total = {**inside, s.value: column}, 0.0
                for key, weight in enumerate(weights):
                    total += weight * self._load(s.v, s.v_index, {**place, s.key: key})
                yield place, {s.accumulator: round_to(total, "f32")}

    def _scores(self, s: Attention, inside: Symbols, query: int) -> list[float]:
        """One query's scores; -inf for keys that ``causal`` leaves out."""
        scores: list[float] = []
        offset = evaluate(s.causal_offset, inside)
        for key in range(evaluate(s.keys, inside)):
            point = {**inside, s.key: key}
            if s.causal and key > query + offset:
                scores.append(-math.inf)
                continue
            depth = ((s.depth, s.depth_extent),)
            score = s.scale * self._sum(depth, point, (s.q, s.q_index), (s.k, s.k_index))
            if s.mask is not None:
                score += self.memory.value(s.mask, point, self.names)
            scores.append(score)
        return scores

    def _block(self, start: Dim, block: int, end: Dim) -> range:
        """``start .. min(start + block, end) - 1``."""
        first = evaluate(start, self.at)
        return range(first, min(first + block, evaluate(end, self.at)))

    def _sum(
        self,
        ranges: Sequence[tuple[str, Dim]],
        place: Symbols,
        left: tuple[int, Dim],
        right: tuple[int, Dim],
        addend: Number = 0,
    ) -> Number:
        total: Number = 0
        for point in _points(ranges, place):
            total += self._load(*left, point) * (self._load(*right, point) + addend)
        return total

    def _addend(self, s: Contraction, place: Symbols) -> Number:
        """What is added to the elements of a column of B."""
        if s.b_panels is None or s.b_panels.addends is None:
            return 0
        return self.memory.load(s.b_panels.addends, place[s.column])

    def _load(self, buffer: int, index: Dim, place: Symbols) -> Number:
        return self.memory.load(buffer, evaluate(index, place))


def _digit_place(s: BlockedProduct, number: int) -> int:
    """Where a number of a row lies in its block."""
    place = number % s.block
    return place if s.bits == 8 else place // 2 + place % 2 * (s.block // 2)


def _weight(s: BlockedProduct, memory: Memory, column: int, number: int) -> float:
    """A number of a blocked product, less its zero point, times its scale."""
    panel, lane = divmod(column, PANEL_COLUMNS)
    block, half = number // s.block, 1 << (s.bits - 1)
    word, place = divmod(number * s.bits, 32)
    byte = ((panel * s.blocks * s.block * s.bits // 32 + word) * PANEL_COLUMNS + lane) * 4
    parameter = (panel * s.blocks + block) * PANEL_COLUMNS + lane

    def value(code: Number) -> int:
        bits = int(code) & (2 * half - 1)
        return (bits ^ half) - half if s.signed else bits - half

    found = value(int(memory.load(s.b, byte + place // 8)) >> place % 8)
    offset = 0 if s.zeros is None else value(memory.load(s.zeros, parameter))
    return (found - offset) * float(memory.load(s.scales, parameter))


def _source_pixel(s: DepthwisePlane, pixel: tuple[int, int], point: Symbols) -> tuple[int, int]:
    """Which pixel of the image a tap reads; it may lie outside."""
    row, column = (
        pixel[axis] * s.strides[axis] + point[name] * s.dilations[axis] - s.pads[axis]
        for axis, (name, _) in enumerate(s.taps)
    )
    return row, column


def _weights(scores: Sequence[float], *, nan_to_zero: bool) -> list[float]:
    """The softmax of one query's scores; empty where every key is masked and NaN is to become
    0."""
    if nan_to_zero and all(score == -math.inf for score in scores):
        return []
    with np.errstate(all="ignore"):
        table = np.array(scores, np.float64)
        powers = np.exp(table - np.max(table, initial=-np.inf))
        weights: list[float] = (powers / np.sum(powers)).tolist()
    return weights


def _points(ranges: Sequence[tuple[str, Dim]], place: Symbols) -> Iterator[Symbols]:
    """Every point of nested ranges, the last one fastest."""
    if not ranges:
        yield place
        return
    (name, extent), *rest = ranges
    for number in range(evaluate(extent, place)):
        yield from _points(rest, {**place, name: number})
