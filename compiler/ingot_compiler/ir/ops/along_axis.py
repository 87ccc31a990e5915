"""Core ops along one axis whose results lie along it as well.

In: types, operands, attributes. Out: ``OPS``: for each op its type rule, its reference in numpy and
its traits. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_axis,
    attribute_bool,
    attribute_dim,
    attribute_int,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.make_shape_constraints import not_above
from ingot_compiler.ir.rules.reference_rules import in_f64, narrow, widen
from ingot_compiler.ir.rules.typing_rules import (
    NUMBERS,
    require_dtype,
    require_operands,
    require_sizes,
    unary,
)
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, UNSIGNED, TensorType


def _infer_argsort(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "count")
    require_operands(types, 1)
    (keys,), count = types, attribute_dim(attributes, "count")
    require_dtype(keys, UNSIGNED)
    require(keys.rank >= 1, "keys[.., n]", keys)
    require_sizes((count,), "count")
    fits = not_above(count, keys.shape[-1], "count")
    return Inferred((TensorType("i64", (*keys.shape[:-1], count)),), fits)


def _reference_argsort(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    order = np.argsort(operands[0], axis=-1, kind="stable").astype(np.int64)
    return (order[..., : attribute_int(attributes, "count")],)


ARGSORT = CoreOp("argsort", _infer_argsort, _reference_argsort, traits=Trait.EXACT)
"""``argsort{count}``: where the ``count`` least elements of each row are, least first, equal
ones in their order (what ONNX TopK-24, Unique-11 and NonMaxSuppression-11 are made of).

In: unsigned integers[.., n]; 0 <= count <= n. Out: i64[.., count], positions in the row.
"""


def _infer_cumsum(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "axis", "exclusive", "reverse")
    require_operands(types, 1)
    require_dtype(types[0], NUMBERS)
    attribute_axis(attributes, types[0].rank)
    attribute_bool(attributes, "exclusive")
    attribute_bool(attributes, "reverse")
    return Inferred((types[0],))


def _reference_cumsum(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    rows = np.moveaxis(widen(operands[0]), attribute_int(attributes, "axis"), -1)
    rows = rows[..., ::-1] if attribute_bool(attributes, "reverse") else rows
    if attribute_bool(attributes, "exclusive"):
        rows = np.concatenate((np.zeros_like(rows[..., :1]), rows[..., :-1]), -1)
    sums = np.cumsum(rows, -1, dtype=rows.dtype)
    sums = sums[..., ::-1] if attribute_bool(attributes, "reverse") else sums
    return (narrow(np.moveaxis(sums, -1, attribute_int(attributes, "axis")), operands[0]),)


CUMSUM = CoreOp("cumsum", _infer_cumsum, _reference_cumsum, traits=Trait.EXACT_ON_INTEGERS)
"""``cumsum{axis, exclusive, reverse}``: running sums along an axis (ONNX CumSum-14).

In: a tensor of numbers. Out: same type; element i is the sum of x[0..i], without x[i] when
exclusive, from the end when reverse. Integers wrap.
"""


_UNARY_LOG_SOFTMAX = unary(FLOATS, names=("axis",))


def _infer_log_softmax(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    results = _UNARY_LOG_SOFTMAX(types, attributes)
    attribute_axis(attributes, types[0].rank)
    return results


def _log_softmax(x: Array, axis: int) -> Array:
    shifted = x - np.max(x, axis, keepdims=True, initial=-np.inf)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis, keepdims=True)))


def _reference_log_softmax(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    axis = attribute_int(attributes, "axis")
    return in_f64(partial(_log_softmax, axis=axis))(operands, attributes)


LOG_SOFTMAX = CoreOp("log_softmax", _infer_log_softmax, _reference_log_softmax)
"""``log_softmax{axis}``: logarithm of softmax along an axis (ONNX LogSoftmax-13), computed
after subtraction of the largest element.

In: a float tensor. Out: same type; a row that is -inf throughout gives NaN.
"""


_UNARY_SOFTMAX = unary(FLOATS, names=("axis",))


def _infer_softmax(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    results = _UNARY_SOFTMAX(types, attributes)
    attribute_axis(attributes, types[0].rank)
    return results


def _softmax(x: Array, axis: int) -> Array:
    exponentials = np.exp(x - np.max(x, axis, keepdims=True, initial=-np.inf))
    return np.asarray(exponentials / exponentials.sum(axis, keepdims=True))


def _reference_softmax(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    axis = attribute_int(attributes, "axis")
    return in_f64(partial(_softmax, axis=axis))(operands, attributes)


SOFTMAX = CoreOp("softmax", _infer_softmax, _reference_softmax, traits=Trait.DENSE)
"""``softmax{axis}``: e^x / sum of e^x along an axis (ONNX Softmax-13), computed after
subtraction of the largest element.

In: a float tensor. Out: same type; a row that is -inf throughout gives NaN.
"""


OPS = (
    ARGSORT,
    CUMSUM,
    LOG_SOFTMAX,
    SOFTMAX,
)
