"""``cast{dtype}``: change of element type (ONNX Cast-24).

In: any tensor. Out: the same shape in ``dtype``. Not done here: lowering; saturation and low-bit
types (the frontend's ``low_bits``).

float -> integer truncates towards 0 (``float_to_integer`` says what does not fit); integer ->
integer wraps;
anything -> bool is ``x != 0`` (NaN is true); float64 -> bf16 rounds through float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_dtype, require_attributes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.reference_rules import COMPUTE_DTYPES, float_to_integer
from ingot_compiler.ir.rules.typing_rules import ANY, require_dtype, require_operands
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "dtype")
    require_operands(types, 1)
    result = TensorType(attribute_dtype(attributes), types[0].shape)
    require_dtype(result, ANY)
    return Inferred((result,))


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    (x,), dtype = operands, COMPUTE_DTYPES[attribute_dtype(attributes)]
    with np.errstate(all="ignore"):
        return (
            float_to_integer(x, dtype)
            if x.dtype.kind == "f" and dtype.kind in "iu"
            else x.astype(dtype),
        )


OP = CoreOp(
    "cast",
    _infer,
    _reference,
    traits=Trait.ELEMENTWISE | Trait.CLOSED | Trait.DENSE_OF_ALL | Trait.EXACT | Trait.CHEAP,
)
