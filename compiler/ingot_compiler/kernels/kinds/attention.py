"""Fused attention: scores, softmax and the weighted sum of one head never leave the cache.

In: a group anchored by ``attention``. Out: its loop program. Not done here: finding the pattern
(``passes``).
"""

from ingot_compiler.ir.dims import (
    Dim,
    dim_add,
    dim_floordiv,
    dim_max,
    dim_min,
    dim_mod,
    dim_mul,
    symbol,
)
from ingot_compiler.kernels.anchored_group import ACCUMULATOR, AnchoredGroup
from ingot_compiler.kernels.attention_in_place import (
    attention_mask,
    lower_in_place,
    may_read_in_place,
)
from ingot_compiler.kernels.attention_layout import (
    attention_query_block,
    attention_scratch_bytes,
)
from ingot_compiler.kernels.attention_values import packs_values
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.group_steps import LoweredGroup, choose, one_launch
from ingot_compiler.lowering.groups.space import Run, Space, ceil_div
from ingot_compiler.lowering.groups.views import Shape
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout
from ingot_compiler.lowering.kinds.program import finish_program
from ingot_compiler.lowering.loops.loop_values import Local
from ingot_compiler.lowering.loops.program import Attention, LoopProgram

_TEAM_KEYS_MAX = 2048  # whose scores have room in the memory that units share


def lower_attention(group: Group, target: KernelTarget) -> LoweredGroup:
    """One query of a sequence reads keys and values in place; several repack them. Where only a call
    tells how many there are, it chooses. Units that come in teams are many and share a cache, so
    each has one query, and repacks nothing."""
    anchored = AnchoredGroup(group)
    queries, keys = anchored.result.shape[2], anchored.operand(1).type.shape[2]
    is_small = isinstance(keys, int) and keys <= _TEAM_KEYS_MAX
    if target.team_units > 1 and is_small and may_read_in_place(anchored, target):
        return one_launch(_blocks_of_queries(group, target, 1, in_place=True))
    block = attention_query_block(queries, target)
    repacking = one_launch(_blocks_of_queries(group, target, block, in_place=False))
    if (queries not in (0, 1) and isinstance(queries, int)) or not may_read_in_place(
        anchored, target
    ):
        return repacking
    in_place = one_launch(lower_in_place(anchored, target))
    return in_place if queries == 1 else choose(_is_one(queries), in_place, repacking)


def _is_one(dim: Dim) -> Dim:
    """1 where a size is 1, else 0."""
    more = dim_min(dim_max(dim_add(dim, -1), 0), 1)
    return dim_mul(dim_min(dim, 1), dim_add(1, dim_mul(more, -1)))


def _blocks_of_queries(
    group: Group, target: KernelTarget, block: int, *, in_place: bool
) -> LoopProgram:
    """Units are (batch and head, block of queries)."""
    anchored = AnchoredGroup(group)
    node, shape = anchored.node, anchored.result.shape
    q, k, v = (anchored.operand(position) for position in range(3))
    batch, heads, queries, _ = shape
    keys, depth, width = k.type.shape[2], q.type.shape[3], v.type.shape[3]
    assert isinstance(depth, int)
    assert isinstance(width, int)
    blocks = ceil_div(queries, block)
    head = dim_floordiv(symbol("p"), blocks)
    start = dim_mul(dim_mod(symbol("p"), blocks), block)
    scores = Space((batch, heads, queries, keys), _runs(head, "key"))
    epilogue = anchored.store(
        Local(ACCUMULATOR, "f32"), anchored.elements(), Space(shape, _runs(head, "value"))
    )
    statement = Attention(
        "query", queries, start, block, "key", keys, "depth", depth, "value", width, head,
        anchored.number(0), _index(q, head, shape, "query", "depth"),
        anchored.number(1), _index(k, head, shape, "key", "depth"),
        anchored.number(2), _index(v, head, shape, "key", "value"),
        node.real("scale"), attention_mask(anchored, scores), node.flag("causal"), 0,
        node.flag("nan_to_zero"), in_place, ACCUMULATOR, epilogue,
    )  # fmt: skip
    scratch = attention_scratch_bytes(
        keys, depth, width, block, target,
        in_place=in_place, packs_values=packs_values(statement, target),
    )  # fmt: skip
    extent = dim_mul(dim_mul(batch, heads), blocks)
    return finish_program(anchored.buffers, (statement,), extent, 1, scratch)


def _runs(head: Dim, column: str) -> tuple[Run, ...]:
    return Run((0, 1), head), Run((2,), symbol("query")), Run((3,), symbol(column))


def _index(operand: Operand, head: Dim, shape: Shape, row: str, column: str) -> Dim:
    """Offset of (row, column) in the head's matrix."""
    view = operand.view
    return (
        view.offset
        + _head_offset(operand, head, shape)
        + dim_mul(symbol(row), view.strides[2])
        + dim_mul(symbol(column), view.strides[3])
    )


def _head_offset(operand: Operand, head: Dim, shape: Shape) -> Dim:
    """Distance of a head's matrix from the first; fewer key heads than query heads are shared in
    order."""
    batch, heads = shape[:2]
    own = operand.type.shape[1]
    view = operand.view
    if own == heads:
        return Space(operand.type.shape, (Run((0, 1), head),)).offset(view) - view.offset
    shared = dim_floordiv(heads, own)
    batch_index = dim_floordiv(head, heads) if batch != 1 else 0
    head_index = dim_floordiv(dim_mod(head, heads) if batch != 1 else head, shared)
    return dim_mul(batch_index, view.strides[0]) + dim_mul(head_index, view.strides[1])


ATTENTION = Kind("attention", lower_attention, ResultLayout.HEADS_INSIDE)
