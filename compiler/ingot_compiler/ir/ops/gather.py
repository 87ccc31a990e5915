"""``gather(x, indices){axis}``: slices of x along an axis, picked by indices (ONNX Gather-13).

In: any tensor and integers in [-d, d), d the size of the axis (negative ones count from the end).
Out: x's element type, shape x[:axis] + indices + x[axis+1:]. Not done here: lowering.
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
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.make_shape_constraints import elements_along
from ingot_compiler.ir.rules.typing_rules import INTEGERS, require_dtype, require_operands
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "axis")
    require_operands(types, 2)
    x, indices = types
    require_dtype(indices, INTEGERS)
    axis = attribute_axis(attributes, x.rank)
    result = TensorType(x.dtype, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    return Inferred((result,), elements_along(x.shape[axis], result.shape))


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, indices = operands
    return (np.asarray(np.take(x, indices.astype(np.int64), attribute_int(attributes, "axis"))),)


OP = CoreOp("gather", _infer, _reference, traits=Trait.INDEXED)
