"""``concat{axis}``: operands one after the other along an axis (ONNX Concat-13).

In: one or more tensors of one element type, equal but for ``axis``. Out: that type, sizes added along ``axis``.
Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_axis, require_attributes
from ingot_compiler.ir.dims import Dim, dim_add
from ingot_compiler.ir.op import Array, CoreOp
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.reference_rules import integer
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.typing_rules import require_same_dtype, unify_shapes


def _without(shape: Sequence[Dim], axis: int) -> tuple[Dim, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def _infer(types: Sequence[TensorType], attributes: Attributes) -> tuple[TensorType, ...]:
    require_attributes(attributes, "axis")
    require(len(types) > 0, "at least one operand", 0)
    require_same_dtype(types)
    axis = attribute_axis(attributes, types[0].rank)
    rest, total = _without(types[0].shape, axis), types[0].shape[axis]
    for tensor in types[1:]:
        require(tensor.rank == types[0].rank, f"rank {types[0].rank}", tensor)
        rest = unify_shapes(rest, _without(tensor.shape, axis), "sizes beside the axis")
        total = dim_add(total, tensor.shape[axis])
    return (TensorType(types[0].dtype, (*rest[:axis], total, *rest[axis:])),)


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (np.concatenate(list(operands), integer(attributes["axis"])),)


OP = CoreOp("concat", _infer, _reference)
