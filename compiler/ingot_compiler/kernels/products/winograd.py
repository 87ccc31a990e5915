"""Convolutions by Winograd's algorithm: fewer products of transformed tiles.

In: a group anchored by ``conv`` whose last operand are transformed weights. Out: its loop program.
Not done here: its precision and cost (``winograd_cost``), the transforms of weights
(``winograd_weights``).
"""

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mod, dim_mul, symbol
from ingot_compiler.ir.precision import SIZE
from ingot_compiler.ir.rules.reference_rules import ints
from ingot_compiler.kernels.anchored_group import ACCUMULATOR, AnchoredGroup
from ingot_compiler.kernels.products.algorithm import PANELS, Algorithm, ProductFacts, Wishes
from ingot_compiler.kernels.products.conv_few_channels import has_few_channels
from ingot_compiler.kernels.products.convolution import ConvShape
from ingot_compiler.kernels.products.tuned import WINOGRAD, name_of_tile
from ingot_compiler.kernels.products.winograd_cost import (
    allowed_shapes,
    fastest_shape,
    shape_of_method,
)
from ingot_compiler.kernels.winograd_tiles import (
    WinogradShape,
    choose_blocks,
    plane_of,
    scratch_of,
    tile_count,
)
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.groups.space import Space, ceil_div, point
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.loops.program import LoopProgram, Winograd


def lower_winograd(group: Group, target: KernelTarget) -> LoopProgram:
    """Units are (block of tiles, columns of a group); columns are innermost, so that a thread
    transforms a block once for each group."""
    anchored = AnchoredGroup(group)
    x, result = anchored.operand(0), anchored.result.shape
    conv = ConvShape.of(anchored.node, x, anchored.method.weight_shape)
    shape = shape_of_tile(anchored.method)
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


def shape_of_tile(method: Method) -> WinogradShape:
    """The taps and the tile of a method of Winograd's algorithm."""
    (rows, columns), taps = method.tile, (1, *ints(method.weight_shape[2:]))[-2:]
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


def offer_winograd(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> Method | None:
    """The tiles that cost least, or those that are asked for; None where it is direct.

    Raises:
        UserError: somebody names tiles for it that are not precise enough.
    """
    is_fit = wishes.optimize != SIZE and facts.has_constant_weights
    if not is_fit or has_few_channels(facts, wishes, target):
        return None
    allowed = allowed_shapes(facts, wishes, target)
    shape: WinogradShape | None
    if wishes.of_layer:
        shape = shape_of_method(facts.node, wishes.of_layer, allowed)
    else:
        named = [each for each in allowed if name_of_tile(each.tile) == wishes.of_all]
        shape = named[0] if named else fastest_shape(allowed, facts, wishes, target)
    if shape is None:
        return None
    return Method(name_of_tile(shape.tile), PANELS, facts.weights.shape, tile=shape.tile)


BY_WINOGRAD = Algorithm(
    tuple(Kind(name, one_kernel(lower_winograd), ResultLayout.CHANNELS_LAST) for name in WINOGRAD),
    offer_winograd,
)
"""By the results of a tile, (rows, columns)."""
