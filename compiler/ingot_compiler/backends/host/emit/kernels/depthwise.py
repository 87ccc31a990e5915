"""Depthwise convolutions: one row of pixels, channels in lanes.

In: a ``Depthwise`` and the emission context of its kernel. Out: LLVM IR in the kernel's function.
Not done here: haloes, striding over images (index expressions), splitting over threads.

For every vector of channels, ``pixels`` neighbouring results are accumulated together; an input
vector that several of them share is loaded once. The weights stay in registers where those of all
taps fit; otherwise they are loaded again for every group of pixels, and long sums are a loop over
the outer taps that carries the accumulators. Every element is one chain, taps outer to inner.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ingot_compiler.backends.host.emit.context import EmitContext
from ingot_compiler.backends.host.emit.index import emit_index
from ingot_compiler.backends.host.emit.kernels.epilogue import Results, emit_epilogue
from ingot_compiler.backends.host.emit.memory import emit_address
from ingot_compiler.backends.host.llvm_value import LlvmValue, constant, constants
from ingot_compiler.backends.host.tiles import BLOCK_CHAINS_MAX, lanes_of
from ingot_compiler.ir.dims import Dim, coefficient, substitute, symbol
from ingot_compiler.lowering.loops import Depthwise

_ELEMENTS = {"f32": "float", "f64": "double"}
_SPARE_REGISTERS = 4  # inputs in flight

Tap = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """What all pixels of one vector of channels share. ``weights`` are those of every tap, or
    empty: to be loaded."""

    context: EmitContext
    statement: Depthwise
    lanes: int
    element: str
    channel: LlvmValue
    mask: LlvmValue | None
    weights: Mapping[Tap, LlvmValue]

    @property
    def names(self) -> tuple[str, ...]:
        """The taps' symbols, outer to inner."""
        return tuple(name for name, _ in self.statement.taps)


