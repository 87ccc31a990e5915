"""Convolutions of a row-major image into few channels, row-major: rows of pixels in lanes.

In: a group anchored by ``conv`` whose steps along the last axis are 1; zeros around the image where
it has pads; weights [O, kernel.., C]. Out: its loop program, and which convolutions run so. Not
done here: images whose channels lie together (``conv``).

Each row of the image, or all rows where one tap is above each, is a product: weights by pixels. In
lanes of channels a result of few of them leaves most lanes empty, and the image is turned before.
"""

from collections.abc import Sequence

from ingot_compiler.ir.dims import (
    Dim,
    dim_floordiv,
    dim_mod,
    dim_mul,
    dim_product,
    substitute,
    symbol,
)
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import DType
from ingot_compiler.kernels.anchored_group import AnchoredGroup
from ingot_compiler.kernels.products.algorithm import Algorithm, ProductFacts, Wishes
from ingot_compiler.kernels.products.contraction import PitchedRows, Product, contraction_program
from ingot_compiler.kernels.products.convolution import ConvShape
from ingot_compiler.kernels.products.depthwise import is_depthwise
from ingot_compiler.kernels.products.winograd import offer_winograd
from ingot_compiler.lowering.groups.fused import Group, View
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.groups.views import Shape, flat_offset
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.loops.program import LoopProgram

_WIDE: tuple[DType, ...] = ("f32", "f64")
_TILES_SPEED = 1.5  # of Winograd's algorithm, transforms included
# Cycles: of a vector's multiply-adds where channels are in lanes, where pixels are and one channel
# or several share each load; of an element that is copied, or turned.
_IN_CHANNELS, _IN_PIXELS, _SHARED, _COPIED, _TURNED = 0.55, 1.0, 0.7, 0.2, 1.6
_NEAR_TAPS = 4  # elements apart: of taps further apart, many lie outside of the image
# More channels of more products are a product whose second factor should be packed.
_ROWS_CHANNELS_MAX, _ROWS_PRODUCTS_MAX = 32, 64


def lower_conv_rows(group: Group, target: KernelTarget) -> LoopProgram:
    """The weights are A, the image is B, in place."""
    anchored = AnchoredGroup(group)
    x, w, shape = anchored.operand(0), anchored.operand(1), anchored.result.shape
    conv = ConvShape.of(anchored.node, x, anchored.method.weight_shape)
    taps, depth, tap_offset = conv.reduction(x)
    first = _first_column_axis(anchored.node, conv.kernel, x.type.shape, x.view)
    lines, columns = (0, *range(2, first)), tuple(range(first, len(shape)))
    outer, strides = tuple(shape[axis] for axis in lines), conv.pixel_strides(x)[: first - 1]
    own, share = dim_floordiv(shape[1], conv.groups), dim_mod(symbol("g"), conv.groups)
    line = dim_floordiv(symbol("g"), conv.groups)
    row = flat_offset(line, outer, strides)
    position: Dim = symbol("k")
    inner = depth
    for name, extent in reversed(taps):
        position = position + dim_mul(symbol(name), inner)
        inner = dim_mul(inner, extent)
    channels = dim_mul(dim_mul(share, conv.channels_per_group), x.view.strides[1])
    image = conv.origin(x) + row + channels + substitute(tap_offset, {"k": 0})
    product = Product(
        outer=dim_mul(dim_product(outer), conv.groups),
        rows=own,
        columns=dim_product(tuple(shape[axis] for axis in columns)),
        taps=taps,
        depth=depth,
        a_index=w.view.offset + dim_mul(symbol("row") + dim_mul(share, own), inner) + position,
        b=PitchedRows(image, x.view.strides[1]),
        axes=(lines, (1,), columns),
        row_shift=dim_mul(share, own),
        place=line,
        factors=(1, 0),
    )
    return contraction_program(anchored, target, product)


def _first_column_axis(node: Node, kernel: Sequence[Dim], image: Shape, view: View) -> int:
    """The first of the axes whose pixels are columns of one product: the last one, and those
    outside of it whose lines go on where a line ends, as far as there is one tap."""
    strides = node.ints("strides")
    padded = zip(node.dims("pads_before"), node.dims("pads_after"), strict=True)
    is_plain = [
        size == 1 and stride == 1 and pads == (0, 0)
        for size, stride, pads in zip(kernel, strides, padded, strict=True)
    ]
    axis = len(image) - 1
    while axis > 2 and is_plain[axis - 2] and strides[axis - 3] == 1:
        if view.strides[axis - 1] != dim_mul(view.strides[axis], image[axis]):
            break
        axis -= 1
    return axis


def _offer(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> Method | None:
    """Few channels of a row-major image, unless Winograd's algorithm is asked for and possible."""
    if is_depthwise(facts) or not _may_have_rows(facts, target):
        return None
    by_tiles = offer_winograd(facts, wishes, target)
    if by_tiles and (wishes.of_layer or wishes.of_all):
        return None
    gains = _gains_rows(facts, target, is_by_tiles=by_tiles is not None)
    return Method(_NAME, weight_shape=facts.weights.shape) if gains else None


def _gains_rows(facts: ProductFacts, target: KernelTarget, *, is_by_tiles: bool) -> bool:
    """Whether pixels in lanes are faster: row-major the image need not be turned, nor the result.
    Channels of a group and kernel decide, and no open size, so that sums have one order. Short lines
    of one group take as long by channels, where these fill the lanes; so do several taps in groups,
    whose image is copied either way."""
    (to, channels, *kernel), groups = facts.weights.shape, facts.node.integer("groups")
    products, to = dim_product((channels, *kernel)), dim_floordiv(to, groups)
    assert facts.x_view
    first = _first_column_axis(facts.node, kernel, facts.x.shape, facts.x_view)
    width = dim_product(facts.result.shape[first if groups > 1 else -1 :])
    if groups > 1 and dim_product(tuple(kernel)) != 1:
        return False
    if isinstance(width, int) and width < target.f32_lanes // 2:
        return False
    if not isinstance(to, int) or not isinstance(channels, int) or not isinstance(products, int):
        return False
    if to > _ROWS_CHANNELS_MAX and products > _ROWS_PRODUCTS_MAX:
        return False
    half = target.f32_lanes // 2
    speed = _TILES_SPEED if is_by_tiles else 1.0
    in_channels = _IN_CHANNELS / speed * products * -(-to // half) * half / target.f32_lanes
    in_channels += _TURNED * (channels + to)
    in_pixels = (_IN_PIXELS if to == 1 else _SHARED) * products * to / target.f32_lanes
    if any(pad != 0 for pad in (*facts.node.dims("pads_before"), *facts.node.dims("pads_after"))):
        in_pixels += _COPIED * channels
    return in_pixels < in_channels


def _may_have_rows(facts: ProductFacts, target: KernelTarget) -> bool:
    """Whether rows of pixels lie together in a row-major image, and in a result that may be so."""
    node, view, channels = facts.node, facts.x_view, facts.weights.shape[1]
    if view is None or view.strides[-1] != 1 or (channels != 1 and view.strides[1] == 1):
        return False
    is_kept = facts.becomes_output or facts.weights.shape[0] == 1
    are_near = max(node.ints("dilations"), default=1) <= _NEAR_TAPS
    is_plain = are_near and facts.x.dtype in _WIDE and facts.has_constant_weights
    return is_kept and is_plain and target.team_units == 1 and node.ints("strides")[-1] == 1


_NAME = "conv_rows"
CONV_ROWS = Algorithm((Kind(_NAME, one_kernel(lower_conv_rows), ResultLayout.ROW_MAJOR),), _offer)
