"""``group_norm(x, scale, bias){groups, epsilon}``: (x - mean) / sqrt(variance + epsilon) * scale +
bias, mean and variance per sample and group of channels (ONNX GroupNormalization-21; instance
normalisation with groups = C).

In: x[N, C, ..] floats, groups divides C; scale and bias [C] of its element type. Out: x's type. Not
done here: lowering.
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
from ingot_compiler.ir.rules.typing_rules import channel_vectors, require_operands
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "epsilon", "groups")
    require_operands(types, 3)
    attribute_float(attributes, "epsilon")
    vectors = channel_vectors(types)
    divided = groups_divide(attribute_int(attributes, "groups"), types[0].shape[1], "channels")
    return Inferred((types[0],), (*vectors, *divided))


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    epsilon, groups = attribute_float(attributes, "epsilon"), attribute_int(attributes, "groups")

    def compute(x: Array, scale: Array, bias: Array) -> Array:
        rows = x.reshape(x.shape[0], groups, int(np.prod(x.shape[1:], dtype=np.int64)) // groups)
        centred = rows - mean(rows, (2,))
        normal = (centred / np.sqrt(mean(np.square(centred), (2,)) + epsilon)).reshape(x.shape)
        per_channel = (-1, *[1] * (x.ndim - 2))
        return np.asarray(normal * scale.reshape(per_channel) + bias.reshape(per_channel))

    return in_f64(compute)(operands, attributes)


OP = CoreOp("group_norm", _infer, _reference, traits=Trait.DENSE)
