"""``log_softmax{axis}``: logarithm of softmax along an axis (ONNX LogSoftmax-13), computed after
subtraction of the largest element.

In: a float tensor. Out: same type; a row that is -inf throughout gives NaN. Not done here:
lowering.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_axis, attribute_int
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.reference_rules import in_f64
from ingot_compiler.ir.rules.typing_rules import unary
from ingot_compiler.ir.types import FLOATS, TensorType

_UNARY = unary(FLOATS, names=("axis",))


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    results = _UNARY(types, attributes)
    attribute_axis(attributes, types[0].rank)
    return results


def _log_softmax(x: Array, axis: int) -> Array:
    shifted = x - np.max(x, axis, keepdims=True, initial=-np.inf)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis, keepdims=True)))


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    axis = attribute_int(attributes, "axis")
    return in_f64(partial(_log_softmax, axis=axis))(operands, attributes)


OP = CoreOp("log_softmax", _infer, _reference)
