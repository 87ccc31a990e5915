"""Convolutions by Winograd's algorithm: fewer products of transformed tiles.

In: a group anchored by ``conv`` whose last operand are transformed weights. Out: its loop program.
Not done here: when the algorithm is chosen (``choose_winograd``), the transforms of weights
(``winograd_weights``).
"""

from ingot_compiler.backends.host.anchored_group import ACCUMULATOR, AnchoredGroup
from ingot_compiler.backends.host.conv_methods import WINOGRAD, WINOGRAD_TILES
from ingot_compiler.backends.host.convolution import ConvShape
from ingot_compiler.backends.host.winograd_tiles import (
    WinogradShape,
    choose_blocks,
    plane_of,
    scratch_of,
    tile_count,
)
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mod, dim_mul, symbol
from ingot_compiler.lowering.fused import Group, Operand
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.loops import LoopProgram, Winograd
from ingot_compiler.lowering.space import Space, ceil_div, point


def lower_winograd(group: Group, target: KernelTarget) -> LoopProgram:
    """Units are (block of tiles, columns of a group); columns are innermost, so that a thread
    transforms a block once for each group."""
    anchored = AnchoredGroup(group)
    x, result = anchored.operand(0), anchored.result.shape
    conv = ConvShape.of(anchored.node, x, anchored.node.dims("weight_shape"))
    shape = _shape(anchored, conv)
    channels, columns = conv.channels_per_group, result[1]
    extents = plane_of(result)
    assert isinstance(channels, int)
    assert isinstance(columns, int)
    tiles, depth = tile_count(result[0], extents, shape), shape.depth(channels)
    blocks = choose_blocks(tiles, depth, columns // conv.groups, shape, target)
    width = blocks.registers.vectors * target.f32_lanes
    parts = -(-columns // width)
    start = dim_mul(dim_floordiv(symbol(INDEX), parts), blocks.tiles)
    column_start = dim_mul(dim_mod(symbol(INDEX), parts), width)
    statement = Winograd(
        "image", result[0], "y", "x", extents, shape.kernel, shape.tile, start, blocks.tiles,
        "channel", channels, conv.groups, "column", columns, column_start, blocks.registers,
        anchored.number(0), _image_index(x, conv, _group(column_start, columns, conv)),
        anchored.number(-1), anchored.number(1), ACCUMULATOR,
        anchored.epilogue(_result_space(anchored)),
    )  # fmt: skip
    scratch = scratch_of(blocks.tiles, depth, width, shape)
    work = blocks.tiles * shape.frequency_count * depth * width
    extent = dim_mul(ceil_div(tiles, blocks.tiles), parts)
    grain = grain_for(work // 16)
    return finish_program(anchored.buffers, (statement,), extent, grain, scratch.size_bytes)


def _shape(anchored: AnchoredGroup, conv: ConvShape) -> WinogradShape:
    rows, columns = anchored.node.ints("tile")
    taps = (1, *conv.kernel)[-2:]
    return WinogradShape((taps[0], taps[1]), (rows, columns))


def _group(column_start: Dim, columns: int, conv: ConvShape) -> Dim:
    """The group whose columns a unit computes."""
    return dim_floordiv(column_start, columns // conv.groups) if conv.groups > 1 else 0


def _image_index(x: Operand, conv: ConvShape, group: Dim) -> Dim:
    """Offset of the pixel of a group's channels that the first tap of result (y, x) reads."""
    first_channel = dim_mul(group, conv.channels_per_group)
    index = conv.origin(x) + dim_mul(first_channel, x.view.strides[1])
    for name, stride in zip(_names("channel", x.type.rank), x.view.strides, strict=True):
        index = index + dim_mul(symbol(name), stride)
    return index


def _result_space(anchored: AnchoredGroup) -> Space:
    shape = anchored.result.shape
    return point(shape, tuple(map(symbol, _names("column", len(shape)))))


def _names(channel: str, rank: int) -> tuple[str, ...]:
    """The symbols of the axes of an image; one of rank 3 is a row of pixels."""
    return ("image", channel, "y", "x") if rank == 4 else ("image", channel, "x")


def _kind(name: str) -> Kind:
    return Kind(name, one_kernel(lower_winograd), ResultLayout.CHANNELS_LAST)


WINOGRAD_KINDS = {tile: _kind(name) for tile, name in zip(WINOGRAD_TILES, WINOGRAD, strict=True)}
"""By the results of a tile, (rows, columns)."""
