"""Core ops that change the element type.

In: types, operands, attributes. Out: ``OPS``: for each op its type rule, its reference in numpy and
its traits. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, attribute_dtype, require_attributes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.reference_rules import COMPUTE_DTYPES, float_to_integer
from ingot_compiler.ir.rules.typing_rules import ANY, INTEGERS, require_dtype, require_operands
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import LOW_BITS, DType, TensorType, dtype_size_bits

_FLOATS: frozenset[DType] = frozenset(("f32", "f64"))
_WHOLE = INTEGERS | _FLOATS


def _infer_bit_cast(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "dtype")
    require_operands(types, 1)
    dtype, own = attribute_dtype(attributes), types[0].dtype
    require_dtype(types[0], _WHOLE | LOW_BITS)
    if own in LOW_BITS or dtype in LOW_BITS:
        require("u8" in (own, dtype), "u8 on one side", f"{own} to {dtype}")
    fits = dtype in _WHOLE | LOW_BITS and dtype_size_bits(dtype) == dtype_size_bits(own)
    require(fits, f"an integer or float type of {dtype_size_bits(own)} bits", dtype)
    return Inferred((TensorType(dtype, types[0].shape),))


def _reference_bit_cast(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (operands[0].view(COMPUTE_DTYPES[attribute_dtype(attributes)]),)


BIT_CAST = CoreOp(
    "bit_cast",
    _infer_bit_cast,
    _reference_bit_cast,
    traits=Trait.ELEMENTWISE | Trait.EXACT | Trait.CHEAP | Trait.CODES,
)
"""``bit_cast{dtype}``: the same bits as another element type (ONNX BitCast-26, of types that
registers hold as memory does), and between low-bit types and the u8 that holds their bits.

In: a tensor of integers, f32, f64 or a low-bit type. Out: the same shape in ``dtype``, which is as
wide.
"""


def _infer_cast(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "dtype")
    require_operands(types, 1)
    result = TensorType(attribute_dtype(attributes), types[0].shape)
    require_dtype(result, ANY)
    return Inferred((result,))


def _reference_cast(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    (x,), dtype = operands, COMPUTE_DTYPES[attribute_dtype(attributes)]
    with np.errstate(all="ignore"):
        return (
            float_to_integer(x, dtype)
            if x.dtype.kind == "f" and dtype.kind in "iu"
            else x.astype(dtype),
        )


CAST = CoreOp(
    "cast",
    _infer_cast,
    _reference_cast,
    traits=Trait.ELEMENTWISE | Trait.CLOSED | Trait.DENSE_OF_ALL | Trait.EXACT | Trait.CHEAP,
)
"""``cast{dtype}``: change of element type (ONNX Cast-24).

In: any tensor. Out: the same shape in ``dtype``.

float -> integer truncates towards 0 (``float_to_integer`` says what does not fit); integer ->
integer wraps;
anything -> bool is ``x != 0`` (NaN is true); float64 -> bf16 rounds through float32.
"""


OPS = (
    BIT_CAST,
    CAST,
)
