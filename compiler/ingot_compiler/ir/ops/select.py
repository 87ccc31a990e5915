"""``select(condition, a, b)``: a where the condition holds, else b (ONNX Where-16).

In: a bool tensor and two tensors of one element type. Out: that type, the broadcast shape. Not done
here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, require_attributes
from ingot_compiler.ir.op import CoreOp, Inferred
from ingot_compiler.ir.rules.reference_rules import directly
from ingot_compiler.ir.rules.typing_rules import (
    BOOLS,
    broadcast_result,
    require_dtype,
    require_operands,
    require_same_dtype,
)
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes)
    require_operands(types, 3)
    require_dtype(types[0], BOOLS)
    require_same_dtype(types[1:])
    return broadcast_result(types[1].dtype, types)


OP = CoreOp(
    "select",
    _infer,
    directly(np.where),
    traits=Trait.ELEMENTWISE | Trait.CLOSED | Trait.DENSE_OF_BRANCHES | Trait.EXACT | Trait.CODES,
)
