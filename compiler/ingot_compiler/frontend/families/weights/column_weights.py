"""Constant matrices of 4-bit integers with one scale for a column, or for all: read in blocks by a
product of floats, as if each block of a column had the column's scale.

In: a context, what a matrix is made of, what it multiplies. Out: ``BlockWeights``, or None where the
product is one of integers, or of so many rows that floats of four bytes are no more to read. Not
done here: the product itself (``block_weights``).
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.frontend.build.compose import broadcast_to, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.translation import BlockWeights
from ingot_compiler.ir.dims import Dim, dim_product
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait

# One row of 768 times 768 columns takes 12 us in blocks of 128, 14 in those of 32, 25 in one block.
_BLOCKS = (128, 64, 32, 16)
_ROWS_MAX = 16
_MOVES = Trait.MOVEMENT | Trait.INDEXED


def in_blocks(context: OpContext, a: int, weights: BlockWeights) -> BlockWeights | None:
    """The matrix with scales and zero points for blocks along its depth; None where it is not worth
    it."""
    axis = 1 if weights.is_turned else 0
    shape = list(context.shape_of(weights.numbers))
    depth = shape[axis]
    block = block_of_column(depth)
    along_depth = context.rank_of(weights.scale) == 1 and weights.axis == axis
    if block is None or along_depth or _has_many_rows(context, a) or _is_quantized(context, a):
        return None
    assert isinstance(depth, int)
    shape[axis] = depth // block
    scale, zero = (
        None if part is None else _repeated(context, part, axis, shape)
        for part in (weights.scale, weights.zero)
    )
    assert scale is not None
    return replace(weights, scale=scale, zero=zero, axis=axis, block=block)


def block_of_column(depth: Dim) -> int | None:
    """The length of the blocks in which columns of a depth are read; None where none divides it."""
    return next((size for size in _BLOCKS if isinstance(depth, int) and depth % size == 0), None)


def _repeated(context: OpContext, part: int, axis: int, shape: list[Dim]) -> int:
    own = context.shape_of(part)
    if own not in ((), (1,)):
        part = reshape(context, part, (1, *own) if axis == 0 else (*own, 1))
    return broadcast_to(context, part, shape)


def _has_many_rows(context: OpContext, a: int) -> bool:
    rows = dim_product(context.shape_of(a)[:-1])
    return isinstance(rows, int) and rows > _ROWS_MAX


def _is_quantized(context: OpContext, a: int) -> bool:
    """Whether passes may find integers in ``a``, behind what only moves them."""
    makers = {result: node for node in context.translation.builder.nodes for result in node.results}
    while a not in context.translation.dequantized:
        maker = makers.get(a)
        if maker is None or not maker.operands:
            return False
        traits = OPS_BY_NAME[maker.op].traits
        if maker.op not in ("max_pool", "resize") and not traits & _MOVES:
            return False
        a = maker.operands[0]
    return True
