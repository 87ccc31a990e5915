"""Fused attention for one query of each sequence: keys and values are read where they lie.

In: a group anchored by ``attention``. Out: its loop program, whether it can be one. Not done here:
several queries, for which repacking pays (``attention``).

The rows of a unit are the query heads that share a head of keys: it is read from memory once.
"""

from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_mod, dim_mul, symbol
from ingot_compiler.kernels.anchored_group import ACCUMULATOR, AnchoredGroup
from ingot_compiler.kernels.attention_layout import attention_scratch_bytes
from ingot_compiler.lowering.groups.fused import Operand
from ingot_compiler.lowering.groups.space import Run, Space
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.program import finish_program
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Local, Value
from ingot_compiler.lowering.loops.program import Attention, LoopProgram

_MASK = 3  # operand of attention


def may_read_in_place(anchored: AnchoredGroup, target: KernelTarget) -> bool:
    """Whether whole vectors of a head lie together, and the number of heads is known."""
    q, k, v = (anchored.operand(position) for position in range(3))
    heads, shared = q.type.shape[1], k.type.shape[1]
    known = isinstance(heads, int) and isinstance(shared, int) and heads > 0 and shared > 0
    whole = all(
        isinstance(size, int) and size > 0 and size % target.f32_lanes == 0
        for size in (q.type.shape[3], v.type.shape[3])
    )
    together = all(item.view.strides[3] == 1 and item.type.dtype == "f32" for item in (q, k, v))
    return known and whole and together


def lower_in_place(anchored: AnchoredGroup, target: KernelTarget) -> LoopProgram:
    """Units are (batch, head of keys); for calls of one query."""
    node, shape = anchored.node, anchored.result.shape
    q, k, v = (anchored.operand(position) for position in range(3))
    batch, heads, queries, _ = shape
    own, keys, depth, width = k.type.shape[1], k.type.shape[2], q.type.shape[3], v.type.shape[3]
    assert isinstance(heads, int)
    assert isinstance(own, int)
    assert isinstance(depth, int)
    assert isinstance(width, int)
    rows = heads // own
    entry, group = dim_floordiv(symbol("p"), own), dim_mod(symbol("p"), own)
    head = dim_add(dim_mul(group, rows), symbol("query"))
    places = Run((0,), entry), Run((1,), head), Run((2,), 0)
    scores = Space((batch, heads, queries, keys), (*places, Run((3,), symbol("key"))))
    epilogue = anchored.store(
        Local(ACCUMULATOR, "f32"),
        anchored.elements(),
        Space(shape, (*places, Run((3,), symbol("value")))),
    )
    statement = Attention(
        "query", rows, 0, rows, "key", keys, "depth", depth, "value", width, symbol("p"),
        anchored.number(0), _index(q, entry, head, 0, "depth"),
        anchored.number(1), _index(k, entry, group, symbol("key"), "depth"),
        anchored.number(2), _index(v, entry, group, symbol("key"), "value"),
        node.real("scale"), attention_mask(anchored, scores), node.flag("causal"), 0,
        node.flag("nan_to_zero"), True, ACCUMULATOR, epilogue,
    )  # fmt: skip
    scratch = attention_scratch_bytes(
        keys, depth, width, rows, target, in_place=True, packs_values=False
    )
    return finish_program(anchored.buffers, (statement,), dim_mul(batch, own), 1, scratch)


def _index(operand: Operand, entry: Dim, head: Dim, row: Dim, column: str) -> Dim:
    strides, offset = operand.view.strides, operand.view.offset
    places = (entry, head, row, symbol(column))
    for place, stride in zip(places, strides, strict=True):
        offset = dim_add(offset, dim_mul(place, stride))
    return offset


def attention_mask(anchored: AnchoredGroup, scores: Space) -> Value | None:
    """What is added to a score: the mask, or -inf where a mask of bool does not hold."""
    if len(anchored.node.operands) <= _MASK:
        return None
    mask = anchored.operand(_MASK)
    value = anchored.elements().load(mask, scores)
    if mask.type.dtype != "bool":
        return value
    kept, left_out = Constant(0.0, "f32"), Constant(float("-inf"), "f32")
    return Apply("select", (value, kept, left_out), "f32")
