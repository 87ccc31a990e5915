"""Whether a product of matrices, or a convolution as one, runs by Strassen's algorithm, and with
which tiles: a bound on the error and a cost model decide.

In: facts of a product, perhaps the method that was measured to be best. Out: a ``StrassenShape``, or
None for a direct one. Not done here: code (``products.strassen``).

Errors against float64, relative to those of one chain of multiply-adds, as measured (decision 42):

| depth | block of it | N(0, 1) | N(3, 1) | half of them 0 | 80 % zeros |
|---|---|---|---|---|---|
| 384 | 48 | 0.78 | 0.84 | 0.97 | 1.16 |
| 512 | 64 | 0.77 | 0.86 | 0.97 | 1.12 |
| 640 | 32 | 0.56 | 0.61 | 0.72 | 0.93 |
| 672 | 48 | 0.62 | 0.68 | 0.78 | 0.95 |
| 768 | 64 | 0.63 | 0.71 | 0.81 | 0.94 |
| 1024 | 64 | 0.56 | 0.63 | 0.71 | 0.86 |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ingot_compiler.ir.dims import Dim, dim_mul, dim_product
from ingot_compiler.ir.precision import LOOSE, SIZE
from ingot_compiler.kernels.products.algorithm import (
    PANELS,
    ProductFacts,
    Wishes,
    widens_bytes,
)
from ingot_compiler.kernels.products.convolution import ConvShape
from ingot_compiler.kernels.products.product_cost import (
    ProductSizes,
    direct_cycles,
    least_loss,
    strassen_cycles,
)
from ingot_compiler.kernels.products.taps_inside import skips_taps
from ingot_compiler.kernels.products.tuned import MATRIX_STRASSEN
from ingot_compiler.kernels.products.tuned import STRASSEN as STRASSEN_OF_CONV
from ingot_compiler.kernels.strassen_scratch import scratch_of
from ingot_compiler.kernels.tiles import panel_columns
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.loops.loop_parts import StrassenTile
from ingot_compiler.lowering.loops.strassen import StrassenShape
from ingot_compiler.targets.processors import ProcessorClass
from ingot_runtime.lazy_dataclass import dataclass

STRASSEN = MATRIX_STRASSEN
"""The kind of its kernels."""
_BLOCK_MIN, _BLOCK_MAX = 32, 128  # of the depth: shorter chains are added too often
_DEPTH_MIN, _DEPTH_MIN_OF_DENSE, _DEPTH_LONG = 576, 384, 768
# By what the depth is divided for the longest block: with ``fast``, of dense inputs, of others, and
# of a long depth, whose sums of blocks are short beside one chain.
_SHARE_OF_FAST, _SHARE_OF_DENSE, _SHARE, _SHARE_OF_LONG = 6, 8, 14, 12
_ROWS_MIN = 20  # of the least tile; weights from memory are there in time for it
_TILES = ((12, 2), (14, 2), (13, 2), (11, 2), (10, 2))
"""Rows of a block, vectors of its columns: what fills 32 registers. The four blocks of B of a tile
fit a first cache of 48 KB with two vectors, and fill it with three."""
_REGISTERS, _LANES = 32, 16  # measured on no other targets
_GAIN_MIN = 1.03
_UNITS_WANTED = 8
_OPEN_ROWS = 256  # for which the tiles of an open number of rows are chosen
_SCRATCH_BYTES_MAX = 3 << 20  # per thread


@dataclass(frozen=True, slots=True)
class StrassenFacts:
    """Sizes of a product of f32 by a constant; ``is_dense``: few of its inputs can be zero;
    ``allows_more``: the user lets errors grow. ``run``: so many elements of the depth lie beside
    each other in the left factor (None: all)."""

    rows: Dim
    depth: Dim
    columns: Dim
    is_dense: bool
    allows_more: bool
    run: int | None = None


def offer_matrix(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> Method | None:
    """Offer Strassen's algorithm for a product by a matrix of weights."""
    if not _is_plain(facts, wishes) or facts.weights.rank != 2:
        return None
    rows, (depth, columns) = dim_product(facts.x.shape[:-1]), facts.weights.shape
    allows_more = wishes.precision in LOOSE
    sizes = StrassenFacts(rows, depth, columns, facts.is_dense, allows_more)
    is_asked_for = STRASSEN in (wishes.of_layer, wishes.of_all)
    shape = strassen_shape(sizes, target, is_asked_for=is_asked_for)
    if shape is None:
        return None
    return Method(STRASSEN, PANELS, has_addends=widens_bytes(facts, target), strassen=shape)


