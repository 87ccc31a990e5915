"""Fused attention: scores, softmax and the weighted sum of one head never leave the cache.

In: a group anchored by ``attention``. Out: its loop program. Not done here: finding the pattern
(``passes``).
"""

from ingot_compiler.backends.host.attention_layout import (
    attention_query_block,
    attention_scratch_bytes,
)
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mod, dim_mul, symbol
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.fused import Group, Operand
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program
from ingot_compiler.lowering.loops import (
    Apply,
    Attention,
    Constant,
    Local,
    LoopProgram,
    Statement,
    Store,
    Value,
)
from ingot_compiler.lowering.space import Run, Space, ceil_div

MASK = 3  # operand of attention


def lower_attention(group: Group, target: KernelTarget) -> LoopProgram:
    """Units are (batch and head, block of queries)."""
    anchor = group.nodes[group.anchor]
    types = dict(group.types)
    operands = {operand.value: operand for operand in group.operands}
    q, k, v = (operands[anchor.operands[position]] for position in range(3))
    batch, heads, queries, _ = types[anchor.results[0]].shape
    keys, depth, width = k.type.shape[2], q.type.shape[3], v.type.shape[3]
    assert isinstance(depth, int)
    assert isinstance(width, int)
    block = attention_query_block(queries if isinstance(queries, int) else None, target)
    blocks = ceil_div(queries, block)
    unit = symbol("p")
    head = dim_floordiv(unit, blocks)
    start = dim_mul(dim_mod(unit, blocks), block)
    buffers = GroupBuffers(group)
    shape = types[anchor.results[0]].shape
    space = Space(
        shape, (Run((0, 1), head), Run((2,), symbol("query")), Run((3,), symbol("value")))
    )
    scale, causal, nan_to_zero = (
        anchor.real("scale"),
        anchor.flag("causal"),
        anchor.flag("nan_to_zero"),
    )
    statement = Attention(
        "query", queries, start, block, "key", keys, "depth", depth, "value", width, head,
        buffers.number(q), _index(q, head, shape, "query", "depth"),
        buffers.number(k), _index(k, head, shape, "key", "depth"),
        buffers.number(v), _index(v, head, shape, "key", "value"),
        scale, _mask(group, buffers, head, (batch, heads, queries, keys)), bool(causal), 0, bool(nan_to_zero),
        "acc", _store(group, buffers, space),
    )  # fmt: skip
    scratch = attention_scratch_bytes(keys, depth, width, block, target)
    return finish_program(buffers, (statement,), dim_mul(dim_mul(batch, heads), blocks), 1, scratch)


def _index(operand: Operand, head: Dim, shape: tuple[Dim, ...], row: str, column: str) -> Dim:
    """Offset of (row, column) in the head's matrix; fewer key heads than query heads are shared in
    order."""
    batch, heads = shape[0], shape[1]
    own = operand.type.shape[1]
    shared = dim_floordiv(heads, own)
    batch_index = dim_floordiv(head, heads) if batch != 1 else 0
    head_index = dim_floordiv(dim_mod(head, heads) if batch != 1 else head, shared)
    strides = operand.view.strides
    outer = dim_mul(batch_index, strides[0]) + dim_mul(head_index, strides[1])
    if own == heads:
        outer = (
            Space(operand.type.shape, (Run((0, 1), head),)).offset(operand.view)
            - operand.view.offset
        )
    return (
        operand.view.offset
        + outer
        + dim_mul(symbol(row), strides[2])
        + dim_mul(symbol(column), strides[3])
    )


def _mask(group: Group, buffers: GroupBuffers, head: Dim, shape: tuple[Dim, ...]) -> Value | None:
    anchor = group.nodes[group.anchor]
    if len(anchor.operands) <= MASK:
        return None
    mask = next(operand for operand in group.operands if operand.value == anchor.operands[MASK])
    scores = Space(shape, (Run((0, 1), head), Run((2,), symbol("query")), Run((3,), symbol("key"))))
    value: Value = Elements(group, buffers).load(mask, scores)
    if mask.type.dtype == "bool":
        value = Apply(
            "select", (value, Constant(0.0, "f32"), Constant(float("-inf"), "f32")), "f32"
        )
    return value


def _store(group: Group, buffers: GroupBuffers, space: Space) -> tuple[Statement, ...]:
    result = group.results[0]
    anchor = group.nodes[group.anchor]
    elements = Elements(group, buffers, {anchor.results[0]: Local("acc", "f32")})
    value = elements.value(result.value, space)
    return (
        *elements.take(),
        Store(buffers.number(result), space.offset_of(result.view, result.type.shape), value),
    )


ATTENTION = Kind("attention", one_kernel(lower_attention), ResultLayout.HEADS_INSIDE)
