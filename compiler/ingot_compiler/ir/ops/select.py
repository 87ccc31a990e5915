"""``select(condition, a, b)``: a where the condition holds, else b (ONNX Where-16).

In: a bool tensor and two tensors of one element type. Out: that type, the broadcast shape. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, require_attributes
from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.reference_rules import directly
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.typing_rules import BOOLS, broadcast_shapes, require_dtype, require_operands, require_same_dtype


def _infer(types: Sequence[TensorType], attributes: Attributes) -> tuple[TensorType, ...]:
    require_attributes(attributes)
    require_operands(types, 3)
    require_dtype(types[0], BOOLS)
    require_same_dtype(types[1:])
    return (TensorType(types[1].dtype, broadcast_shapes(*(tensor.shape for tensor in types))),)


OP = CoreOp("select", _infer, directly(np.where), elementwise=True)
