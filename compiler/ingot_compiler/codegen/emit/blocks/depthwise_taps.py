"""The sums of neighbouring pixels over the taps of a depthwise convolution, one vector of channels.

In: ``DepthwiseRow``, accumulators. Out: the accumulators, with all taps added. Not done here: which
channels and pixels (``depthwise``).

An input vector that several pixels share is loaded once. Long sums are a loop over the outer taps
that carries the accumulators. Every element is one chain, taps outer to inner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

from ingot_compiler.codegen.emit.blocks.products.accumulators import Factors
from ingot_compiler.codegen.emit.blocks.products.byte_products import (
    add_byte_products,
    flipped,
    side_by_side,
)
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.convert import MEMORY, REGISTER
from ingot_compiler.codegen.emit.lanes import load_lanes
from ingot_compiler.codegen.emit.memory import emit_address
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.dims import Dim, dim_mul, substitute, symbol
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.kernels.tiles import BLOCK_CHAINS_MAX, lanes_of, taps_together
from ingot_compiler.lowering.loops.program import Depthwise
from ingot_runtime.lazy_dataclass import dataclass

Tap = tuple[int, ...]  # a number for each loop over taps that is not at run time
TapLoops = Sequence[tuple[str, int]]
Fixed = Mapping[str, Dim]  # the symbols of the loops at run time


@dataclass(frozen=True, slots=True)
class DepthwiseRow:
    """What all pixels of one vector of channels share. ``weights`` are those of every tap, or
    empty: to be loaded. ``factors``: element types, and how many taps of the first axis one step
    takes."""

    context: EmitContext
    statement: Depthwise
    channel: LlvmValue
    mask: LlvmValue | None
    weights: Mapping[Tap, LlvmValue]
    factors: Factors

    @property
    def lanes(self) -> int:
        """Channels of a vector."""
        return lanes_of(self.statement.dtype, self.context.target)

    @property
    def element(self) -> str:
        """The LLVM type of an element."""
        return REGISTER[self.statement.dtype]

    @property
    def loops(self) -> TapLoops:
        """The steps of a sum: the taps, those together counted once."""
        (first, extent), *others = self.statement.taps
        return ((first, -(-extent // self.factors.together)), *others)

    @property
    def names(self) -> tuple[str, ...]:
        """The taps' symbols, outer to inner."""
        return tuple(name for name, _ in self.statement.taps)


def all_taps(loops: TapLoops) -> list[Tap]:
    """Every tap, in the order in which it is summed."""
    return list(product(*(range(extent) for _, extent in loops)))


def emit_taps(row: DepthwiseRow, loops: TapLoops, fixed: Fixed, sums: Operands) -> Operands:
    """Emit `loops`: straight while short, else the outermost as a loop at run time; of bytes the
    innermost, for the last step of the outermost may have fewer taps together."""
    is_short = prod(extent for _, extent in loops) * len(sums) <= BLOCK_CHAINS_MAX
    if not loops or is_short or (row.factors.together > 1 and len(loops) == 1):
        return _emit_block(row, loops, fixed, sums)
    at = 0 if row.factors.together == 1 else -1
    (name, extent), inner = loops[at], [loop for loop in loops if loop is not loops[at]]

    def body(index: LlvmValue, carried: Operands) -> Operands:
        with row.context.scope():
            row.context.bind({name: index})
            return emit_taps(row, inner, {**fixed, name: symbol(name)}, carried)

    return row.context.writer.loop(ZERO, i64(extent), 1, sums, body)


