"""Convolutions to few channels: channels of the image, not of the result, in lanes.

In: a group anchored by ``conv`` whose weights lie as [O, kernel.., C]. Out: its loop program,
and which convolutions run so. Not done here: the sums (``products.along_depth``).
"""

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mod, dim_mul, dim_product, symbol
from ingot_compiler.ir.precision import F32, FAST
from ingot_compiler.kernels.anchored_group import ACCUMULATOR, AnchoredGroup
from ingot_compiler.kernels.products.algorithm import Algorithm, ProductFacts, Wishes
from ingot_compiler.kernels.products.convolution import ConvShape
from ingot_compiler.kernels.tiles import lanes_of_rest, panel_columns
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.groups.space import Run, Space, ceil_div
from ingot_compiler.lowering.groups.views import flat_offset
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.loops.loop_parts import RegisterTile
from ingot_compiler.lowering.loops.program import Contraction, LoopProgram

_VECTORS = 4  # of pixels, in one unit
_SUMMANDS_MIN = 128  # behind fewer, adding lanes takes as long as the products
_LANES_SHARE_MAX = 0.75  # of the lanes that a result's channels fill


def lower_few_channels(group: Group, target: KernelTarget) -> LoopProgram:
    """Rows are channels of the result, columns the pixels of one of its rows; units are (row of
    pixels, part of it)."""
    anchored = AnchoredGroup(group)
    x, shape = anchored.operand(0), anchored.result.shape
    conv = ConvShape.of(anchored.node, x, anchored.method.weight_shape)
    taps, depth, tap_offset = conv.reduction(x)
    last, channels, pixels = len(shape) - 1, shape[1], shape[-1]
    assert isinstance(channels, int)
    width = _VECTORS * target.f32_lanes
    parts = ceil_div(pixels, width)
    line, start = dim_floordiv(symbol(INDEX), parts), dim_mod(symbol(INDEX), parts)
    lines, strides = (shape[0], *shape[2:last]), conv.pixel_strides(x)
    image = conv.origin(x) + flat_offset(line, lines, strides[:-1]) + tap_offset
    tap: Dim = symbol("row")
    for name, extent in (*taps, ("k", depth)):
        tap = dim_mul(tap, extent) + symbol(name)
    summands = dim_mul(dim_product(tuple(extent for _, extent in taps)), depth)
    runs = (((1,), symbol("row")), ((last,), symbol("column")), ((0, *range(2, last)), line))
    space = Space(shape, tuple(Run(axes, variable) for axes, variable in runs))
    statement = Contraction(
        "row", channels, 0, channels,
        "column", pixels, dim_mul(start, width),
        taps, "k", depth,
        anchored.number(1), tap,
        anchored.number(0), image + dim_mul(strides[-1], symbol("column")), None,
        "f32", ACCUMULATOR, anchored.epilogue(space), RegisterTile(channels, _VECTORS),
    )  # fmt: skip
    grain = grain_for(dim_floordiv(dim_mul(summands, channels * width), 16))
    extent = dim_mul(dim_product(lines), parts)
    return finish_program(anchored.buffers, (statement,), extent, grain)


def has_few_channels(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> bool:
    """Whether a convolution of f32 is summed along the image's channels."""
    own, channels, *kernel = facts.weights.shape
    if not isinstance(own, int) or not isinstance(channels, int) or own >= target.f32_lanes:
        return False
    lanes, summands = lanes_of_rest(own, "f32", 1, target), dim_product((channels, *kernel))
    return (
        {each.dtype for each in (facts.x, facts.weights, facts.result)} == {"f32"}
        and wishes.precision in (F32, FAST)
        and target.team_units == 1
        and facts.has_constant_weights
        and facts.node.integer("groups") == 1
        and channels % panel_columns("f32") == 0
        and isinstance(summands, int)
        and summands >= _SUMMANDS_MIN
        and own <= _LANES_SHARE_MAX * lanes
    )


def _offer(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> Method | None:
    serves = has_few_channels(facts, wishes, target)
    return Method(_NAME, weight_shape=facts.weights.shape) if serves else None


_NAME = "conv_few_channels"
CONV_FEW_CHANNELS = Algorithm(
    (Kind(_NAME, one_kernel(lower_few_channels), ResultLayout.ROW_MAJOR),), _offer
)
