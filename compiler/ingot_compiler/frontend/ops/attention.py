"""ONNX Attention (opset 23): the core op where it is plain, else ONNX's own function body.

In: Q, K, V in three or four dimensions, perhaps a mask. Out: core ``attention`` for 4-D, else the
translated body. Not done here: attention that exporters write as several nodes (``passes``).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from ingot_compiler.frontend.compose import reshape, transpose
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.ir.dims import dim_mul
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    q, k, v = (context.operand(position) for position in range(3))
    if context.rank_of(q) != 3:
        return (_attention(context, q, k, v),)
    heads, groups = (context.int_attribute(f"{name}_num_heads", 0) for name in ("q", "kv"))
    q, k, v = _heads(context, q, heads), _heads(context, k, groups), _heads(context, v, groups)
    result = _attention(context, q, k, v)
    batch, heads_size, rows, depth = context.shape_of(result)
    merged = transpose(context, result, (0, 2, 1, 3))
    return (reshape(context, merged, (batch, rows, dim_mul(heads_size, depth))),)


def _attention(context: OpContext, q: int, k: int, v: int) -> int:
    """[B, heads, S, D]: a row that the mask leaves nothing of gives 0."""
    size = context.shape_of(q)[3]
    assert isinstance(size, int)
    scale = context.float_attribute("scale", 1 / sqrt(size) if size else 1.0)
    mask = context.optional(3)
    operands = (q, k, v) if mask is None else (q, k, v, mask)
    causal = context.bool_attribute("is_causal")
    return context.add("attention", *operands, scale=scale, causal=causal, nan_to_zero=True)


def _heads(context: OpContext, x: int, heads: int) -> int:
    """[B, S, heads * D] as [B, heads, S, D]."""
    batch, rows, size = context.shape_of(x)
    if heads < 1 or not isinstance(size, int) or size % heads:
        raise OpTypeError(f"a last dimension that {heads} heads divide", context.type_of(x))
    return transpose(
        context, reshape(context, x, (batch, rows, heads, size // heads)), (0, 2, 1, 3)
    )


_PLAIN_ATTRIBUTES = frozenset(
    ("scale", "is_causal", "q_num_heads", "kv_num_heads", "softcap", "qk_matmul_output_mode")
)


def _is_plain(context: OpContext) -> bool:
    """No cache, window, cap, further results; sizes of heads known; causal only without a mask
    (ONNX aligns them its own way)."""
    values, mask = [context.operand(position) for position in range(3)], context.optional(3)
    dtype, rank = context.dtype_of(values[0]), context.rank_of(values[0])
    causal = context.bool_attribute("is_causal")
    return (
        all(context.optional(position) is None for position in (4, 5, 6))
        and not any(context.wants(position) for position in (1, 2, 3))
        and not context.attributes.get("softcap")
        and set(context.attributes) <= _PLAIN_ATTRIBUTES
        and {context.dtype_of(value) for value in values} == {dtype}
        and dtype != "f64"  # the kernel computes in f32
        and {context.rank_of(value) for value in values} == {rank}
        and rank in (3, 4)
        and all(isinstance(context.shape_of(value)[-1], int) for value in values)
        and (mask is None or (not causal and context.dtype_of(mask) in ("bool", dtype)))
    )


OP = OnnxOp("Attention", _translate, applies=_is_plain)
