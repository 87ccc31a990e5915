"""``dim_values{values}``: sizes as an integer tensor (ONNX Shape-25 of a symbolic shape).

In: nothing. Out: i64[number of values]. Not done here: the way back, from a tensor to a symbol
(``read_dim``).
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
from ingot_compiler.ir.rules.typing_rules import require_operands
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "values")
    require_operands(types, 0)
    return Inferred((TensorType("i64", (len(attribute_dims(attributes, "values")),)),))


def _reference(_operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (np.array(attribute_ints(attributes, "values"), np.int64),)


OP = CoreOp("dim_values", _infer, _reference, traits=Trait.SOURCE | Trait.CHEAP)
