"""Whether a convolution runs by Winograd's algorithm, and with which tiles: a contract of precision
and a model of cost.

In: facts of a convolution. Out: a ``WinogradShape``, or None for a direct one. Not done here:
blocks (``winograd_tiles``), code.

Errors against float64, relative to those of one chain of multiply-adds, as measured (decision 34):

| channels | tile | N(0, 1) | 50 % zeros | 80 % zeros |
|---|---|---|---|---|
| 16 | 2x2, 2x4 | 0.64, 1.33 | 0.82, 1.65 | 1.21, 2.61 |
| 32 | 2x2, 2x4 | 0.50, 1.04 | 0.61, 1.21 | 0.91, 1.92 |
| 64 | 2x2, 2x4 | 0.41, 0.84 | 0.50, 0.98 | 0.73, 1.63 |
| 256 | 2x2, 2x4 | 0.32, 0.65 | 0.41, 0.82 | 0.56, 1.30 |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ingot_compiler.backends.host.tiles import panel_columns
from ingot_compiler.backends.host.winograd_tiles import (
    WinogradShape,
    choose_blocks,
    tile_count,
)
from ingot_compiler.ir.dims import dim_mul
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.typical import typical
from ingot_compiler.lowering.kernel_target import KernelTarget

_KERNEL = (3, 3)
_SMALL, _WIDE = WinogradShape(_KERNEL, (2, 2)), WinogradShape(_KERNEL, (2, 4))
_ANY_SMALL_MIN, _ANY_WIDE_MIN = (
    32,
    32,
)  # channels of inputs with zeros: the latter where errors may grow
_DENSE_SMALL_MIN, _DENSE_WIDE_MIN = 16, 64  # channels of dense inputs
_LANES_MIN = 8  # measured on no other targets
# Cycles of a vector unit, measured on a 512-bit core: a product with what surrounds it; one
# frequency of a tile's vector, in and out; a byte of weights, half hidden behind the products.
_PRODUCT_CYCLES = 1.12
_INPUT_CYCLES, _OUTPUT_CYCLES = 3.5, 2.75
_WEIGHT_BYTE_CYCLES = 0.05
_GAIN_MIN = 1.1  # below it the larger weights are not worth their bytes


@dataclass(frozen=True, slots=True)
class WinogradFacts:
    """Types of a convolution; ``is_dense``: few of its inputs can be zero; ``allows_wide``: the user
    lets errors grow."""

    x: TensorType
    weights: TensorType
    result: TensorType
    is_dense: bool
    allows_wide: bool


def winograd_shape(node: Node, facts: WinogradFacts, target: KernelTarget) -> WinogradShape | None:
    """The tiles that cost least of those that are precise enough; None where a direct convolution
    costs less, or has another form than the algorithm is for."""
    if not _fits(node, facts) or target.f32_lanes < _LANES_MIN or not target.has_fma:
        return None
    shapes = _precise_shapes(facts)
    if not shapes:
        return None
    best = min(shapes, key=lambda shape: _cycles(shape, facts, target))
    is_faster = _GAIN_MIN * _cycles(best, facts, target) < _direct_cycles(facts, target)
    return best if is_faster else None


def _precise_shapes(facts: WinogradFacts) -> tuple[WinogradShape, ...]:
    """The tiles whose error is allowed."""
    channels = typical(facts.weights.shape[1])
    small = facts.allows_wide or channels >= (
        _DENSE_SMALL_MIN if facts.is_dense else _ANY_SMALL_MIN
    )
    wide = (facts.allows_wide and channels >= _ANY_WIDE_MIN) or (
        facts.is_dense and channels >= _DENSE_WIDE_MIN
    )
    return (*((_SMALL,) if small else ()), *((_WIDE,) if wide else ()))


def _fits(node: Node, facts: WinogradFacts) -> bool:
    """Whether it is a dense convolution of f32 with 3x3 taps and stride 1, whose channels fill
    vectors."""
    x, weights = facts.x, facts.weights
    ones = {*node.ints("strides"), *node.ints("dilations"), node.integer("groups")} == {1}
    channels = weights.shape[1]
    fills = isinstance(channels, int) and channels > 0 and channels % panel_columns("f32") == 0
    dtypes = {x.dtype, weights.dtype, facts.result.dtype} == {"f32"}
    return weights.shape[2:] == _KERNEL and ones and fills and dtypes


def _cycles(shape: WinogradShape, facts: WinogradFacts, target: KernelTarget) -> float:
    images, columns, *extents = facts.result.shape
    channels, lanes = typical(facts.weights.shape[1]), target.f32_lanes
    assert isinstance(columns, int)
    tiles = typical(tile_count(images, (extents[0], extents[1]), shape))
    computed = choose_blocks(tiles, channels, columns, shape, target).cost
    vectors_in, vectors_out = channels / lanes, _column_vectors(facts, lanes)
    products = computed * channels * vectors_out * _PRODUCT_CYCLES
    transforms = tiles * (vectors_in * _INPUT_CYCLES + vectors_out * _OUTPUT_CYCLES)
    weights_bytes = 4 * channels * lanes * vectors_out
    each = products + transforms + weights_bytes * _WEIGHT_BYTE_CYCLES
    return shape.frequency_count * each


def _direct_cycles(facts: WinogradFacts, target: KernelTarget) -> float:
    images, _, *extents = facts.result.shape
    channels, lanes = typical(facts.weights.shape[1]), target.f32_lanes
    pixels = typical(dim_mul(images, dim_mul(extents[0], extents[1])))
    vectors = _column_vectors(facts, lanes)
    weights_bytes = 4 * channels * lanes * vectors
    return math.prod(_KERNEL) * (pixels * channels * vectors + weights_bytes * _WEIGHT_BYTE_CYCLES)


def _column_vectors(facts: WinogradFacts, lanes: int) -> int:
    """Vectors of output channels, up to the ends of their panels."""
    columns, panel = facts.result.shape[1], panel_columns("f32")
    assert isinstance(columns, int)
    return -(-columns // panel) * (panel // lanes)
