"""``constant{digest, dtype, shape}``: a weight, known by the sha256 of its dense little-endian bytes.

In: nothing. Out: the tensor. Not done here: reading the bytes (``interpret`` does, through its ``ConstantReader``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.op import Array, Attributes, CoreOp
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.typing_rules import (
    attribute_dims,
    attribute_dtype,
    attribute_str,
    require,
    require_attributes,
    require_operands,
    require_sizes,
)


def _infer(types: Sequence[TensorType], attributes: Attributes) -> tuple[TensorType, ...]:
    require_attributes(attributes, "digest", "dtype", "shape")
    require_operands(types, 0)
    require(attribute_str(attributes, "digest") != "", "a digest", "an empty string")
    shape = attribute_dims(attributes, "shape")
    require_sizes(shape, "shape")
    return (TensorType(attribute_dtype(attributes), shape),)


def _reference(_operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    raise InternalError("a constant has no value without its reader", f"digest {attributes['digest']}")


OP = CoreOp("constant", _infer, _reference)
