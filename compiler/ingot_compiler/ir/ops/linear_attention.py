"""``linear_attention(q, k, v, decay, beta, state){corrects, scale}``: attention by a matrix for
each head that every token changes (LinearAttention of ONNX Runtime; gated delta networks,
retention).

In: f32 q [B, T, Hq, K], k [B, T, Hk, K], v [B, T, H, V], decay [B, T, H, K or 1], beta [B, T, H],
state [B, H, K, V], where Hk divides H and one of Hq and H the other. Head h of the state belongs to
heads h * Hk // H of k and h * Hq // H of q, or to Hq / H heads of q. Each token scales the state's
rows by its decay, then adds k times a change: v, or ``beta * (v - k . state)`` if it ``corrects``;
then the result is ``scale * q . state``. Out: f32 [B, T, max(Hq, H), V], and the last state. Not
done here: exponentials of decays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_bool,
    attribute_float,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.make_shape_constraints import equal, sizes_of
from ingot_compiler.ir.rules.typing_rules import require_dtype, require_operands, require_rank
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import DType, TensorType

_F32: frozenset[DType] = frozenset(("f32",))
_RANKS = (4, 4, 4, 4, 3, 4)


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "corrects", "scale")
    attribute_bool(attributes, "corrects")
    attribute_float(attributes, "scale")
    require_operands(types, len(_RANKS))
    for tensor, rank in zip(types, _RANKS, strict=True):
        require_dtype(tensor, _F32)
        require_rank(tensor, rank)
    q, k, v, decay, beta, state = (sizes_of(types, number) for number in range(len(_RANKS)))
    queries, heads = _head_counts(types)
    same = [
        equal("batches", *(sizes[0] for sizes in (q, k, v, decay, beta, state))),
        equal("lengths", *(sizes[1] for sizes in (q, k, v, decay, beta))),
        equal("heads", *(sizes[2] for sizes in (v, decay, beta)), state[1]),
        equal("depths of keys", q[3], k[3], state[2]),
        equal("depths of values", v[3], state[3]),
    ]
    if types[3].shape[3] != 1:
        same.append(equal("depths of decays", decay[3], k[3]))
    shape = (*types[2].shape[:2], max(queries, heads), types[2].shape[3])
    return Inferred((TensorType("f32", shape), types[5]), tuple(same))


def _head_counts(types: Sequence[TensorType]) -> tuple[int, int]:
    """How many heads the queries and the states have."""
    counts = [tensor.shape[2] for tensor in types[:3]]
    queries, keys, heads = (count if isinstance(count, int) else 0 for count in counts)
    are_known = min(queries, keys, heads) > 0
    divide = are_known and heads % keys == 0 and 0 in (heads % queries, queries % heads)
    require(divide, "numbers of heads that divide each other", types[0])
    return queries, heads


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    wide = [operand.astype(np.float64) for operand in operands]
    v, beta, last = wide[2], wide[4], wide[5].copy()
    heads, scale = v.shape[2], attribute_float(attributes, "scale")
    k = np.repeat(wide[1], heads // wide[1].shape[2], 2)
    q = np.repeat(wide[0], max(1, heads // wide[0].shape[2]), 2)
    queries = q.shape[2] // heads
    result = np.zeros((*v.shape[:2], q.shape[2], v.shape[3]))
    for token in range(v.shape[1]):
        last *= wide[3][:, token, :, :, None]
        change = v[:, token]
        if attribute_bool(attributes, "corrects"):
            found = np.einsum("bhk,bhkv->bhv", k[:, token], last)
            change = beta[:, token, :, None] * (change - found)
        last += k[:, token, :, :, None] * change[:, :, None, :]
        sums = np.einsum("bhk,bhkv->bhv", q[:, token], np.repeat(last, queries, 1))
        result[:, token] = scale * sums
    return result.astype(np.float32), last.astype(np.float32)


OPS = (CoreOp("linear_attention", _infer, _reference, traits=Trait.DENSE),)
