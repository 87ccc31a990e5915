"""Whether a convolution runs by Winograd's algorithm, and with which tiles: a bound on the error
and a cost model decide.

In: facts of a convolution, perhaps the method that was measured to be best. Out: a
``WinogradShape``, or None for a direct one. Not done here: the offer (``winograd``), blocks
(``winograd_tiles``), code.

Errors against float64, relative to those of one chain of multiply-adds, were measured (decision 33
has the tables): a tile is allowed from the channels on with which that is at most 0.95.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_product
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.precision import BF16, LOOSE
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.ir.types import TensorType
from ingot_compiler.kernels.products.algorithm import ProductFacts, Wishes
from ingot_compiler.kernels.products.parts import speed_of_parts
from ingot_compiler.kernels.products.tuned import DIRECT, name_of_tile, no_method_error
from ingot_compiler.kernels.tiles import panel_columns
from ingot_compiler.kernels.winograd_tiles import (
    TAPS,
    WinogradShape,
    choose_blocks,
    plane_of,
    tile_count,
)
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _Tiles:
    """``tile``: rows and columns of results. Least channels behind which the error is small enough:
    of any inputs, of dense ones, and where errors may grow; None: never."""

    tile: tuple[int, int]
    of_any: int | None
    of_dense: int
    where_loose: int


_TILES = (
    _Tiles((2, 2), 32, 16, 16),
    _Tiles((2, 4), 128, 32, 32),
    _Tiles((3, 3), 128, 32, 32),
    _Tiles((3, 4), 512, 64, 32),
    _Tiles((4, 4), None, 128, 128),
)
_TILES_OF_MORE_TAPS = (  # whose chain is longer
    _Tiles((2, 2), 32, 16, 16),
    _Tiles((2, 4), 64, 32, 32),
    _Tiles((3, 3), 64, 32, 32),
    _Tiles((3, 4), 512, 32, 32),
    _Tiles((4, 4), None, 64, 64),
)
_TILES_OF_A_ROW = (_Tiles((1, 2), 64, 16, 16), _Tiles((1, 4), None, 64, 32))
_TILES_OF_A_ROW_OF_MORE = (_Tiles((1, 2), 32, 16, 16), _Tiles((1, 4), None, 64, 32))
_BLOCKS_MAX = 9  # of taps: all are in the code of a kernel
_LANES_MIN = 8  # measured on no other targets
# Cycles of a vector unit, measured on a 512-bit core: a product with what surrounds it; one
# frequency of a tile's vector, in and out; a byte of weights, half hidden behind the products.
_PRODUCT_CYCLES = 1.12
_INPUT_CYCLES, _OUTPUT_CYCLES = 3.5, 2.75
_WEIGHT_BYTE_CYCLES = 0.05
_PAIR_SPEED = 2.0  # of a direct convolution that multiplies bf16 two at a time
_GAIN_MIN = 1.1  # below it the larger weights are not worth their bytes


def cycle_share(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> float:
    """The cycles that a convolution takes, divided by those of a direct one."""
    shape = fastest_shape(allowed_shapes(facts, wishes, target), facts, wishes, target)
    if shape is None:
        return 1.0
    return winograd_cycles(shape, facts, target) / direct_cycles(facts, wishes, target)


def allowed_shapes(
    facts: ProductFacts, wishes: Wishes, target: KernelTarget
) -> tuple[WinogradShape, ...]:
    """The tiles that are precise enough; none where the convolution has another form than the
    algorithm is for."""
    if not _fits(facts) or target.f32_lanes < _LANES_MIN or not target.has_fma:
        return ()
    return _precise_shapes(facts, wishes)


def fastest_shape(
    allowed: Sequence[WinogradShape], facts: ProductFacts, wishes: Wishes, target: KernelTarget
) -> WinogradShape | None:
    """The tiles that cost least; None where a direct convolution costs less, or where units come in
    teams: the algorithm has scratch, of which a GPU has few places, and no team."""
    if not allowed or target.team_units > 1:
        return None
    best = min(allowed, key=lambda shape: winograd_cycles(shape, facts, target))
    direct = direct_cycles(facts, wishes, target)
    return best if _GAIN_MIN * winograd_cycles(best, facts, target) < direct else None


def shape_of_method(node: Node, method: str, allowed: Sequence[WinogradShape]) -> WinogradShape:
    """The tiles of a method that somebody names.

    Raises:
        UserError: the convolution cannot run by it, or not as precisely as it has to.
    """
    names = [name_of_tile(shape.tile) for shape in allowed]
    if method not in names:
        raise no_method_error(node, method, [DIRECT, *names])
    return allowed[names.index(method)]


def _precise_shapes(facts: ProductFacts, wishes: Wishes) -> tuple[WinogradShape, ...]:
    """The tiles whose error is allowed."""
    channels, kernel = typical(facts.weights.shape[1]), _kernel(facts.weights)
    return tuple(
        WinogradShape(kernel, tiles.tile)
        for tiles in _tiles_of(kernel)
        if channels >= _channels_min(tiles, facts, wishes)
    )


def _kernel(weights: TensorType) -> tuple[int, int]:
    """Rows and columns of taps; those along one axis are a row."""
    rows, columns = (1, *weights.shape[2:])[-2:]
    assert isinstance(rows, int)
    assert isinstance(columns, int)
    return rows, columns


def _tiles_of(kernel: tuple[int, int]) -> Sequence[_Tiles]:
    """The tiles for so many taps, small ones first."""
    rows, columns = kernel
    if rows == 1:
        return _TILES_OF_A_ROW_OF_MORE if columns > TAPS else _TILES_OF_A_ROW
    return _TILES_OF_MORE_TAPS if min(kernel) > TAPS else _TILES


def _channels_min(tiles: _Tiles, facts: ProductFacts, wishes: Wishes) -> float:
    allowed = [tiles.of_any]
    if facts.is_dense:
        allowed.append(tiles.of_dense)
    if wishes.precision in LOOSE:
        allowed.append(tiles.where_loose)
    return min((least for least in allowed if least is not None), default=math.inf)


def _fits(facts: ProductFacts) -> bool:
    """Whether it is a convolution of f32 with stride 1 and taps that fill blocks, whose channels
    fill vectors; those of groups, also the results'."""
    node, x, weights = facts.node, facts.x, facts.weights
    groups = node.integer("groups")
    ones = {*node.ints("strides"), *node.ints("dilations")} == {1}
    fills = _fill_vectors(weights.shape[1])
    if groups > 1:
        fills = fills and _fill_vectors(dim_floordiv(weights.shape[0], groups))
    dtypes = {x.dtype, weights.dtype, facts.result.dtype} == {"f32"}
    return ones and fills and dtypes and _has_taps(weights)


