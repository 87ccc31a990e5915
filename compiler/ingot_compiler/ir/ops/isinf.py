"""``isinf{positive, negative}``: whether x is an infinity of a wanted sign (ONNX IsInf-20).

In: a float tensor. Out: bool, same shape. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_bool
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.typing_rules import unary
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, TensorType

_UNARY = unary(FLOATS, "bool", ("negative", "positive"))


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    results = _UNARY(types, attributes)
    attribute_bool(attributes, "positive")
    attribute_bool(attributes, "negative")
    return results


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x = operands[0]
    wanted = (attribute_bool(attributes, "positive") & (x > 0)) | (
        attribute_bool(attributes, "negative") & (x < 0)
    )
    return (np.asarray(np.isinf(x) & wanted),)


OP = CoreOp("isinf", _infer, _reference, traits=Trait.ELEMENTWISE | Trait.EXACT)
