"""``literal{dtype, shape, value}``: a small constant that is part of the graph's text and digest.

In: nothing. Out: rank 0 of any element type, or integers and bools of at most 1,024 elements,
row-major in ``value``. Not done here: weights (``constant``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod

import numpy as np

from ingot_compiler.ir.attributes import (
    Attribute,
    Attributes,
    attribute_dtype,
    attribute_ints,
    attribute_numbers,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.rules.reference_rules import COMPUTE_DTYPES
from ingot_compiler.ir.rules.typing_rules import require_operands, require_sizes
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, DType, TensorType

ELEMENT_COUNT_MAX = 1024


def _fits(value: Attribute, dtype: DType) -> bool:
    if dtype == "bool":
        return isinstance(value, bool)
    if dtype in FLOATS:
        return isinstance(value, float)
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    least, greatest = _limits(dtype)
    return least <= value <= greatest


@cache
def _limits(dtype: DType) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    limits = np.iinfo(COMPUTE_DTYPES[dtype].name)
    return int(limits.min), int(limits.max)


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "dtype", "shape", "value")
    require_operands(types, 0)
    dtype, shape, value = (
        attribute_dtype(attributes),
        attribute_ints(attributes, "shape"),
        attribute_numbers(attributes, "value"),
    )
    require_sizes(shape, "shape")
    require(shape == () or dtype not in FLOATS, "rank 0 for a float literal", f"rank {len(shape)}")
    count = prod(shape)
    require(count <= ELEMENT_COUNT_MAX, f"at most {ELEMENT_COUNT_MAX} elements", count)
    if len(value) != count:
        raise OpTypeError(f"a tuple of {count} values", repr(value))
    if not all(_fits(item, dtype) for item in value):
        raise OpTypeError(f"values of type {dtype}", repr(value))
    return Inferred((TensorType(dtype, shape),))


def _reference(_operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    value = attribute_numbers(attributes, "value")
    with np.errstate(over="ignore"):
        return (
            np.array(value, COMPUTE_DTYPES[attribute_dtype(attributes)]).reshape(
                attribute_ints(attributes, "shape")
            ),
        )


OP = CoreOp("literal", _infer, _reference, traits=Trait.SOURCE | Trait.CLOSED | Trait.CHEAP)