def _fill_vectors(channels: Dim) -> bool:
    return isinstance(channels, int) and channels > 0 and channels % panel_columns("f32") == 0


def _has_taps(weights: TensorType) -> bool:
    """Whether there are 3x3 taps, or more along both axes, or 3 and more along the only one."""
    if weights.rank not in (3, 4):
        return False
    taps = [size for size in weights.shape[2:] if isinstance(size, int)]
    blocks = math.prod(-(-size // TAPS) for size in taps)
    return (set(taps) == {TAPS} or min(taps) > TAPS) and blocks <= _BLOCKS_MAX


def winograd_cycles(shape: WinogradShape, facts: ProductFacts, target: KernelTarget) -> float:
    """Predict cycles, each as long as a multiply-add of a vector takes at the peak."""
    images, columns, *_ = facts.result.shape
    channels, lanes = typical(facts.weights.shape[1]), target.f32_lanes
    assert isinstance(columns, int)
    groups = max(1, typical(facts.x.shape[1]) // channels)
    tiles = typical(tile_count(images, plane_of(facts.result.shape), shape))
    depth = shape.depth(channels)
    computed = choose_blocks(tiles, depth, columns // groups, shape, target).cost
    vectors_in, vectors_out = groups * depth / lanes, _column_vectors(facts, lanes)
    products = computed * depth * vectors_out * _PRODUCT_CYCLES
    transforms = tiles * (vectors_in * _INPUT_CYCLES + vectors_out * _OUTPUT_CYCLES)
    weights_bytes = 4 * depth * lanes * vectors_out
    each = products + transforms + weights_bytes * _WEIGHT_BYTE_CYCLES
    return shape.frequency_count * each


def direct_cycles(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> float:
    """Predict the cycles of a direct convolution, in the unit of ``winograd_cycles``."""
    channels, lanes = typical(facts.weights.shape[1]), target.f32_lanes
    pixels = typical(dim_product((facts.result.shape[0], *facts.result.shape[2:])))
    vectors = _column_vectors(facts, lanes)
    weights_bytes = 4 * channels * lanes * vectors
    taps = typical(dim_product(facts.weights.shape[2:]))
    cycles = taps * (pixels * channels * vectors + weights_bytes * _WEIGHT_BYTE_CYCLES)
    return cycles / _direct_speed(facts, wishes, target)


def _direct_speed(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> float:
    """How many times less time a direct convolution takes than by multiply-adds of f32."""
    return _PAIR_SPEED if wishes.precision == BF16 else speed_of_parts(facts, wishes, target)


def _column_vectors(facts: ProductFacts, lanes: int) -> int:
    """Vectors of output channels, up to the ends of their panels."""
    columns, panel = facts.result.shape[1], panel_columns("f32")
    assert isinstance(columns, int)
    return -(-columns // panel) * (panel // lanes)
