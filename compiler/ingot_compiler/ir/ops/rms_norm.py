"""``rms_norm(x, scale){axis, epsilon}``: x / sqrt(mean of x^2 + epsilon) * scale, the mean over
axes ``axis`` .. rank - 1 (ONNX RMSNormalization-23).

In: a float tensor; scale of its element type and shape x.shape[axis:]. Out: x's type. Not done
here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_float, attribute_int
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.reference_rules import in_f64, mean
from ingot_compiler.ir.rules.typing_rules import infer_norm_over_tail
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    return infer_norm_over_tail(types, attributes, 2)


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    epsilon, axes = (
        attribute_float(attributes, "epsilon"),
        tuple(range(attribute_int(attributes, "axis"), operands[0].ndim)),
    )

    def compute(x: Array, scale: Array) -> Array:
        return np.asarray(x / np.sqrt(mean(np.square(x), axes) + epsilon) * scale)

    return in_f64(compute)(operands, attributes)


OP = CoreOp("rms_norm", _infer, _reference, traits=Trait.DENSE)
