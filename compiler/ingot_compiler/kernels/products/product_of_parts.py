"""Products of f32 as products of parts of bf16: three launches.

In: a group anchored by a product of parts, its matrix view. Out: its loop programs. Not done here:
the loops of each (``float_parts``, ``contraction``).
"""

from dataclasses import replace

from ingot_compiler.ir.dims import (
    Dim,
    dim_add,
    dim_floordiv,
    dim_mod,
    dim_mul,
    dim_product,
    substitute,
    symbol,
)
from ingot_compiler.ir.types import TensorType
from ingot_compiler.kernels.anchored_group import AnchoredGroup
from ingot_compiler.kernels.matrix_tiles import COLUMNS_TOGETHER, TILE_ROWS, depth_turns
from ingot_compiler.kernels.products.contraction import PartsOfA, Product, contraction_program
from ingot_compiler.kernels.products.float_parts import (
    FloatParts,
    guard_program,
    part_program,
    span_of,
    with_parts,
)
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.launches_in_turn import launches_in_turn
from ingot_compiler.lowering.loops.bf16_pairs import TILE_DEPTH


def lower_parts(group: Group, target: KernelTarget, product: Product) -> LoweredGroup:
    """Split A, decide whether products of parts are near enough, multiply."""
    anchored = AnchoredGroup(group)
    extents = dict(product.taps) | {"g": product.outer, "row": product.rows, "k": product.depth}
    first, count = span_of(product.a_index, extents)
    *weights, greatest = (anchored.operand(at) for at in range(-anchored.method.parts, 0))
    depth = _depth_in_tiles(product, first)
    turns = _turns(product, depth, 2 * anchored.method.parts, target)
    sums_type = TensorType("f32", (product.rows, product.columns)) if turns > 1 else None
    parts = FloatParts(
        anchored.operand(0), first, count, tuple(weights), greatest, depth, turns, sums_type
    )
    plain_index, product = _over_parts(product, parts)
    groups = with_parts(group, parts)
    split, decide, multiply = groups
    programs = (
        part_program(split, parts),
        guard_program(decide, parts),
        contraction_program(AnchoredGroup(multiply), target, product, PartsOfA(parts, plain_index)),
    )
    return launches_in_turn(group, groups, programs, *parts.workspace)


def _depth_in_tiles(product: Product, first: int) -> int:
    """The depth of rows of A that follow one another and have whole tiles; 0 for others."""
    depth, taps = product.depth, dim_product(tuple(extent for _, extent in product.taps))
    if (product.outer, taps) != (1, 1) or not isinstance(depth, int) or depth % TILE_DEPTH:
        return 0
    only = substitute(product.a_index, {name: 0 for name, _ in product.taps})
    rows = dim_mul(symbol("row"), depth) + symbol("k")
    return depth if only == dim_add(rows, first) else 0


def _turns(product: Product, depth: int, element_bytes: int, target: KernelTarget) -> int:
    """In how many turns the depth of a product in tiles is multiplied; the sums between them lie in
    whole tiles."""
    rows, columns = product.rows, product.columns
    if not depth or not isinstance(rows, int) or not isinstance(columns, int):
        return 1
    if columns % COLUMNS_TOGETHER:
        return 1
    return depth_turns(rows, depth // TILE_DEPTH, element_bytes, target)


def _over_parts(product: Product, parts: FloatParts) -> tuple[Dim, Product]:
    """The index of A itself, and the product whose A the parts are: where these lie tile by tile,
    a tap is a tile, so that the indices of both are linear in taps and depth."""
    if not parts.depth:
        index = dim_add(product.a_index, -parts.first)
        return product.a_index, replace(product, a_index=index)
    row, k, tile = symbol("row"), symbol("k"), symbol("tile")
    plain = dim_mul(row, parts.depth) + dim_mul(tile, TILE_DEPTH) + dim_add(k, parts.first)
    block = dim_mul(dim_floordiv(row, TILE_ROWS), parts.chunk)
    within = dim_mul(dim_mod(row, TILE_ROWS), TILE_DEPTH)
    index = block + dim_mul(tile, TILE_ROWS * TILE_DEPTH) + within + k
    taps = (("tile", parts.depth // TILE_DEPTH),)
    return plain, replace(product, a_index=index, taps=taps, depth=TILE_DEPTH)
