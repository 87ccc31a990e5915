"""``attention(q, k, v[, mask]){scale, causal, nan_to_zero}``: softmax(q k^T * scale + mask) v per head (ONNX
Attention-24).

In: q[B, H, S, D], k[B, G, T, D], v[B, G, T, E] floats of one type, G divides H (query head h reads key head h //
(H/G)); mask broadcasts to [B, H, S, T]: added when float, kept where true when bool. ``causal`` keeps key t <= query s.
``nan_to_zero``: a fully masked row gives 0 instead of NaN. Out: [B, H, S, E]. Not done here: cache, dropout.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_bool, attribute_float, require_attributes
from ingot_compiler.ir.op import Array, CoreOp
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.reference_rules import narrow, real, widen
from ingot_compiler.ir.types import FLOATS, TensorType
from ingot_compiler.ir.typing_rules import (
    require_broadcasts_to,
    require_dtype,
    require_operands,
    require_rank,
    require_same_dtype,
    unify,
)


def _infer(types: Sequence[TensorType], attributes: Attributes) -> tuple[TensorType, ...]:
    require_attributes(attributes, "causal", "nan_to_zero", "scale")
    require_operands(types, 3, 4)
    require_same_dtype(types[:3])
    q, k, v = types[:3]
    require_dtype(q, FLOATS)
    for tensor in (q, k, v):
        require_rank(tensor, 4)
    attribute_float(attributes, "scale")
    attribute_bool(attributes, "causal")
    attribute_bool(attributes, "nan_to_zero")
    batch = unify(q.shape[0], unify(k.shape[0], v.shape[0], "batch sizes"), "batch sizes")
    unify(q.shape[3], k.shape[3], "sizes of q and k heads")
    heads, groups = q.shape[1], unify(k.shape[1], v.shape[1], "k and v heads")
    fits = not (isinstance(heads, int) and isinstance(groups, int)) or (groups > 0 and heads % groups == 0)
    require(fits, f"k heads that divide {heads} q heads", groups)
    keys = unify(k.shape[2], v.shape[2], "k and v lengths")
    for mask in types[3:]:
        require(mask.dtype in ("bool", q.dtype), f"a mask of bool or {q.dtype}", mask)
        require_broadcasts_to(mask.shape, (batch, heads, q.shape[2], keys))
    return (TensorType(q.dtype, (batch, heads, q.shape[2], v.shape[3])),)


def _bias(shape: tuple[int, ...], masks: Sequence[Array], causal: bool) -> Array:
    """What is added to the scores, the causal rule included; it broadcasts to [B, H, S, T]."""
    bias: Array = np.zeros(shape[-2:])
    for mask in masks:
        bias = bias + (np.where(mask, 0.0, -np.inf) if mask.dtype == np.bool_ else widen(mask))
    if causal:
        bias = bias + np.where(np.tri(shape[-2], shape[-1], dtype=np.bool_), 0.0, -np.inf)
    return bias


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    q, k, v = map(widen, operands[:3])
    repeats = q.shape[1] // max(1, k.shape[1])
    shape = (*q.shape[:3], k.shape[2])
    bias = np.broadcast_to(_bias(shape, operands[3:], bool(attributes["causal"])), shape)
    result = np.zeros((*q.shape[:3], v.shape[3]))
    with np.errstate(all="ignore"):
        for batch in range(q.shape[0]):
            keys, values = (np.repeat(tensor[batch], repeats, 0) for tensor in (k, v))
            scores = np.matmul(q[batch], keys.transpose(0, 2, 1)) * real(attributes["scale"]) + bias[batch]
            weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
            weights = weights / weights.sum(-1, keepdims=True)
            if attributes["nan_to_zero"]:
                weights[np.all(bias[batch] == -np.inf, -1)] = 0.0
            result[batch] = np.matmul(weights, values)
        return (narrow(result, operands[0]),)


OP = CoreOp("attention", _infer, _reference)