def _emit_block(row: DepthwiseRow, loops: TapLoops, fixed: Fixed, sums: Operands) -> Operands:
    """Emit the sums over `loops` as straight code, one outer tap at a time, as many inner ones as
    have their weights in registers, inputs in order of address."""
    result = list(sums)
    inner = all_taps(loops[-1:])
    together = taps_together(len(inner), row.context.target)
    parts = [inner[first : first + together] for first in range(0, len(inner), together)]
    for outer, part in product(all_taps(loops[:-1]), parts):
        taps = [(*outer, *tap) for tap in part]
        weights = row.weights or load_weights(row, taps, fixed)
        inputs: dict[tuple[Dim, int], LlvmValue] = {}
        for tap, pixel in _in_order(row, taps, len(sums)):
            index = _input_index(row, _point(row, tap, fixed), pixel)
            place = index, _taps_together(row, tap)
            if place not in inputs:
                inputs[place] = _load_input(row, *place)
            result[pixel] = add_product(row, inputs[place], weights[tap], result[pixel])
    return tuple(result)


def _in_order(row: DepthwiseRow, taps: Sequence[Tap], pixels: int) -> list[tuple[Tap, int]]:
    """Order (tap, pixel) so that a shared input is used up soon after its load; per pixel, taps
    stay in order."""
    pairs = [(tap, pixel) for tap in taps for pixel in range(pixels)]
    name, index = row.names[-1] if row.names else "", row.statement.a_index
    tap_step, pixel_step = coefficient(index, name), coefficient(index, row.statement.x)
    # Addresses grow along the chain of a pixel, so ordering by address keeps the chain.
    if taps[0] and isinstance(tap_step, int) and isinstance(pixel_step, int) and tap_step > 0:
        pairs.sort(key=lambda pair: (pair[0][-1] * tap_step + pair[1] * pixel_step, pair[0]))
    return pairs


def _point(row: DepthwiseRow, tap: Tap, fixed: Fixed) -> dict[str, Dim]:
    """Bind the taps that are not `fixed` by loops to the integers of `tap`."""
    free = [name for name in row.names if name not in fixed]
    point: dict[str, Dim] = {**fixed, **dict(zip(free, tap, strict=True))}
    point[row.names[0]] = dim_mul(row.factors.together, point[row.names[0]])
    return point


def _input_index(row: DepthwiseRow, point: Fixed, pixel: int) -> Dim:
    x = row.statement.x
    return substitute(row.statement.a_index, {**point, x: symbol(x) + pixel})


def load_weights(row: DepthwiseRow, taps: Sequence[Tap], fixed: Fixed) -> dict[Tap, LlvmValue]:
    """Load the weights of `taps`."""
    buffer, index = row.statement.w, row.statement.w_index
    return {tap: _load(row, buffer, substitute(index, _point(row, tap, fixed))) for tap in taps}


def add_product(
    row: DepthwiseRow, pixel: LlvmValue, weights: LlvmValue, total: LlvmValue
) -> LlvmValue:
    """``pixel * weights + total``, where four bytes lie together of all their products."""
    w = row.context.writer
    if row.factors.together == 1:
        return w.fma(pixel, weights, total)
    return add_byte_products(w, pixel, weights, total, row.factors)


def _taps_together(row: DepthwiseRow, tap: Tap) -> int:
    """How many taps of the first axis a step takes."""
    if row.factors.together == 1:
        return 1
    (_, extent), *_ = row.statement.taps
    return min(row.factors.together, extent - row.factors.together * tap[0])


def _load_input(row: DepthwiseRow, index: Dim, count: int) -> LlvmValue:
    """One vector of channels; of bytes those of ``count`` taps, side by side in each channel."""
    if row.factors.together == 1:
        return _load(row, row.statement.a, index)
    step = coefficient(row.statement.a_index, row.names[0])
    assert step is not None
    w, element = row.context.writer, MEMORY[row.factors.a]
    vectors = [
        _load(row, row.statement.a, index + dim_mul(step, number), element)
        for number in range(count)
    ]
    return flipped(w, side_by_side(w, vectors), row.factors)


def _load(row: DepthwiseRow, buffer: int, index: Dim, element: str = "") -> LlvmValue:
    """Load one vector of channels."""
    pointer = emit_address(row.context, buffer, index)
    return load_lanes(row.context.writer, pointer, element or row.element, row.lanes, row.mask)
