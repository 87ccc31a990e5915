"""``batch_norm(x, scale, bias, mean, variance){epsilon}``: (x - mean) / sqrt(variance + epsilon) *
scale + bias with given statistics per channel (ONNX BatchNormalization-15, inference).

In: x[N, C, ..] floats; four vectors [C] of its element type. Out: x's type. Not done here: training
mode.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_float, require_attributes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.reference_rules import in_f64
from ingot_compiler.ir.rules.typing_rules import channel_vectors, require_operands
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "epsilon")
    require_operands(types, 5)
    attribute_float(attributes, "epsilon")
    return Inferred((types[0],), channel_vectors(types))


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    epsilon = attribute_float(attributes, "epsilon")

    def compute(x: Array, *vectors: Array) -> Array:
        scale, bias, mean, variance = (
            vector.reshape(-1, *[1] * (x.ndim - 2)) for vector in vectors
        )
        return np.asarray((x - mean) / np.sqrt(variance + epsilon) * scale + bias)

    return in_f64(compute)(operands, attributes)


OP = CoreOp("batch_norm", _infer, _reference, traits=Trait.DENSE)
