"""Which products of f32 are computed as products of parts of bf16, in tiles.

In: a node, the fuser. Out: of how many parts its factors are. Not done here: the parts
(``float_parts``, ``weight_parts``), tiles (``matrix_tiles``).

Three parts are as exact as f32, and six products of tiles take less time than multiply-adds do
(decision 4 has the measurements, which were made on another machine): they are chosen where a
target names tiles of bf16. Two parts are for ``--precision bf16x3``. By ``vdpbf16ps`` three products
take longer than multiply-adds, so that targets without tiles have none of them.
"""

from __future__ import annotations

from ingot_compiler.backends.host.matrix_tiles import matrix_tile
from ingot_compiler.ir.dims import Dim, dim_product
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.optimize_for import SIZE
from ingot_compiler.ir.precision import BF16X3, F32, FAST
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.layout import channels_last
from ingot_compiler.lowering.fusion.storage import Stored
from ingot_compiler.lowering.views import dense_view

_PARTS = {F32: 3, FAST: 3, BF16X3: 2}
# Time of multiply-adds of f32 by that of products of parts: measured on a Sapphire Rapids.
_SPEED = {1: 1.0, 2: 2.7, 3: 1.6}
_ROWS_MIN, _DEPTH_MIN, _COLUMNS_MIN = 48, 64, 64
"""Below them splitting A and the ends of tiles cost more than products of tiles gain."""


def part_count(fuser: Fuser, node: Node) -> int:
    """Of how many parts the factors of a matrix product or direct convolution are; 1: of none."""
    values, (x, w), (result,) = fuser.values, node.operands[:2], node.results
    count = _PARTS.get(fuser.precision, 1)
    if node.op not in ("matmul", "conv") or not values.is_constant(w):
        return 1
    kinds = [values.type_of(value) for value in (x, w, result)]
    are_fixed = all(isinstance(size, int) for kind in kinds for size in kind.shape)
    if not are_fixed or {kind.dtype for kind in kinds} != {"f32"}:
        return 1
    if "bf16" not in fuser.targets[values.device_of(result)].multiplies_tiles:
        return 1
    if fuser.optimize == SIZE and count > 2:  # six bytes for a weight, where f32 has four
        return 1
    return count if _is_large(fuser, node) else 1


def speed_of_parts(fuser: Fuser, node: Node) -> float:
    """How many times less time a direct convolution takes than by multiply-adds."""
    return _SPEED[part_count(fuser, node)]


def _is_large(fuser: Fuser, node: Node) -> bool:
    """Whether rows, columns and depth are worth it."""
    values, w, (result,) = fuser.values, node.operands[1], node.results
    shape, weights = values.type_of(result).shape, values.type_of(w).shape
    if node.op == "matmul":
        if len(weights) != 2:
            return False
        return _reach(dim_product(shape[:-1]), weights[0], shape[-1])
    pixels, groups = dim_product((shape[0], *shape[2:])), node.integer("groups")
    own = weights[0] // groups if isinstance(weights[0], int) else 0
    return _reach(pixels, dim_product(weights[1:]), own)


def _reach(rows: Dim, depth: Dim, columns: Dim) -> bool:
    sizes = zip((rows, depth, columns), (_ROWS_MIN, _DEPTH_MIN, _COLUMNS_MIN), strict=True)
    return all(isinstance(size, int) and size >= least for size, least in sizes)


def fits_tiles(fuser: Fuser, node: Node, depth: Dim) -> bool:
    """Whether tiles hold the rows of a product, and a tap whose summands are ``depth``."""
    shape = fuser.values.type_of(node.results[0]).shape
    target = fuser.targets[fuser.values.device_of(node.results[0])]
    rows = dim_product(shape[:-1] if node.op == "matmul" else (shape[0], *shape[2:]))
    return matrix_tile(rows, depth, ("bf16", "bf16"), 2, target) is not None


def lies_alone(fuser: Fuser, value: int, image: Stored) -> bool:
    """Whether all memory from the first pixel of an image to the last one is the image's own, so
    that it has been written when the image has."""
    if fuser.storage.find_image(value) == image:
        return True
    shape = fuser.values.type_of(value).shape
    wanted = dense_view(shape, channels_last(len(shape))).strides
    strides = zip(shape, image.view.strides, wanted, strict=True)
    return all(size == 1 or have == want for size, have, want in strides)
