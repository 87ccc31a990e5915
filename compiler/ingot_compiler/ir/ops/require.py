"""``require(x, condition){what}``: x; the run is refused with ``what`` where a condition is false.

In: any tensor and a bool tensor that broadcast together. Out: x's element type, the broadcast
shape. Not done here: sizes alone (``require_dim``, which no kernel checks), messages with the
model's names.

A value that nobody uses is not computed, and then nothing is checked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_text, require_attributes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.typing_rules import (
    BOOLS,
    broadcast_result,
    require_dtype,
    require_operands,
)
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "what")
    require_operands(types, 2)
    attribute_text(attributes, "what")
    x, condition = types
    require_dtype(condition, BOOLS)
    return broadcast_result(x.dtype, types)


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, condition = np.broadcast_arrays(*operands)
    if not condition.all():
        raise ValueError(str(attribute_text(attributes, "what")))
    return (x,)


OP = CoreOp("require", _infer, _reference, traits=Trait.ELEMENTWISE)
