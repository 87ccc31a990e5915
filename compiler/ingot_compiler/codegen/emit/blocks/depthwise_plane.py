"""Depthwise convolutions of images that lie row-major: one plane at a time, pixels in lanes.

In: a ``DepthwisePlane`` and the emission context of its kernel. Out: code in the kernel's
function. Not done here: channels in lanes (``depthwise``), choosing between the two
(``choose_kind``).

A vector of pixels is computed for several rows together, so that a vector of the image serves all
rows that it is a tap of; the weights of one kernel column, or of a part of it, wait in registers.
Every element is one
chain: kernel columns, within them kernel rows. There is no halo: blocks at the edges are written
apart, with masks and without the rows outside. Where a size is not known, they find out at run time
which these are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ingot_compiler.codegen.emit.blocks.epilogue import (
    Columns,
    Results,
    Rows,
    emit_epilogue,
)
from ingot_compiler.codegen.emit.blocks.plane_spans import Span, over_spans
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.control import values_if
from ingot_compiler.codegen.emit.convert import REGISTER
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lanes import known_tail_mask, lane_numbers, tail_mask
from ingot_compiler.codegen.emit.memory import emit_address
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64, zeros
from ingot_compiler.codegen.llvm_value import LlvmValue, constants
from ingot_compiler.ir.dims import Dim, substitute, symbol
from ingot_compiler.kernels.tiles import (
    BLOCK_CHAINS_MAX,
    MASKED_LOAD_BITS_MIN,
    lanes_of,
    taps_together,
)
from ingot_compiler.lowering.loops.program import DepthwisePlane
from ingot_runtime.lazy_dataclass import dataclass

_TAP = "tap column"  # the run-time loop's symbol; no other name has a space


@dataclass(frozen=True, slots=True)
class _Block:
    """One vector of pixels of several rows; ``y`` and ``x`` are where its spans begin at run
    time."""

    context: EmitContext
    statement: DepthwisePlane
    rows: Span
    pixels: Span
    y: LlvmValue
    x: LlvmValue

    @property
    def lanes(self) -> int:
        """Pixels of a vector."""
        return lanes_of(self.statement.dtype, self.context.target)

    @property
    def element(self) -> str:
        """The LLVM type of an element."""
        return REGISTER[self.statement.dtype]


def emit_depthwise_plane(context: EmitContext, statement: DepthwisePlane) -> None:
    """Emit one plane: blocks of rows, for each all vectors of pixels."""
    lanes = lanes_of(statement.dtype, context.target)

    def block_row(span: Span, y: LlvmValue) -> None:
        def block(vector: Span, x: LlvmValue) -> None:
            _emit_block(_Block(context, statement, span, vector, y, x))

        over_spans(context, statement, 1, lanes, block)

    over_spans(context, statement, 0, statement.rows_together, block_row)


def _emit_block(block: _Block) -> None:
    """Emit the sums of one block and their epilogue."""
    context, statement = block.context, block.statement
    with context.scope():
        context.bind({statement.y: block.y, statement.x: block.x})
        sums = _emit_sums(block)
    mask = _tail(block)
    rows = Rows(statement.y, block.y, block.rows.count)
    columns = Columns(statement.x, block.x, 1, block.lanes, mask)
    results = Results(rows, columns, statement.accumulator, statement.dtype, statement.epilogue)
    emit_epilogue(context, results, sums)


def _tail(block: _Block) -> LlvmValue | None:
    """The pixels of the vector that are results; None where all are."""
    if block.pixels.inside or block.pixels.first is not None:
        return known_tail_mask(block.pixels.count, block.lanes)
    extent = emit_index(block.context, block.statement.extents[1])
    return tail_mask(block.context.writer, block.x, extent, block.lanes)


def _emit_sums(block: _Block) -> Operands:
    """Sum over kernel columns: as straight code, or in a loop at run time."""
    context = block.context
    rows, columns = (extent for _, extent in block.statement.taps)
    sums: Operands = (zeros(block.element, block.lanes),) * block.rows.count
    masked = not block.pixels.inside and context.target.vector_bits < MASKED_LOAD_BITS_MIN
    if masked or rows * columns * len(sums) <= BLOCK_CHAINS_MAX:
        for column in range(columns):
            sums = _emit_column(block, column, sums)
        return sums

    def turn(index: LlvmValue, carried: Operands) -> Operands:
        with context.scope():
            context.bind({_TAP: index})
            return _emit_column(block, symbol(_TAP), carried)

    return context.writer.loop(ZERO, i64(columns), 1, sums, turn)


def _emit_column(block: _Block, column: Dim, sums: Operands) -> Operands:
    """Add the taps of one kernel column, as many as have their weights in registers at a time."""
    (_, rows), _ = block.statement.taps
    together = taps_together(rows, block.context.target)
    for first in range(0, rows, together):
        taps = range(first, min(first + together, rows))
        sums = _emit_taps(block, taps, column, sums)
    return sums


def _emit_taps(block: _Block, taps: range, column: Dim, sums: Operands) -> Operands:
    """Add some taps of a kernel column, image row by image row."""
    w = block.context.writer
    weights = {tap: w.splat(_load_weight(block, tap, column), block.lanes) for tap in taps}
    for row, uses in sorted(_uses(block, taps).items()):
        added = partial(_emit_row, block, (row, column), uses, weights, sums)
        if block.rows.inside or block.rows.first is not None:
            sums = added()
        else:
            sums = values_if(w, _is_row(block, row), sums, added)
    return sums


def _emit_row(
    block: _Block,
    place: tuple[int, Dim],
    uses: Sequence[tuple[int, int]],
    weights: Mapping[int, LlvmValue],
    sums: Operands,
) -> Operands:
    """Add what an image row adds; ``place``: the row, the kernel column."""
    vector, totals = _load_pixels(block, *place), list(sums)
    # Larger taps belong to earlier results: each chain goes through its kernel rows in order.
    for result, tap in uses:
        totals[result] = block.context.writer.fma(vector, weights[tap], totals[result])
    return tuple(totals)


def _is_row(block: _Block, row: int) -> LlvmValue:
    """Whether image row ``y * stride + row`` is there."""
    context, statement = block.context, block.statement
    number = emit_index(context, symbol(statement.y) * statement.strides[0] + row)
    # Taken as unsigned, a row before the image is a large number.
    return context.writer.compare("ult", number, emit_index(context, statement.image[0]))


def _load_weight(block: _Block, tap: int, column: Dim) -> LlvmValue:
    """Load a weight of one kernel column."""
    context, statement = block.context, block.statement
    (row_tap, _), (column_tap, _) = statement.taps
    index = substitute(statement.w_index, {row_tap: tap, column_tap: column})
    pointer = emit_address(context, statement.w, index)
    return context.writer.load(pointer, block.element)


def _uses(block: _Block, taps: range) -> dict[int, list[tuple[int, int]]]:
    """By image row, from ``y * stride`` on: the (result, tap) of ``taps`` that multiply it."""
    statement = block.statement
    stride, dilation, pad = statement.strides[0], statement.dilations[0], statement.pads[0]
    uses: dict[int, list[tuple[int, int]]] = {}
    for result in range(block.rows.count):
        for tap in taps:
            row = result * stride + tap * dilation - pad
            if _may_be_there(block, row):
                uses.setdefault(row, []).append((result, tap))
    return uses


def _may_be_there(block: _Block, row: int) -> bool:
    """Whether image row ``y * stride + row`` is there, or only run time knows."""
    first, height = block.rows.first, block.statement.image[0]
    if block.rows.inside or first is None or not isinstance(height, int):
        return True
    return 0 <= first * block.statement.strides[0] + row < height


def _load_pixels(block: _Block, row: int, column: Dim) -> LlvmValue:
    """The vector of image row ``y * stride + row`` that one kernel column multiplies."""
    statement, w = block.statement, block.context.writer
    shift = column * statement.dilations[1] - statement.pads[1]
    if statement.strides[1] == 1:
        return _load(block, row, shift)
    low, high = _load(block, row, shift), _load(block, row, shift + block.lanes)
    return w.shuffle(low, [statement.strides[1] * lane for lane in range(block.lanes)], high)


def _load(block: _Block, row: int, shift: Dim) -> LlvmValue:
    """Contiguous pixels from ``x * stride + shift`` on; zeros outside of the row."""
    context, statement, w = block.context, block.statement, block.context.writer
    y = symbol(statement.y) * statement.strides[0] + row
    x = symbol(statement.x) * statement.strides[1] + shift
    index = substitute(statement.a_index, {statement.row: y, statement.column: x})
    pointer = emit_address(context, statement.a, index)
    if block.pixels.inside:
        return w.load(pointer, block.element, block.lanes)
    return w.masked_load(pointer, _mask(block, shift), block.element)


def _mask(block: _Block, shift: Dim) -> LlvmValue:
    """The lanes whose pixel lies inside of the image and is asked for by a result."""
    context, statement, w = block.context, block.statement, block.context.writer
    width, stride, at = statement.image[1], statement.strides[1], block.pixels.first
    if isinstance(shift, int) and isinstance(width, int) and at is not None:
        known = at * stride + shift
        return constants([int(0 <= known + lane < width) for lane in range(block.lanes)], "i1")
    first = emit_index(context, symbol(statement.x) * stride + shift)
    pixels = w.add(
        lane_numbers(block.lanes, "i32"), w.splat(w.convert("trunc", first, "i32"), block.lanes)
    )
    # Taken as unsigned, a pixel before the row is a large number.
    end = w.convert("trunc", emit_index(context, width), "i32")
    return w.compare("ult", pixels, w.splat(end, block.lanes))
