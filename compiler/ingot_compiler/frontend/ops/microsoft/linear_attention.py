"""ONNX Runtime's LinearAttention, and its gate.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import broadcast_to, cast, reshape
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_of
from ingot_compiler.frontend.families.attention.state_matrices import Heads, linear_attention
from ingot_compiler.frontend.model.imported import ABSENT
from ingot_compiler.ir.dims import dim_floordiv, dim_mul
from ingot_compiler.ir.op_type_error import OpTypeError


def _linear_attention(context: OpContext) -> Sequence[int]:
    """A matrix for each head that every token changes.

    In: queries, keys and values [B, T, heads * depth], perhaps a state [B, H, K, V], logarithms of
    decays [B, T, H] or [B, T, H * K], changes [B, T, H] or [B, T, 1]. Out: core
    ``linear_attention``.
    """
    if context.int_attribute("state_window", 0):
        raise Unsupported("a window of states")
    queries, count = (context.int_attribute(name, 0) for name in ("q_num_heads", "kv_num_heads"))
    if queries < 1 or count < 1:
        raise OpTypeError("q_num_heads and kv_num_heads of at least 1", f"{queries} and {count}")
    q, k, v = map(context.operand, range(3))
    batch, length, width = sizes_of(context, q, 3)
    depth = dim_floordiv(width, queries)
    if not isinstance(depth, int) or depth < 1:
        raise OpTypeError("a number of elements of each head", context.type_of(q))
    keys = dim_floordiv(sizes_of(context, k, 3)[2], depth)

    def apart(x: int, heads: int, each: int) -> int:
        if context.shape_of(x)[2] != heads * each:
            raise OpTypeError(f"{heads} heads of {each}", context.type_of(x))
        return reshape(context, x, (batch, length, heads, each))

    columns = dim_floordiv(sizes_of(context, v, 3)[2], count)
    if not isinstance(keys, int) or not isinstance(columns, int):
        raise OpTypeError("a number of heads", context.type_of(k))
    decay, beta = context.optional(4), context.optional(5)
    if decay is not None and context.shape_of(decay)[-1] == dim_mul(count, depth) and depth > 1:
        decay = reshape(context, decay, (batch, length, count, depth))
    if beta is not None:
        beta = broadcast_to(context, beta, (batch, length, count))
    heads = Heads(
        apart(q, queries, depth), apart(k, keys, depth), apart(v, count, columns),
        decay, beta, context.optional(3),
    )  # fmt: skip
    result, last = linear_attention(context, heads)
    flat = reshape(context, result, (batch, length, max(queries, count) * columns))
    past = context.optional(3)
    of_state = context.dtype_of(q if past is None else past)
    return cast(context, flat, context.dtype_of(q)), cast(context, last, of_state)


def _linear_attention_gate(context: OpContext) -> Sequence[int]:
    """How far the states of LinearAttention decay and change.

    In: a [B, T, H], a bias [H] and a factor [H], perhaps b [B, T, H]. Out: ``factor * softplus(a +
    bias)`` and the sigmoid of b, computed in f32.
    """
    a, bias, factor = (cast(context, context.operand(position), "f32") for position in range(3))
    dtype, b = context.dtype_of(context.operand(0)), context.optional(3)
    grown = context.add("softplus", context.add("add", a, bias))
    decay = cast(context, context.add("mul", factor, grown), dtype)
    if b is None:
        return decay, ABSENT
    return decay, cast(context, context.add("sigmoid", cast(context, b, "f32")), dtype)


OPS = (
    OnnxOp(
        "LinearAttention",
        _linear_attention,
        signature="query key value past_state? decay? beta? -> output present_state; "
        "q_num_heads!:int kv_num_heads!:int update_rule:string scale:float chunk_size:int "
        "state_window:int",
    ),
    OnnxOp(
        "LinearAttentionGate",
        _linear_attention_gate,
        signature="a dt_bias decay_scale b? -> decay beta?",
    ),
)
