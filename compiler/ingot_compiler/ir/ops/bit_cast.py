"""``bit_cast{dtype}``: the same bits as another element type (ONNX BitCast-26, of types that
registers hold as memory does), and between low-bit types and the u8 that holds their bits.

In: a tensor of integers, f32, f64 or a low-bit type. Out: the same shape in ``dtype``, which is as
wide. Not done here: lowering; bool, f16 and bf16, which registers hold otherwise (refused);
clearing the bits of a byte that mean nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.attributes import Attributes, attribute_dtype, require_attributes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.reference_rules import COMPUTE_DTYPES
from ingot_compiler.ir.rules.typing_rules import INTEGERS, require_dtype, require_operands
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import LOW_BITS, DType, TensorType, dtype_size_bits

_FLOATS: frozenset[DType] = frozenset(("f32", "f64"))
_WHOLE = INTEGERS | _FLOATS


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "dtype")
    require_operands(types, 1)
    dtype, own = attribute_dtype(attributes), types[0].dtype
    require_dtype(types[0], _WHOLE | LOW_BITS)
    if own in LOW_BITS or dtype in LOW_BITS:
        require("u8" in (own, dtype), "u8 on one side", f"{own} to {dtype}")
    fits = dtype in _WHOLE | LOW_BITS and dtype_size_bits(dtype) == dtype_size_bits(own)
    require(fits, f"an integer or float type of {dtype_size_bits(own)} bits", dtype)
    return Inferred((TensorType(dtype, types[0].shape),))


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (operands[0].view(COMPUTE_DTYPES[attribute_dtype(attributes)]),)


OP = CoreOp(
    "bit_cast",
    _infer,
    _reference,
    traits=Trait.ELEMENTWISE | Trait.EXACT | Trait.CHEAP | Trait.CODES,
)
