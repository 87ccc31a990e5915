"""``attention(q, k, v[, mask]){scale, causal, nan_to_zero}``: softmax(q k^T * scale + mask) v per
head (ONNX Attention-24).

In: q[B, H, S, D], k[B, G, T, D], v[B, G, T, E] floats of one type, G divides H (query head h reads
key head h // (H/G)); mask broadcasts to [B, H, S, T]: added when float, kept where true when bool.
``causal`` keeps key t <= query s. ``nan_to_zero``: a fully masked row gives 0 instead of NaN. Out:
[B, H, S, E]. Not done here: cache, dropout.
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
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mul
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.rules.make_shape_constraints import broadcasts_to, equal, sizes_of
from ingot_compiler.ir.rules.reference_rules import narrow, widen
from ingot_compiler.ir.rules.typing_rules import (
    require_dtype,
    require_operands,
    require_rank,
    require_same_dtype,
)
from ingot_compiler.ir.shape_constraints import ShapeConstraint, SizeBound
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "causal", "nan_to_zero", "scale")
    _check_operands(types)
    attribute_float(attributes, "scale")
    attribute_bool(attributes, "causal")
    attribute_bool(attributes, "nan_to_zero")
    q, _, v = types[:3]
    of_q, of_k, of_v = (sizes_of(types, operand) for operand in range(3))
    batch = equal("batch sizes of q, k and v", of_q[0], of_k[0], of_v[0])
    depth = equal("head sizes of q and k", of_q[3], of_k[3])
    groups = equal("numbers of k and v heads", of_k[1], of_v[1])
    keys = equal("lengths of k and v", of_k[2], of_v[2])
    divided = _heads_divide(q.shape[1], groups.common)
    constraints: list[ShapeConstraint] = [batch, depth, groups, keys, *divided]
    scores = (batch.common, q.shape[1], q.shape[2], keys.common)
    for mask in types[3:]:
        require(mask.dtype in ("bool", q.dtype), f"a mask of bool or {q.dtype}", mask)
        constraints.append(broadcasts_to(mask.shape, scores))
    return Inferred((TensorType(q.dtype, (*scores[:3], v.shape[3])),), tuple(constraints))


def _check_operands(types: Sequence[TensorType]) -> None:
    """q, k and v are floats of one type and of rank 4."""
    require_operands(types, 3, 4)
    require_same_dtype(types[:3])
    require_dtype(types[0], FLOATS)
    for tensor in types[:3]:
        require_rank(tensor, 4)


def _heads_divide(heads: Dim, groups: Dim) -> tuple[SizeBound, ...]:
    """Each key head is read by as many query heads; 0 heads of k can only be read by 0 of q."""
    if heads == groups:
        return ()
    fits = not (isinstance(heads, int) and isinstance(groups, int)) or (
        groups > 0 and heads % groups == 0
    )
    if not fits:
        raise OpTypeError(message("k heads that divide ", heads, " q heads"), groups)
    rest = heads - dim_mul(groups, dim_floordiv(heads, groups))
    return (SizeBound(rest, message(groups, " heads of k do not divide ", heads, " of q")),)


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
    bias = np.broadcast_to(_bias(shape, operands[3:], attribute_bool(attributes, "causal")), shape)
    result, scale = np.zeros((*q.shape[:3], v.shape[3])), attribute_float(attributes, "scale")
    with np.errstate(all="ignore"):
        for batch in range(q.shape[0]):
            keys, values = (np.repeat(tensor[batch], repeats, 0) for tensor in (k, v))
            scores = np.matmul(q[batch], keys.transpose(0, 2, 1)) * scale + bias[batch]
            weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
            weights = weights / weights.sum(-1, keepdims=True)
            if attribute_bool(attributes, "nan_to_zero"):
                weights[np.all(bias[batch] == -np.inf, -1)] = 0.0
            result[batch] = np.matmul(weights, values)
        return (narrow(result, operands[0]),)


OPS = (CoreOp("attention", _infer, _reference, traits=Trait.DENSE),)
