"""``broadcast_to{shape}``: x repeated along new axes and axes of size 1 (ONNX Expand-13, resolved).

In: any tensor. Out: its element type, ``shape``. Not done here: ONNX's two-sided rule (the frontend
resolves it).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_dims,
    attribute_ints,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.make_shape_constraints import broadcasts_to
from ingot_compiler.ir.rules.typing_rules import require_operands, require_sizes
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "shape")
    require_operands(types, 1)
    shape = attribute_dims(attributes, "shape")
    require_sizes(shape, "shape")
    return Inferred((TensorType(types[0].dtype, shape),), (broadcasts_to(types[0].shape, shape),))


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (np.broadcast_to(operands[0], attribute_ints(attributes, "shape")),)


OP = CoreOp("broadcast_to", _infer, _reference, traits=Trait.MOVEMENT)
