"""``positions_of_true{count}``: where the elements of a mask are true, in order (what ONNX
NonZero-13, Compress-11 and NonMaxSuppression-11 are made of).

In: bool[n], of which at least ``count`` are true. Out: i64[count], the first of their positions.
Not done here: counting them (the frontend, which reads their number at run time), lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_dim,
    attribute_int,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.typing_rules import require_operands, require_sizes
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "count")
    require_operands(types, 1)
    (mask,), count = types, attribute_dim(attributes, "count")
    require(mask.dtype == "bool" and mask.rank == 1, "bool[n]", mask)
    require_sizes((count,), "count")
    return Inferred((TensorType("i64", (count,)),))


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (np.flatnonzero(operands[0])[: attribute_int(attributes, "count")].astype(np.int64),)


OP = CoreOp("positions_of_true", _infer, _reference, traits=Trait.EXACT)
