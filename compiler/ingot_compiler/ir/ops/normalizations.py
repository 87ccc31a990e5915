"""Core normalizations of rows, groups and channels.

In: types, operands, attributes. Out: ``OPS``: for each op its type rule, its reference in numpy and
its traits. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_float,
    attribute_int,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.make_shape_constraints import groups_divide
from ingot_compiler.ir.rules.reference_rules import in_f64, mean
from ingot_compiler.ir.rules.typing_rules import (
    channel_vectors,
    infer_norm_over_tail,
    require_operands,
)
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer_batch_norm(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "epsilon")
    require_operands(types, 5)
    attribute_float(attributes, "epsilon")
    return Inferred((types[0],), channel_vectors(types))


def _reference_batch_norm(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    epsilon = attribute_float(attributes, "epsilon")

    def compute(x: Array, *vectors: Array) -> Array:
        scale, bias, mean, variance = (
            vector.reshape(-1, *[1] * (x.ndim - 2)) for vector in vectors
        )
        return np.asarray((x - mean) / np.sqrt(variance + epsilon) * scale + bias)

    return in_f64(compute)(operands, attributes)


BATCH_NORM = CoreOp("batch_norm", _infer_batch_norm, _reference_batch_norm, traits=Trait.DENSE)
"""``batch_norm(x, scale, bias, mean, variance){epsilon}``: (x - mean) / sqrt(variance +
epsilon) * scale + bias with given statistics per channel (ONNX BatchNormalization-15,
inference).

In: x[N, C, ..] floats; four vectors [C] of its element type. Out: x's type.
"""


def _infer_group_norm(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "epsilon", "groups")
    require_operands(types, 3)
    attribute_float(attributes, "epsilon")
    vectors = channel_vectors(types)
    divided = groups_divide(attribute_int(attributes, "groups"), types[0].shape[1], "channels")
    return Inferred((types[0],), (*vectors, *divided))


def _reference_group_norm(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    epsilon, groups = attribute_float(attributes, "epsilon"), attribute_int(attributes, "groups")

    def compute(x: Array, scale: Array, bias: Array) -> Array:
        rows = x.reshape(x.shape[0], groups, int(np.prod(x.shape[1:], dtype=np.int64)) // groups)
        centred = rows - mean(rows, (2,))
        normal = (centred / np.sqrt(mean(np.square(centred), (2,)) + epsilon)).reshape(x.shape)
        per_channel = (-1, *[1] * (x.ndim - 2))
        return np.asarray(normal * scale.reshape(per_channel) + bias.reshape(per_channel))

    return in_f64(compute)(operands, attributes)


GROUP_NORM = CoreOp("group_norm", _infer_group_norm, _reference_group_norm, traits=Trait.DENSE)
"""``group_norm(x, scale, bias){groups, epsilon}``: (x - mean) / sqrt(variance + epsilon) *
scale + bias, mean and variance per sample and group of channels (ONNX GroupNormalization-21;
instance normalisation with groups = C).

In: x[N, C, ..] floats, groups divides C; scale and bias [C] of its element type. Out: x's type.
"""


def _infer_layer_norm(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    return infer_norm_over_tail(types, attributes, 3)


def _reference_layer_norm(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    epsilon, axes = (
        attribute_float(attributes, "epsilon"),
        tuple(range(attribute_int(attributes, "axis"), operands[0].ndim)),
    )

    def compute(x: Array, scale: Array, bias: Array) -> Array:
        centred = x - mean(x, axes)
        variance = mean(np.square(centred), axes)
        return np.asarray(centred / np.sqrt(variance + epsilon) * scale + bias)

    return in_f64(compute)(operands, attributes)


LAYER_NORM = CoreOp("layer_norm", _infer_layer_norm, _reference_layer_norm, traits=Trait.DENSE)
"""``layer_norm(x, scale, bias){axis, epsilon}``: (x - mean) / sqrt(variance + epsilon) * scale
+ bias, mean and variance over axes ``axis`` .. rank - 1 (ONNX LayerNormalization-17).

In: a float tensor; scale and bias of its element type and shape x.shape[axis:]. Out: x's type.
"""


def _infer_rms_norm(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    return infer_norm_over_tail(types, attributes, 2)


def _reference_rms_norm(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    epsilon, axes = (
        attribute_float(attributes, "epsilon"),
        tuple(range(attribute_int(attributes, "axis"), operands[0].ndim)),
    )

    def compute(x: Array, scale: Array) -> Array:
        return np.asarray(x / np.sqrt(mean(np.square(x), axes) + epsilon) * scale)

    return in_f64(compute)(operands, attributes)


RMS_NORM = CoreOp("rms_norm", _infer_rms_norm, _reference_rms_norm, traits=Trait.DENSE)
"""``rms_norm(x, scale){axis, epsilon}``: x / sqrt(mean of x^2 + epsilon) * scale, the mean over
axes ``axis`` .. rank - 1 (ONNX RMSNormalization-23).

In: a float tensor; scale of its element type and shape x.shape[axis:]. Out: x's type.
"""


OPS = (
    BATCH_NORM,
    GROUP_NORM,
    LAYER_NORM,
    RMS_NORM,
)
