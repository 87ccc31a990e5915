"""Which products of f32 are computed as products of parts of bf16, in tiles.

In: facts of a product. Out: a method, of how many parts its factors are. Not done here: the parts
(``float_parts``, ``weight_parts``), tiles (``matrix_tiles``).

Three parts are as exact as f32, and six products of tiles take less time than multiply-adds do
(decision 4 has the measurements, which were made on another machine): they are chosen where a
target names tiles of bf16. Two parts are for ``--precision bf16x3``. By ``vdpbf16ps`` three products
take longer than multiply-adds, so that targets without tiles have none of them.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_product
from ingot_compiler.ir.precision import BF16X3, F32, FAST, SIZE
from ingot_compiler.kernels.matrix_tiles import matrix_tile
from ingot_compiler.kernels.products.algorithm import PANELS, ProductFacts, Wishes
from ingot_compiler.kernels.products.convolution import ConvShape
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.kernel_target import KernelTarget

_PARTS = {F32: 3, FAST: 3, BF16X3: 2}
# Time of multiply-adds of f32 by that of products of parts: measured on a Sapphire Rapids.
_SPEED = {1: 1.0, 2: 2.7, 3: 1.6}
_ROWS_MIN, _DEPTH_MIN, _COLUMNS_MIN = 48, 64, 64
"""Below them splitting A and the ends of tiles cost more than products of tiles gain."""


PARTS_OF_CONV = {2: "conv_bf16x3", 3: "conv_bf16x6"}
PARTS_OF_MATRIX = {2: "matmul_bf16x3", 3: "matmul_bf16x6"}
"""The kinds of kernels by the number of parts of a factor."""


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
    if facts.node.op not in ("matmul", "conv") or not facts.has_constant_weights:
        return 1
    types = facts.x, facts.weights, facts.result
    are_fixed = all(isinstance(size, int) for each in types for size in each.shape)
    if not are_fixed or {each.dtype for each in types} != {"f32"}:
        return 1
    if "bf16" not in target.multiplies_tiles:
        return 1
    if wishes.optimize == SIZE and count > 2:  # six bytes for a weight, where f32 has four
        return 1
    return count if _is_large(facts) else 1


def speed_of_parts(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> float:
    """How many times less time a direct convolution takes than by multiply-adds."""
    return _SPEED[part_count(facts, wishes, target)]


def _is_large(facts: ProductFacts) -> bool:
    """Whether rows, columns and depth are worth it."""
    shape, weights = facts.result.shape, facts.weights.shape
    if facts.node.op == "matmul":
        if len(weights) != 2:
            return False
        return _reach(dim_product(shape[:-1]), weights[0], shape[-1])
    pixels, groups = dim_product((shape[0], *shape[2:])), facts.node.integer("groups")
    own = weights[0] // groups if isinstance(weights[0], int) else 0
    return _reach(pixels, dim_product(weights[1:]), own)


def _reach(rows: Dim, depth: Dim, columns: Dim) -> bool:
    sizes = zip((rows, depth, columns), (_ROWS_MIN, _DEPTH_MIN, _COLUMNS_MIN), strict=True)
    return all(isinstance(size, int) and size >= least for size, least in sizes)


def _fits_tiles(rows: Dim, depth: Dim, target: KernelTarget) -> bool:
    """Whether tiles hold the rows of a product, and a tap whose summands are ``depth``."""
    return matrix_tile(rows, depth, ("bf16", "bf16"), 2, target) is not None