def offer_convolution(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> Method | None:
    """Offer Strassen's algorithm for a convolution that is one product of matrices, all of whose
    taps count."""
    image, node = facts.image, facts.node
    if not _is_plain(facts, wishes) or image is None or node.integer("groups") != 1:
        return None
    conv = ConvShape.of(node, image, facts.weights.shape)
    taps, run, _ = conv.reduction(image)
    depth = dim_mul(dim_product(tuple(extent for _, extent in taps)), run)
    if not isinstance(run, int) or len(taps) > 1 or image.view.strides[1] != 1:
        return None
    if skips_taps(conv, image.type, facts.result.shape):
        return None
    (images, columns, *plane), allows_more = facts.result.shape, wishes.precision in LOOSE
    pixels = dim_product((images, *plane))
    sizes = StrassenFacts(pixels, depth, columns, facts.is_dense, allows_more, run)
    is_asked_for = STRASSEN_OF_CONV in (wishes.of_layer, wishes.of_all)
    shape = strassen_shape(sizes, target, is_asked_for=is_asked_for)
    if shape is None or not shape.serves_all(pixels):
        return None
    return Method(STRASSEN_OF_CONV, PANELS, facts.weights.shape, strassen=shape)


def _is_plain(facts: ProductFacts, wishes: Wishes) -> bool:
    """Whether all is of f32, weights are known, and may take more bytes."""
    dtypes = {each.dtype for each in (facts.x, facts.weights, facts.result)}
    return wishes.optimize != SIZE and facts.has_constant_weights and dtypes == {"f32"}


def strassen_shape(
    facts: StrassenFacts, target: KernelTarget, *, is_asked_for: bool = False
) -> StrassenShape | None:
    """The tiles that cost least; None where the algorithm is not precise enough, not for such sizes
    or targets, or gains nothing and ``is_asked_for`` does not hold."""
    is_measured = (target.vector_register_count, target.f32_lanes) == (_REGISTERS, _LANES)
    if not is_measured or not target.has_fma or target.multiplies_by_element:
        return None
    rows, depth, columns = facts.rows, facts.depth, facts.columns
    if not isinstance(depth, int) or not isinstance(columns, int) or target.team_units > 1:
        return None
    block = _block(depth, facts)
    if block is None:
        return None
    if not isinstance(rows, int):
        return _open_shape(depth, columns, block, target)
    sizes = ProductSizes(rows, depth, columns)
    shapes = list(_shapes(sizes, block))
    return _choose(shapes if is_asked_for else [None, *shapes], sizes, target)


def _open_shape(depth: int, columns: int, block: int, target: KernelTarget) -> StrassenShape | None:
    """The tiles for an open number of rows, and the number from which on they always gain."""
    usual = ProductSizes(_OPEN_ROWS, depth, columns)
    shape = _choose([None, *_shapes(usual, block)], usual, target)
    if shape is None:
        return None

    def gains(rows: int) -> bool:
        return _choose([None, shape], ProductSizes(rows, depth, columns), target) is not None

    slower = (rows for rows in reversed(range(_ROWS_MIN, _OPEN_ROWS)) if not gains(rows))
    return replace(shape, rows_min=next(slower, _ROWS_MIN - 1) + 1)


def _choose(
    choices: Sequence[StrassenShape | None], sizes: ProductSizes, target: KernelTarget
) -> StrassenShape | None:
    """The tiles, or None for a direct product, which lose least on the processors of the target;
    tiles that gain too little on each of them for the bytes of their code are not worth it."""

    def cycles(choice: StrassenShape | None, processor: ProcessorClass) -> float:
        if choice is None:
            return direct_cycles(sizes, processor)
        return strassen_cycles(choice, sizes, processor)

    if not choices:
        return None
    chosen = least_loss(choices, target.processors, cycles)
    gains = (cycles(None, each) / cycles(chosen, each) for each in target.processors)
    return chosen if None not in choices or max(gains) >= _GAIN_MIN else None


def _block(depth: int, facts: StrassenFacts) -> int | None:
    """The longest block of the depth that is precise enough; None: none is."""
    is_short_enough = facts.is_dense or facts.allows_more
    if depth < (_DEPTH_MIN_OF_DENSE if is_short_enough else _DEPTH_MIN):
        return None
    if facts.allows_more:
        share = _SHARE_OF_FAST
    elif depth >= _DEPTH_LONG:
        share = _SHARE_OF_LONG
    else:
        share = _SHARE_OF_DENSE if facts.is_dense else _SHARE
    longest = min(_BLOCK_MAX, depth // share)
    step = panel_columns("f32")
    run = facts.run or depth
    fits = (block for block in range(longest, _BLOCK_MIN - 1, -1) if run % (2 * block) == 0)
    return next((block for block in fits if block % step == 0), None)


def _shapes(sizes: ProductSizes, depth_block: int) -> Iterator[StrassenShape]:
    """The shapes whose rows and columns have one tile or more: tiles, and how many of them are one
    below the other in a unit."""
    for height, vectors in _TILES:
        width, high = 2 * vectors * _LANES, 2 * height
        if sizes.columns >= width and sizes.rows >= high:
            tiles = -(-sizes.rows // high)
            most = max(1, _SCRATCH_BYTES_MAX // scratch_of(high, sizes.depth).size_bytes)
            least = max(-(-_UNITS_WANTED * width // sizes.columns), -(-tiles // most))
            counts = {-(-tiles // blocks) for blocks in range(min(least, tiles), tiles + 1)}
            for count in sorted(counts, reverse=True):
                yield StrassenShape(
                    high, high * count, StrassenTile(vectors, depth_block), _ROWS_MIN
                )
