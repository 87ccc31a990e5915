"""Which kind of kernel an op becomes where there is a choice: pure functions of types, attributes
and layouts.

In: facts of a node. Out: a kind. Not done here: the layouts and packed weights that the kind then
asks for (``anchors``).
"""

from __future__ import annotations

from ingot_compiler.backends.host.kinds.conv import CONV
from ingot_compiler.backends.host.kinds.conv_rows import CONV_ROWS
from ingot_compiler.backends.host.kinds.depthwise import DEPTHWISE, has_byte_blocks
from ingot_compiler.backends.host.kinds.depthwise_plane import DEPTHWISE_PLANE
from ingot_compiler.ir.dims import Dim, dim_product
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import FLOATS, DType, TensorType
from ingot_compiler.ir.window_rules import BYTES
from ingot_compiler.lowering.fused import View
from ingot_compiler.lowering.kinds.kind import Kind
from ingot_runtime.lazy_dataclass import dataclass

PLANE_STRIDE_MAX = 2  # pixels further apart share no vectors
_PLANE_RANKS = (3, 4)
_WIDE: tuple[DType, ...] = ("f32", "f64")
_TILES_SPEED = 1.5  # of Winograd's algorithm, transforms included
# Cycles: of a vector's multiply-adds where channels are in lanes, where pixels are and one channel
# or several share each load; of an element that is copied, or turned.
_IN_CHANNELS, _IN_PIXELS, _SHARED, _COPIED, _TURNED = 0.55, 1.0, 0.7, 0.2, 1.6
_NEAR_TAPS = 4  # elements apart: of taps further apart, many lie outside of the image
# More channels of more products are a product whose second factor should be packed.
_ROWS_CHANNELS_MAX, _ROWS_PRODUCTS_MAX = 32, 64


@dataclass(frozen=True, slots=True)
class ConvFacts:
    """Types of a convolution; ``x_view``: how its image lies if it is stored and in no
    channels-last form; ``becomes_output``: nothing but elementwise ops stands between the result
    and the graph's outputs; ``masks_loads``: vectors are loaded under masks of the run time;
    ``lanes``: of f32; ``has_team``: units work together; ``is_by_tiles``: Winograd's algorithm is the
    other way."""

    x: TensorType
    weights: TensorType
    result: TensorType
    constant_weights: bool
    x_view: View | None
    becomes_output: bool
    masks_loads: bool
    lanes: int
    has_team: bool
    is_by_tiles: bool


def conv_kind(node: Node, facts: ConvFacts) -> Kind:
    """A depthwise convolution is of floats or bytes, has one input and one output channel per
    group, weights known to the build, and no more taps than a block of code has room for. Few
    channels of a row-major image are computed by rows."""
    groups = node.integer("groups")
    out_channels, own_channels = facts.weights.shape[:2]
    one_each = groups != 1 and out_channels == groups and own_channels == 1
    if not one_each or not facts.constant_weights:
        return CONV_ROWS if _gains_rows(node, facts) else CONV
    if facts.x.dtype in BYTES:
        return DEPTHWISE if has_byte_blocks(facts.weights.shape[2:]) else CONV
    if facts.x.dtype not in FLOATS:
        return CONV
    return DEPTHWISE_PLANE if _stays_row_major(node, facts) else DEPTHWISE


def _gains_rows(node: Node, facts: ConvFacts) -> bool:
    """Whether pixels in lanes are faster: row-major the image need not be turned, nor the result.
    Channels and kernel decide, and no open size, so that sums have one order."""
    (to, channels, *kernel), width = facts.weights.shape, facts.result.shape[-1]
    products = dim_product((channels, *kernel))
    if not _may_have_rows(node, facts) or (isinstance(width, int) and width < facts.lanes // 2):
        return False
    if not isinstance(to, int) or not isinstance(channels, int) or not isinstance(products, int):
        return False
    if to > _ROWS_CHANNELS_MAX and products > _ROWS_PRODUCTS_MAX:
        return False
    half = facts.lanes // 2
    speed = _TILES_SPEED if facts.is_by_tiles else 1.0
    in_channels = _IN_CHANNELS / speed * products * -(-to // half) * half / facts.lanes
    in_channels += _TURNED * (channels + to)
    in_pixels = (_IN_PIXELS if to == 1 else _SHARED) * products * to / facts.lanes
    if any(pad != 0 for pad in (*node.dims("pads_before"), *node.dims("pads_after"))):
        in_pixels += _COPIED * channels
    return in_pixels < in_channels


def _may_have_rows(node: Node, facts: ConvFacts) -> bool:
    """Whether rows of pixels lie together in a row-major image, and in a result that may be so."""
    view, channels = facts.x_view, facts.weights.shape[1]
    if view is None or view.strides[-1] != 1 or (channels != 1 and view.strides[1] == 1):
        return False
    is_kept = facts.becomes_output or facts.weights.shape[0] == 1
    are_near = max(node.ints("dilations"), default=1) <= _NEAR_TAPS
    is_plain = are_near and facts.x.dtype in _WIDE and facts.constant_weights and not facts.has_team
    return is_kept and is_plain and node.integer("groups") == 1 and node.ints("strides")[-1] == 1


def _stays_row_major(node: Node, facts: ConvFacts) -> bool:
    """Whether a depthwise convolution runs on planes: the image lies row-major, the result becomes
    an output, and every other pixel at most is skipped. Planes of unknown sizes need masks."""
    x, view = facts.x, facts.x_view
    if view is None or x.rank not in _PLANE_RANKS or x.dtype not in ("f32", "f64"):
        return False
    sizes = (*facts.weights.shape[2:], *node.dims("pads_before"))
    if not facts.masks_loads:
        sizes = (*sizes, *x.shape[2:], *facts.result.shape[2:])
    dense = view.strides[-1] == 1 and x.shape[1] != 1
    return (
        _all_known(sizes)
        and dense
        and node.ints("strides")[-1] <= PLANE_STRIDE_MAX
        and facts.becomes_output
    )


def _all_known(sizes: tuple[Dim, ...]) -> bool:
    return all(isinstance(size, int) for size in sizes)
