"""``concat{axis}``: operands one after the other along an axis (ONNX Concat-13).

In: one or more tensors of one element type, equal but for ``axis``. Out: that type, sizes added
along ``axis``. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_axis,
    attribute_int,
    require_attributes,
)
from ingot_compiler.ir.dims import Dim, dim_add
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.make_shape_constraints import equal_shapes, sizes_of
from ingot_compiler.ir.rules.typing_rules import require_rank, require_same_dtype
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "axis")
    require(len(types) > 0, "at least one operand", 0)
    require_same_dtype(types)
    axis = attribute_axis(attributes, types[0].rank)
    total: Dim = 0
    for tensor in types:
        require_rank(tensor, types[0].rank)
        total = dim_add(total, tensor.shape[axis])
    sizes = [sizes_of(types, operand) for operand in range(len(types))]
    beside = equal_shapes("sizes beside the axis", *((*of[:axis], *of[axis + 1 :]) for of in sizes))
    rest = [constraint.common for constraint in beside]
    return Inferred((TensorType(types[0].dtype, (*rest[:axis], total, *rest[axis:])),), beside)


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (np.concatenate(list(operands), attribute_int(attributes, "axis")),)


OP = CoreOp("concat", _infer, _reference, traits=Trait.MOVEMENT)
