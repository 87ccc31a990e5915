"""Depthwise convolutions: one row of pixels, channels in lanes.

In: a ``Depthwise`` and the emission context of its kernel. Out: code in the kernel's function.
Not done here: the taps of a group of pixels (``depthwise_taps``), haloes, striding over images
(index expressions), splitting over threads.

``pixels`` neighbouring results are accumulated together, vector of channels after vector: memory is
read in the order in which it lies. The weights of a vector are in registers where those of all taps
fit; otherwise they are loaded where they are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ingot_compiler.codegen.emit.blocks.depthwise_taps import (
    DepthwiseRow,
    add_product,
    all_taps,
    emit_taps,
    load_weights,
)
from ingot_compiler.codegen.emit.blocks.epilogue import (
    Columns,
    Results,
    Rows,
    emit_epilogue,
    load_numbers,
)
from ingot_compiler.codegen.emit.blocks.products.accumulators import Factors
from ingot_compiler.codegen.emit.blocks.products.byte_products import flips_signs, sign_bits
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.control import for_each, if_below, multiple_below
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lanes import known_tail_mask, tail_mask
from ingot_compiler.codegen.emit.operands import ZERO, i64, zeros
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.rules.window_rules import BYTES
from ingot_compiler.kernels.tiles import BLOCK_CHAINS_MAX, lanes_of, rows_together
from ingot_compiler.lowering.loops.program import Depthwise
from ingot_runtime.lazy_dataclass import dataclass

_SPARE_REGISTERS = 4  # inputs in flight


@dataclass(frozen=True, slots=True)
class Pixels:
    """``count`` neighbouring pixels from ``first`` on."""

    first: LlvmValue
    count: int


def emit_depthwise(context: EmitContext, statement: Depthwise) -> None:
    """Emit one row: whole groups of pixels, then the rest: one group where the extent is known,
    else pixel by pixel."""
    w, pixels, factors = context.writer, statement.pixels, _factors(context, statement)
    extent = emit_index(context, statement.x_extent)

    def group(count: int) -> Callable[[LlvmValue], None]:
        return lambda x: _emit_group(context, statement, factors, Pixels(x, count))

    with context.scope():
        load_numbers(context, statement.epilogue, lanes_of(statement.dtype, context.target))
        if extent.integer is None:
            end = w.sub(extent, w.binary("urem", extent, i64(pixels)))
            for_each(w, ZERO, end, pixels, group(pixels))
            for_each(w, end, extent, 1, group(1))
            return
        rest = extent.integer % pixels
        end = i64(extent.integer - rest)
        for_each(w, ZERO, end, pixels, group(pixels))
        if rest:
            group(rest)(end)


def _emit_group(
    context: EmitContext, statement: Depthwise, factors: Factors, pixels: Pixels
) -> None:
    """Emit some pixels: all vectors of channels, then the masked rest."""
    w, lanes = context.writer, lanes_of(statement.dtype, context.target)
    channels = emit_index(context, statement.channels)
    end = multiple_below(w, channels, lanes)

    def whole(channel: LlvmValue) -> None:
        _emit_vector(DepthwiseRow(context, statement, channel, None, {}, factors), pixels)

    def rest() -> None:
        mask = (
            tail_mask(w, end, channels, lanes)
            if channels.integer is None
            else known_tail_mask(channels.integer, lanes)
        )
        _emit_vector(DepthwiseRow(context, statement, end, mask, {}, factors), pixels)

    for_each(w, ZERO, end, lanes, whole)
    if_below(w, end, channels, rest)


def _factors(context: EmitContext, statement: Depthwise) -> Factors:
    """What A and W hold; bytes lie together."""
    a, b = context.dtypes[statement.a], context.dtypes[statement.w]
    together = rows_together(a) if {a, b} <= BYTES else 1
    return Factors(a, b, statement.dtype, together)


def _emit_vector(row: DepthwiseRow, pixels: Pixels) -> None:
    """Emit the results of some pixels for one vector of channels, and their epilogue."""
    statement, context = row.statement, row.context
    with context.scope():
        context.bind({statement.channel: row.channel})
        start = (_start(row),) * pixels.count
        if _weights_fit(row, context.target.vector_register_count):
            row = replace(row, weights=load_weights(row, all_taps(row.loops), {}))
        with context.scope():
            context.bind({statement.x: pixels.first})
            sums = emit_taps(row, row.loops, {}, start)
        rows = Rows(statement.x, pixels.first, pixels.count)
        columns = Columns(statement.channel, row.channel, 1, row.lanes, row.mask)
        results = Results(rows, columns, statement.accumulator, statement.dtype, statement.epilogue)
        emit_epilogue(context, results, sums)


def _start(row: DepthwiseRow) -> LlvmValue:
    """What every sum starts at: 0, less what flipping the signs of A adds."""
    w, zero = row.context.writer, zeros(row.element, row.lanes)
    if not flips_signs(w.target, row.factors):
        return zero
    total = zero
    for weights in load_weights(row, all_taps(row.loops), {}).values():
        total = add_product(row, sign_bits(row.lanes), weights, total)
    return w.binary("sub", zero, total)


def _weights_fit(row: DepthwiseRow, registers: int) -> bool:
    taps, pixels = len(all_taps(row.loops)), row.statement.pixels
    return taps + pixels + _SPARE_REGISTERS <= registers and taps * pixels <= BLOCK_CHAINS_MAX
