"""``cumsum{axis, exclusive, reverse}``: running sums along an axis (ONNX CumSum-14).

In: a tensor of numbers. Out: same type; element i is the sum of x[0..i], without x[i] when
exclusive, from the end when reverse. Integers wrap. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_axis,
    attribute_bool,
    attribute_int,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.reference_rules import narrow, widen
from ingot_compiler.ir.rules.typing_rules import NUMBERS, require_dtype, require_operands
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "axis", "exclusive", "reverse")
    require_operands(types, 1)
    require_dtype(types[0], NUMBERS)
    attribute_axis(attributes, types[0].rank)
    attribute_bool(attributes, "exclusive")
    attribute_bool(attributes, "reverse")
    return Inferred((types[0],))


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    rows = np.moveaxis(widen(operands[0]), attribute_int(attributes, "axis"), -1)
    rows = rows[..., ::-1] if attribute_bool(attributes, "reverse") else rows
    if attribute_bool(attributes, "exclusive"):
        rows = np.concatenate((np.zeros_like(rows[..., :1]), rows[..., :-1]), -1)
    sums = np.cumsum(rows, -1, dtype=rows.dtype)
    sums = sums[..., ::-1] if attribute_bool(attributes, "reverse") else sums
    return (narrow(np.moveaxis(sums, -1, attribute_int(attributes, "axis")), operands[0]),)


OP = CoreOp("cumsum", _infer, _reference, traits=Trait.EXACT_ON_INTEGERS)
