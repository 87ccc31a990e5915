"""``argsort{count}``: where the ``count`` least elements of each row are, least first, equal ones in
their order (what ONNX TopK-24, Unique-11 and NonMaxSuppression-11 are made of).

In: unsigned integers[.., n]; 0 <= count <= n. Out: i64[.., count], positions in the row. Not done
here: order of other types (the frontend makes keys), lowering.
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
from ingot_compiler.ir.rules.make_shape_constraints import not_above
from ingot_compiler.ir.rules.typing_rules import require_dtype, require_operands, require_sizes
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import UNSIGNED, TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "count")
    require_operands(types, 1)
    (keys,), count = types, attribute_dim(attributes, "count")
    require_dtype(keys, UNSIGNED)
    require(keys.rank >= 1, "keys[.., n]", keys)
    require_sizes((count,), "count")
    fits = not_above(count, keys.shape[-1], "count")
    return Inferred((TensorType("i64", (*keys.shape[:-1], count)),), fits)


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    order = np.argsort(operands[0], axis=-1, kind="stable").astype(np.int64)
    return (order[..., : attribute_int(attributes, "count")],)


OP = CoreOp("argsort", _infer, _reference, traits=Trait.EXACT)
