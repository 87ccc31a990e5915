"""What a block of a loop program binds, states and reads: contractions, depthwise convolutions,
attention, transposes.

In: a block, what it sees. Out: ``BlockParts``. Not done here: whether that is right
(``verify_loops``).
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_mul, symbol
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops.loop_parts import SplitFactors
from ingot_compiler.lowering.loops.loop_scope import LoopScope
from ingot_compiler.lowering.loops.loop_values import Value
from ingot_compiler.lowering.loops.program import (
    Attention,
    Block,
    BlockedProduct,
    Contraction,
    Depthwise,
    DepthwisePlane,
    Transpose,
    Winograd,
)
from ingot_runtime.lazy_dataclass import dataclass

PANEL_COLUMNS = 16  # of a blocked product, and of a convolution by Winograd's algorithm


@dataclass(frozen=True, slots=True)
class BlockParts:
    """``limits``: numbers that are at least 1, by name; ``reads``: elements of buffers, each seen
    in a scope; ``made``: the values that the epilogue finds beside what ``inside`` sees; ``masks``:
    values that are computed as well."""

    limits: tuple[tuple[str, int], ...]
    reads: tuple[tuple[LoopScope, int, Dim], ...]
    inside: LoopScope
    made: tuple[tuple[str, DType], ...]
    masks: tuple[tuple[LoopScope, Value], ...] = ()


def lies_along_depth(statement: Contraction) -> bool:
    """Whether columns of B are no neighbours, but the elements of one are, and no block is
    turned."""
    index, is_plain = statement.b_index, statement.b_panels is None and not statement.turned
    are_apart = is_plain and coefficient(index, statement.column) != 1
    return are_apart and coefficient(index, statement.depth) == 1


def is_turned_whole(statement: Contraction) -> bool:
    """Whether a unit turns its columns of B once, for several tiles of rows, into scratch of
    ``turned_elements``; scratch is made before a size is known that the model computes."""
    rows, height = statement.rows, statement.tile.rows
    is_known = isinstance(statement.depth_extent, int)
    return statement.turned and is_known and not (isinstance(rows, int) and rows <= height)


def turned_elements(statement: Contraction, lanes: int) -> Dim:
    """Elements of whole blocks of the depth by the columns of a unit."""
    blocks = dim_floordiv(dim_add(statement.depth_extent, lanes - 1), lanes)
    return dim_mul(blocks, lanes * statement.tile.vectors * lanes)


def block_parts(scope: LoopScope, block: Block) -> BlockParts:
    """The parts of a block that stands in ``scope``."""
    match block:
        case Contraction():
            return _contraction(scope, block)
        case BlockedProduct():
            return _blocked_product(scope, block)
        case Depthwise():
            return _depthwise(scope, block)
        case DepthwisePlane():
            return _depthwise_plane(scope, block)
        case Winograd():
            return _winograd(scope, block)
        case Attention():
            return _attention(scope, block)
        case Transpose():
            return _transpose(scope, block)


def _contraction(scope: LoopScope, s: Contraction) -> BlockParts:
    inside = scope.blocked(s.row, s.rows, s.row_start, s.row_block)
    inside = inside.blocked(s.column, s.columns, s.column_start, s.tile.vectors)
    reading = inside.over((*s.taps, (s.depth, s.depth_extent)))
    units = [("team", s.team.units)] if s.team else []
    if s.strassen is not None:
        units += [("strassen", s.strassen.vectors), ("block", s.strassen.depth)]
    return BlockParts(
        (("row_block", s.row_block), ("tile", min(s.tile.rows, s.tile.vectors)), *units),
        (
            *((reading, buffer, s.a_index) for buffer in (s.a, *(s.split.a if s.split else ()))),
            *((reading, buffer, s.b_index) for buffer in (s.b, *(s.split.b if s.split else ()))),
            *(_unsplit(reading, s.split) if s.split else ()),
            *((inside, each.buffer, each.index) for each in (s.carried,) if each),
            *_addends(inside, s),
        ),
        inside,
        ((s.accumulator, s.dtype),),
    )


def _addends(inside: LoopScope, s: Contraction) -> Iterator[tuple[LoopScope, int, Dim]]:
    """What is added to the columns of B."""
    if s.b_panels is not None and s.b_panels.addends is not None:
        yield inside, s.b_panels.addends, symbol(s.column)


def _unsplit(reading: LoopScope, split: SplitFactors) -> Iterator[tuple[LoopScope, int, Dim]]:
    """What a contraction of parts reads beside them."""
    yield reading, split.plain, split.plain_index
    yield reading, split.fits, 0


def _blocked_product(scope: LoopScope, s: BlockedProduct) -> BlockParts:
    inside = scope.blocked(s.row, s.rows, s.row_start, s.row_block)
    inside = inside.blocked(s.column, s.columns, s.column_start, PANEL_COLUMNS)
    parameters = [s.scales] if s.zeros is None else [s.scales, s.zeros]
    if s.digits is not None:
        parameters += [s.digits.digits, s.digits.steps, s.digits.sums]
    return BlockParts(
        (("row_block", s.row_block), ("blocks", s.blocks), ("block", s.block), ("bits", s.bits)),
        ((inside, s.a, s.a_index), *((inside, buffer, 0) for buffer in (s.b, *parameters))),
        inside,
        ((s.accumulator, "f32"),),
    )


def _depthwise(scope: LoopScope, s: Depthwise) -> BlockParts:
    inside = scope.over(((s.x, s.x_extent), (s.channel, s.channels)))
    reading = inside.over(s.taps)
    return BlockParts(
        (("pixels", s.pixels),),
        ((reading, s.a, s.a_index), (reading, s.w, s.w_index)),
        inside,
        ((s.accumulator, s.dtype),),
    )


def _depthwise_plane(scope: LoopScope, s: DepthwisePlane) -> BlockParts:
    image = scope.over(((s.row, s.image[0]), (s.column, s.image[1])))
    return BlockParts(
        (("rows_together", s.rows_together), ("strides", min(s.strides))),
        ((image, s.a, s.a_index), (scope.over(s.taps), s.w, s.w_index)),
        scope.over(((s.y, s.extents[0]), (s.x, s.extents[1]))),
        ((s.accumulator, s.dtype),),
    )


def _winograd(scope: LoopScope, s: Winograd) -> BlockParts:
    columns = scope.blocked(s.column, s.columns, s.column_start, s.registers.vectors)
    image = columns.looped(s.image, s.images)
    results = image.over(((s.y, s.extents[0]), (s.x, s.extents[1])))
    pixels = [dim_add(size, taps - 1) for size, taps in zip(s.extents, s.kernel, strict=True)]
    reading = image.over(((s.y, pixels[0]), (s.x, pixels[1]), (s.channel, s.channels)))
    return BlockParts(
        (
            ("tile", min(s.tile)),
            ("kernel", min(s.kernel)),
            ("tile_block", s.tile_block),
            ("channels", s.channels),
            ("registers", min(s.registers.rows, s.registers.vectors)),
        ),
        ((reading, s.a, s.a_index), (columns, s.transformed, 0), (columns, s.w, 0)),
        results,
        ((s.accumulator, "f32"),),
    )


def _attention(scope: LoopScope, s: Attention) -> BlockParts:
    queries = scope.blocked(s.query, s.queries, s.query_start, s.query_block)
    keys = queries.looped(s.key, s.keys)
    reads = (
        (queries.looped(s.depth, s.depth_extent), s.q, s.q_index),
        (keys.looped(s.depth, s.depth_extent), s.k, s.k_index),
        (keys.looped(s.value, s.value_extent), s.v, s.v_index),
    )
    return BlockParts(
        (("query_block", s.query_block),),
        reads,
        queries.looped(s.value, s.value_extent),
        ((s.accumulator, "f32"),),
        () if s.mask is None else ((keys, s.mask),),
    )


def _transpose(scope: LoopScope, s: Transpose) -> BlockParts:
    inside = scope.blocked(s.row, s.rows, s.row_start, s.row_block)
    inside = inside.blocked(s.column, s.columns, s.column_start, s.column_block)
    buffers = scope.buffers
    return BlockParts(
        (("row_block", s.row_block), ("column_block", s.column_block)),
        tuple((inside, buffer, index) for _, buffer, index in s.values),
        inside,
        tuple((name, buffers[at].dtype) for name, at, _ in s.values if at < len(buffers)),
    )
