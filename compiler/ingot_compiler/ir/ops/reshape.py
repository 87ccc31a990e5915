"""``reshape{shape}``: the same elements in row-major order under another shape (ONNX Reshape-25,
sizes resolved).

In: any tensor. Out: its element type, ``shape``. Not done here: 0 and -1 entries (the frontend
resolves them).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_dims,
    attribute_ints,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.make_shape_constraints import same_count
from ingot_compiler.ir.rules.typing_rules import require_operands, require_sizes
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "shape")
    require_operands(types, 1)
    shape = attribute_dims(attributes, "shape")
    require_sizes(shape, "shape")
    return Inferred((TensorType(types[0].dtype, shape),), same_count(types[0].shape, shape))


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (operands[0].reshape(attribute_ints(attributes, "shape")),)


OP = CoreOp("reshape", _infer, _reference, traits=Trait.MOVEMENT)
