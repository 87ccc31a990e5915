"""Depthwise convolutions of images that lie row-major: one plane at a time, pixels in lanes.

In: a ``DepthwisePlane`` and the emission context of its kernel. Out: LLVM IR in the kernel's
function.
Not done here: channels in lanes (``depthwise``), choosing between the two (``choose_kind``).

A vector of pixels is computed for several rows together, so that a vector of the image serves all
rows that it is a tap of; the weights of one kernel column wait in registers. Every element is one
chain: kernel columns, within them kernel rows. There is no halo: all sizes are known, so blocks at
the edges are written apart, with masks and without the rows outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ingot_compiler.backends.host.emit.context import EmitContext
from ingot_compiler.backends.host.emit.index import emit_index
from ingot_compiler.backends.host.emit.kernels.epilogue import Results, emit_epilogue
from ingot_compiler.backends.host.emit.memory import emit_address
from ingot_compiler.backends.host.llvm_value import LlvmValue, constant, constants
from ingot_compiler.backends.host.tiles import BLOCK_CHAINS_MAX, lanes_of
from ingot_compiler.ir.dims import Dim, substitute, symbol
from ingot_compiler.lowering.loops import DepthwisePlane

_ELEMENTS = {"f32": "float", "f64": "double"}
_MASKED_LOAD_BITS_MIN = 256  # vectors below it have no masked loads: masks must be constants
_TAP = "tap column"  # the run-time loop's symbol; no other name has a space


@dataclass(frozen=True, slots=True)
class _Span:
    """Results ``first`` .. along an axis, ``count`` of them; inside: ``first`` may change and no
    tap leaves the image."""

    first: int
    count: int
    inside: bool


@dataclass(frozen=True, slots=True)
class _Block:
    """One vector of pixels of several rows; ``y`` and ``x`` are where its spans begin at run
    time."""

    context: EmitContext
    statement: DepthwisePlane
    lanes: int
    rows: _Span
    pixels: _Span
    y: LlvmValue
    x: LlvmValue

    @property
    def element(self) -> str:
        """The LLVM type of an element."""
        return _ELEMENTS[self.statement.dtype]


def emit_depthwise_plane(context: EmitContext, statement: DepthwisePlane) -> None:
    """Emit one plane: blocks of rows, for each all vectors of pixels."""
    lanes = lanes_of(statement.dtype, context.target)
    rows = _spans(statement, 0, statement.rows_together)
    pixels = _spans(statement, 1, lanes)

    def block_row(span: _Span, y: LlvmValue) -> None:
        def block(vector: _Span, x: LlvmValue) -> None:
            _emit_block(_Block(context, statement, lanes, span, vector, y, x))

        _over_spans(context, pixels, block)

    _over_spans(context, rows, block_row)


def _spans(statement: DepthwisePlane, axis: int, step: int) -> list[_Span]:
    """Cut the results of an axis into spans of ``step``."""
    extent, size, stride = statement.extents[axis], statement.image[axis], statement.strides[axis]
    reach = (statement.taps[axis][1] - 1) * statement.dilations[axis]
    spans: list[_Span] = []
    for first in range(0, extent, step):
        count = min(step, extent - first)
        low = first * stride - statement.pads[axis]
        high = low + (count - 1) * stride + reach
        # A vector of every second pixel is chosen from two whole vectors.
        if axis == 1 and stride > 1:
            high = low + step * stride - 1 + reach
        spans.append(_Span(first, count, low >= 0 and high < size and (axis == 0 or count == step)))
    return spans


def _over_spans(
    context: EmitContext, spans: Sequence[_Span], body: Callable[[_Span, LlvmValue], None]
) -> None:
    """Run ``body`` for every span; neighbours that are alike and inside share its code in a
    loop."""
    position = 0
    while position < len(spans):
        span = spans[position]
        alike = position + 1
        while (
            span.inside
            and alike < len(spans)
            and spans[alike].inside
            and spans[alike].count == span.count
        ):
            alike += 1

        def step(
            index: LlvmValue, _: tuple[LlvmValue, ...], span: _Span = span
        ) -> tuple[LlvmValue, ...]:
            body(span, index)
            return ()

        if alike - position > 1:
            end = spans[alike - 1].first + span.count
            context.writer.loop(
                constant(span.first, "i64"), constant(end, "i64"), span.count, (), step
            )
        else:
            body(span, constant(span.first, "i64"))
        position = alike


def _emit_block(block: _Block) -> None:
    """Emit the sums of one block and their epilogue."""
    context, statement, w = block.context, block.statement, block.context.writer
    rows, columns = (extent for _, extent in statement.taps)
    sums: tuple[LlvmValue, ...] = (
        LlvmValue("zeroinitializer", block.element, block.lanes),
    ) * block.rows.count
    masked = not block.pixels.inside and context.target.vector_bits < _MASKED_LOAD_BITS_MIN
    with context.scope():
        context.bind({statement.y: block.y, statement.x: block.x})
        if masked or rows * columns * len(sums) <= BLOCK_CHAINS_MAX:
            for column in range(columns):
                sums = _emit_column(block, column, sums)
        else:

            def turn(index: LlvmValue, carried: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
                with context.scope():
                    context.bind({_TAP: index})
                    return _emit_column(block, symbol(_TAP), carried)

            sums = w.loop(constant(0, "i64"), constant(columns, "i64"), 1, sums, turn)
    count = block.pixels.count
    mask = (
        None
        if count == block.lanes
        else constants([int(lane < count) for lane in range(block.lanes)], "i1")
    )
    results = Results(
        statement.y, block.y, block.rows.count, None, statement.x, block.x, 1, block.lanes, mask,
        statement.accumulator, statement.dtype, statement.epilogue,
    )  # fmt: skip
    emit_epilogue(context, results, sums)


def _emit_column(block: _Block, column: Dim, sums: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
    """Add the taps of one kernel column, image row by image row."""
    context, statement, w = block.context, block.statement, block.context.writer
    (row_tap, taps), (column_tap, _) = statement.taps
    weights = [
        w.load(
            emit_address(
                context,
                statement.w,
                substitute(statement.w_index, {row_tap: tap, column_tap: column}),
            ),
            block.element,
        )
        for tap in range(taps)
    ]
    wide = [w.splat(weight, block.lanes) for weight in weights]
    stride, dilation, pad = statement.strides[0], statement.dilations[0], statement.pads[0]
    uses: dict[int, list[tuple[int, int]]] = {}
    for result in range(block.rows.count):
        for tap in range(taps):
            row = result * stride + tap * dilation - pad
            if block.rows.inside or 0 <= block.rows.first * stride + row < statement.image[0]:
                uses.setdefault(row, []).append((result, tap))
    totals = list(sums)
    for row in sorted(uses):
        vector = _load_pixels(block, row, column)
        # Larger taps belong to earlier results: each chain goes through its kernel rows in order.
        for result, tap in uses[row]:
            totals[result] = w.fma(vector, wide[tap], totals[result])
    return tuple(totals)


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
    y, x = (
        symbol(statement.y) * statement.strides[0] + row,
        symbol(statement.x) * statement.strides[1] + shift,
    )
    pointer = emit_address(
        context, statement.a, substitute(statement.a_index, {statement.row: y, statement.column: x})
    )
    if block.pixels.inside:
        return w.load(pointer, block.element, block.lanes)
    return w.masked_load(pointer, _mask(block, shift), block.element)


def _mask(block: _Block, shift: Dim) -> LlvmValue:
    """The lanes whose pixel lies inside of the image and is asked for by a result."""
    context, statement, w = block.context, block.statement, block.context.writer
    width, stride = statement.image[1], statement.strides[1]
    if isinstance(shift, int):
        known = block.pixels.first * stride + shift
        return constants([int(0 <= known + lane < width) for lane in range(block.lanes)], "i1")
    first = emit_index(context, symbol(statement.x) * stride + shift)
    numbers = constants(list(range(block.lanes)), "i32")
    pixels = w.add(numbers, w.splat(w.convert("trunc", first, "i32"), block.lanes))
    # Taken as unsigned, a pixel before the row is a large number.
    return w.compare("ult", pixels, constant(width, "i32", block.lanes))
