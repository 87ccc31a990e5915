"""``iota{dtype, length}``: 0, 1, .. length - 1 (ONNX Range-11 after scaling).

In: nothing. Out: dtype[length]. Not done here: start and step (``mul``, ``add``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_dim,
    attribute_dtype,
    attribute_int,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.reference_rules import COMPUTE_DTYPES
from ingot_compiler.ir.rules.typing_rules import (
    NUMBERS,
    require_dtype,
    require_operands,
    require_sizes,
)
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "dtype", "length")
    require_operands(types, 0)
    result = TensorType(attribute_dtype(attributes), (attribute_dim(attributes, "length"),))
    require_dtype(result, NUMBERS)
    require_sizes(result.shape, "length")
    return Inferred((result,))


def _reference(_operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (
        np.arange(attribute_int(attributes, "length")).astype(
            COMPUTE_DTYPES[attribute_dtype(attributes)]
        ),
    )


OP = CoreOp("iota", _infer, _reference, traits=Trait.SOURCE | Trait.EXACT | Trait.CHEAP)
