"""``constant{dtype, shape, weight}``: a weight, known by its number; its dense little-endian bytes
are not part of the graph.

In: nothing. Out: the tensor. Not done here: reading the bytes (``interpret`` does, through its
``ConstantReader``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_dims,
    attribute_dtype,
    attribute_str,
    require_attributes,
)
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.typing_rules import require_operands, require_sizes
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "dtype", "shape", "weight")
    require_operands(types, 0)
    require(attribute_str(attributes, "weight") != "", "the number of a weight", "an empty string")
    shape = attribute_dims(attributes, "shape")
    require_sizes(shape, "shape")
    return Inferred((TensorType(attribute_dtype(attributes), shape),))


def _reference(_operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    raise InternalError(
        "a constant has no value without its reader", f"weight {attributes['weight']}"
    )


OP = CoreOp("constant", _infer, _reference, traits=Trait.SOURCE)