def emit_depthwise(context: EmitContext, statement: Depthwise) -> None:
    """Emit one row: all vectors of channels, then the masked rest."""
    w, lanes = context.writer, lanes_of(statement.dtype, context.target)
    channels = emit_index(context, statement.channels)
    zero = constant(0, "i64")

    def whole(channel: LlvmValue, _: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        _emit_channels(context, statement, channel, None)
        return ()

    if channels.integer is not None:
        rest = channels.integer % lanes
        end = constant(channels.integer - rest, "i64")
        w.loop(zero, end, lanes, (), whole)
        if rest:
            _emit_channels(
                context,
                statement,
                end,
                constants([int(lane < rest) for lane in range(lanes)], "i1"),
            )
        return
    end = w.binary("and", channels, constant(-lanes, "i64"))
    w.loop(zero, end, lanes, (), whole)
    left = w.compare("slt", end, channels)
    w.if_then(
        left,
        lambda: _emit_channels(context, statement, end, context.tail_mask(end, channels, lanes)),
    )


def _emit_channels(
    context: EmitContext, statement: Depthwise, channel: LlvmValue, mask: LlvmValue | None
) -> None:
    """Emit all pixels for one vector of channels."""
    lanes, element = lanes_of(statement.dtype, context.target), _ELEMENTS[statement.dtype]
    with context.scope():
        context.bind({statement.channel: channel})
        row = _Row(context, statement, lanes, element, channel, mask, {})
        if _weights_fit(statement, context.target.vector_register_count):
            row = _Row(
                context,
                statement,
                lanes,
                element,
                channel,
                mask,
                _load_weights(row, _all_taps(statement), {}),
            )
        _emit_pixels(row)


def _weights_fit(statement: Depthwise, registers: int) -> bool:
    taps = len(_all_taps(statement))
    return (
        taps + statement.pixels + _SPARE_REGISTERS <= registers
        and taps * statement.pixels <= BLOCK_CHAINS_MAX
    )


def _all_taps(statement: Depthwise) -> list[Tap]:
    return list(product(*(range(extent) for _, extent in statement.taps)))


def _emit_pixels(row: _Row) -> None:
    """Emit whole groups of pixels, then the rest: one group where the extent is known, else pixel
    by pixel."""
    w, pixels, extent = (
        row.context.writer,
        row.statement.pixels,
        emit_index(row.context, row.statement.x_extent),
    )
    zero = constant(0, "i64")

    def group(count: int, x: LlvmValue) -> tuple[LlvmValue, ...]:
        _emit_group(row, x, count)
        return ()

    if extent.integer is not None:
        rest = extent.integer % pixels
        end = constant(extent.integer - rest, "i64")
        w.loop(zero, end, pixels, (), lambda x, _: group(pixels, x))
        if rest:
            group(rest, end)
        return
    end = w.sub(extent, w.binary("urem", extent, constant(pixels, "i64")))
    w.loop(zero, end, pixels, (), lambda x, _: group(pixels, x))
    w.loop(end, extent, 1, (), lambda x, _: group(1, x))


def _emit_group(row: _Row, x: LlvmValue, pixels: int) -> None:
    """Emit `pixels` neighbouring results from `x` on, and their epilogue."""
    statement, context = row.statement, row.context
    zero = LlvmValue("zeroinitializer", row.element, row.lanes)
    with context.scope():
        context.bind({statement.x: x})
        sums = _emit_taps(row, statement.taps, {}, (zero,) * pixels)
    results = Results(
        statement.x, x, pixels, None, statement.channel, row.channel, 1, row.lanes, row.mask,
        statement.accumulator, statement.dtype, statement.epilogue,
    )  # fmt: skip
    emit_epilogue(context, results, sums)


def _emit_taps(
    row: _Row,
    taps: Sequence[tuple[str, int]],
    fixed: Mapping[str, Dim],
    sums: tuple[LlvmValue, ...],
) -> tuple[LlvmValue, ...]:
    """Emit the loops `taps`: straight while short, else the outermost as a loop at run time."""
    count = 1
    for _, extent in taps:
        count *= extent
    if not taps or count * len(sums) <= BLOCK_CHAINS_MAX:
        return _emit_block(row, taps, fixed, sums)
    (name, extent), inner = taps[0], taps[1:]

    def body(index: LlvmValue, carried: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        with row.context.scope():
            row.context.bind({name: index})
            return _emit_taps(row, inner, {**fixed, name: symbol(name)}, carried)

    return row.context.writer.loop(constant(0, "i64"), constant(extent, "i64"), 1, sums, body)


def _emit_block(
    row: _Row,
    taps: Sequence[tuple[str, int]],
    fixed: Mapping[str, Dim],
    sums: tuple[LlvmValue, ...],
) -> tuple[LlvmValue, ...]:
    """Emit the sums over `taps` as straight code, one outer tap at a time, inputs in order of
    address."""
    w, statement = row.context.writer, row.statement
    result = list(sums)
    *outer, (_, inner_extent) = taps or [("", 1)]
    for head in product(*(range(extent) for _, extent in outer)):
        rows = [(*head, inner) for inner in range(inner_extent)] if taps else [()]
        weights = row.weights or _load_weights(row, rows, fixed)
        inputs: dict[Dim, LlvmValue] = {}
        for tap, pixel in _in_order(row, rows, len(sums)):
            point = _point(row, tap, fixed)
            index = substitute(
                statement.a_index, {**point, statement.x: symbol(statement.x) + pixel}
            )
            if index not in inputs:
                inputs[index] = _load(row, statement.a, index)
            result[pixel] = w.fma(inputs[index], weights[tap], result[pixel])
    return tuple(result)


def _in_order(row: _Row, taps: Sequence[Tap], pixels: int) -> list[tuple[Tap, int]]:
    """Order (tap, pixel) so that a shared input is used up soon after its load; per pixel, taps
    stay in order."""
    pairs = [(tap, pixel) for tap in taps for pixel in range(pixels)]
    name = row.names[-1] if row.names else ""
    tap_step, pixel_step = (
        coefficient(row.statement.a_index, name),
        coefficient(row.statement.a_index, row.statement.x),
    )
    # Addresses grow along the chain of a pixel, so ordering by address keeps the chain.
    if taps[0] and isinstance(tap_step, int) and isinstance(pixel_step, int) and tap_step > 0:
        pairs.sort(key=lambda pair: (pair[0][-1] * tap_step + pair[1] * pixel_step, pair[0]))
    return pairs


def _point(row: _Row, tap: Tap, fixed: Mapping[str, Dim]) -> dict[str, Dim]:
    """Bind the taps that are not `fixed` by loops to the integers of `tap`."""
    free = [name for name in row.names if name not in fixed]
    return {**fixed, **dict(zip(free, tap, strict=True))}


def _load_weights(row: _Row, taps: Sequence[Tap], fixed: Mapping[str, Dim]) -> dict[Tap, LlvmValue]:
    return {
        tap: _load(row, row.statement.w, substitute(row.statement.w_index, _point(row, tap, fixed)))
        for tap in taps
    }


def _load(row: _Row, buffer: int, index: Dim) -> LlvmValue:
    """Load one vector of channels."""
    pointer = emit_address(row.context, buffer, index)
    if row.mask is not None:
        return row.context.writer.masked_load(pointer, row.mask, row.element)
    return row.context.writer.load(pointer, row.element, row.lanes)
