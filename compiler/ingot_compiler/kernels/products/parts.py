"""Which products of f32 are computed as products of parts of bf16, in tiles.

In: facts of a product. Out: a method, of how many parts its factors are. Not done here: the parts
(``float_parts``, ``weight_parts``), tiles (``matrix_tiles``).

Three parts are as exact as f32, and six products of tiles take less time than multiply-adds do
where a product is large (``product_cost``): they are chosen where a target names tiles of bf16. Two
parts are for ``--precision bf16x3``. By ``vdpbf16ps`` three products take longer than
multiply-adds, so that targets without tiles have none of them.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_product
from ingot_compiler.ir.precision import BF16X3, F32, FAST, SIZE
from ingot_compiler.kernels.matrix_tiles import (
    COLUMNS_TOGETHER,
    depth_turns,
    matrix_tile,
    rows_of_block,
)
from ingot_compiler.kernels.products.algorithm import PANELS, ProductFacts, Wishes
from ingot_compiler.kernels.products.convolution import ConvShape
from ingot_compiler.kernels.products.product_cost import (
    PartsShape,
    ProductSizes,
    direct_cycles,
    parts_cycles,
)
from ingot_compiler.kernels.products.tuned import PARTS_OF_CONV, PARTS_OF_MATRIX
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.loops.bf16_pairs import TILE_DEPTH

_PARTS = {F32: 3, FAST: 3, BF16X3: 2}
_GAIN_MIN = 1.1  # below it the larger weights are not worth their bytes
_ROWS_MIN, _DEPTH_MIN, _COLUMNS_MIN = 48, 64, 64
"""Below them splitting A and the ends of tiles cost more than products of tiles gain."""


def parts_of_matrix(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> Method | None:
    """Parts of both factors, if their tiles pay."""
    count = part_count(facts, wishes, target)
    rows, depth = dim_product(facts.result.shape[:-1]), facts.weights.shape[0]
    if count == 1 or not _fits_tiles(rows, depth, target):
        return None
    return Method(PARTS_OF_MATRIX[count], PANELS, parts=count)


def parts_of_convolution(
    facts: ProductFacts, wishes: Wishes, target: KernelTarget
) -> Method | None:
    """Parts of both factors, if their tiles pay and the image has its memory for itself."""
    count, image = part_count(facts, wishes, target), facts.image
    if count == 1 or image is None or not facts.lies_alone:
        return None
    _, depth, _ = ConvShape.of(facts.node, image, facts.weights.shape).reduction(image)
    shape = facts.result.shape
    if not _fits_tiles(dim_product((shape[0], *shape[2:])), depth, target):
        return None
    return Method(PARTS_OF_CONV[count], PANELS, facts.weights.shape, count)


def part_count(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> int:
    """The number of parts of the factors of a matrix product or direct convolution; 1 where they
    are not split."""
    count = _PARTS.get(wishes.precision, 1)
    is_product = facts.node.op in ("matmul", "conv")
    if count == 1 or not is_product or not facts.has_constant_weights:
        return 1
    types = facts.x, facts.weights, facts.result
    are_fixed = all(isinstance(size, int) for each in types for size in each.shape)
    if not are_fixed or {each.dtype for each in types} != {"f32"}:
        return 1
    if "bf16" not in target.multiplies_tiles:
        return 1
    if wishes.optimize == SIZE and count > 2:  # six bytes for a weight, where f32 has four
        return 1
    sizes = _sizes(facts)
    if sizes is None:
        return 1
    is_asked_for = {wishes.of_layer, wishes.of_all} & {PARTS_OF_CONV[count], PARTS_OF_MATRIX[count]}
    return count if is_asked_for or _speed(facts, sizes, count, target) >= _GAIN_MIN else 1


def speed_of_parts(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> float:
    """How many times less time a direct convolution takes than by multiply-adds."""
    count, sizes = part_count(facts, wishes, target), _sizes(facts)
    return 1.0 if count == 1 or sizes is None else _speed(facts, sizes, count, target)


def _speed(facts: ProductFacts, sizes: ProductSizes, count: int, target: KernelTarget) -> float:
    node = facts.node
    brings_rows_together = node.op == "conv" and (
        max(node.ints("strides")) > 1 or any(size != 1 for size in facts.weights.shape[2:])
    )
    able = [each for each in target.processors if each.has_tiles] or target.processors
    shape = parts_shape(sizes, count, target, brings_rows_together=brings_rows_together)
    return min(direct_cycles(sizes, each) / parts_cycles(shape, sizes, each) for each in able)


def parts_shape(
    sizes: ProductSizes, count: int, target: KernelTarget, *, brings_rows_together: bool = False
) -> PartsShape:
    """How a product of so many parts is computed; rows that are brought together have no turns."""
    depth, turns = sizes.depth, 1
    is_whole = depth % TILE_DEPTH == 0 and sizes.columns % COLUMNS_TOGETHER == 0
    if is_whole and not brings_rows_together:
        turns = depth_turns(sizes.rows, depth // TILE_DEPTH, 2 * count, target)
    block = rows_of_block(sizes.rows, depth // turns, sizes.columns, 2 * count, target)
    return PartsShape(count, block, turns, brings_rows_together)


def _sizes(facts: ProductFacts) -> ProductSizes | None:
    """Rows, depth and columns; None where they are not worth it."""
    shape, weights = facts.result.shape, facts.weights.shape
    if facts.node.op == "matmul":
        if len(weights) != 2:
            return None
        return _large(dim_product(shape[:-1]), weights[0], shape[-1])
    pixels, groups = dim_product((shape[0], *shape[2:])), facts.node.integer("groups")
    own = weights[0] // groups if isinstance(weights[0], int) else 0
    return _large(pixels, dim_product(weights[1:]), own)


def _large(rows: Dim, depth: Dim, columns: Dim) -> ProductSizes | None:
    if not isinstance(rows, int) or not isinstance(depth, int) or not isinstance(columns, int):
        return None
    is_large = rows >= _ROWS_MIN and depth >= _DEPTH_MIN and columns >= _COLUMNS_MIN
    return ProductSizes(rows, depth, columns) if is_large else None


def _fits_tiles(rows: Dim, depth: Dim, target: KernelTarget) -> bool:
    """Whether tiles hold the rows of a product, and a tap whose summands are ``depth``."""
    return matrix_tile(rows, depth, ("bf16", "bf16"), 2, target) is not None
