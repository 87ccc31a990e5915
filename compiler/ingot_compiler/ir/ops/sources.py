"""Core ops that have no operands, or only numbers of a shape.

In: types, operands, attributes. Out: ``OPS``: for each op its type rule, its reference in numpy and
its traits. Not done here: lowering.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod

import numpy as np

from ingot_compiler.ir.attributes import (
    Attribute,
    Attributes,
    attribute_dim,
    attribute_dims,
    attribute_dtype,
    attribute_int,
    attribute_ints,
    attribute_numbers,
    attribute_str,
    require_attributes,
)
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.rules.reference_rules import COMPUTE_DTYPES
from ingot_compiler.ir.rules.typing_rules import (
    INTEGERS,
    NUMBERS,
    require_dtype,
    require_operands,
    require_sizes,
)
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, DType, TensorType


def _infer_constant(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "dtype", "shape", "weight")
    require_operands(types, 0)
    require(attribute_str(attributes, "weight") != "", "the number of a weight", "an empty string")
    shape = attribute_dims(attributes, "shape")
    require_sizes(shape, "shape")
    return Inferred((TensorType(attribute_dtype(attributes), shape),))


def _reference_constant(_operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    raise InternalError(
        "a constant has no value without its reader", f"weight {attributes['weight']}"
    )


CONSTANT = CoreOp("constant", _infer_constant, _reference_constant, traits=Trait.SOURCE)
"""``constant{dtype, shape, weight}``: a weight, known by its number; its dense little-endian
bytes are not part of the graph.

In: nothing. Out: the tensor.
"""


def _infer_dim_values(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "values")
    require_operands(types, 0)
    return Inferred((TensorType("i64", (len(attribute_dims(attributes, "values")),)),))


def _reference_dim_values(_operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (np.array(attribute_ints(attributes, "values"), np.int64),)


DIM_VALUES = CoreOp(
    "dim_values", _infer_dim_values, _reference_dim_values, traits=Trait.SOURCE | Trait.CHEAP
)
"""``dim_values{values}``: sizes as an integer tensor (ONNX Shape-25 of a symbolic shape).

In: nothing. Out: i64[number of values].
"""


def _infer_iota(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "dtype", "length")
    require_operands(types, 0)
    result = TensorType(attribute_dtype(attributes), (attribute_dim(attributes, "length"),))
    require_dtype(result, NUMBERS)
    require_sizes(result.shape, "length")
    return Inferred((result,))


def _reference_iota(_operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (
        np.arange(attribute_int(attributes, "length")).astype(
            COMPUTE_DTYPES[attribute_dtype(attributes)]
        ),
    )


IOTA = CoreOp("iota", _infer_iota, _reference_iota, traits=Trait.SOURCE | Trait.EXACT | Trait.CHEAP)
"""``iota{dtype, length}``: 0, 1, .. length - 1 (ONNX Range-11 after scaling).

In: nothing. Out: dtype[length].
"""


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


def _infer_literal(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
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


def _reference_literal(_operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    value = attribute_numbers(attributes, "value")
    with np.errstate(over="ignore"):
        return (
            np.array(value, COMPUTE_DTYPES[attribute_dtype(attributes)]).reshape(
                attribute_ints(attributes, "shape")
            ),
        )


LITERAL = CoreOp(
    "literal", _infer_literal, _reference_literal, traits=Trait.SOURCE | Trait.CLOSED | Trait.CHEAP
)
"""``literal{dtype, shape, value}``: a small constant that is part of the graph's text and
digest.

In: nothing. Out: rank 0 of any element type, or integers and bools of at most 1,024 elements,
row-major in ``value``.
"""


def _infer_read_dim(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "index", "symbol")
    require_operands(types, 1)
    require_dtype(types[0], INTEGERS)
    index, count = attribute_int(attributes, "index"), types[0].element_count
    require(
        index >= 0 and (not isinstance(count, int) or index < count),
        message("index in [0, ", count, ")"),
        index,
    )
    name = attribute_str(attributes, "symbol")
    require(name.isidentifier() and name.isascii(), "symbol to be an identifier", repr(name))
    return Inferred(())


def _reference_read_dim(_operands: Sequence[Array], _attributes: Attributes) -> tuple[Array, ...]:
    return ()


READ_DIM = CoreOp("read_dim", _infer_read_dim, _reference_read_dim)
"""``read_dim(x){index, symbol}``: bind a fresh symbol to element ``index`` (row-major) of an
integer tensor at run time.

In: an integer tensor. Out: no value; later types and attributes may use the symbol.
"""


OPS = (
    CONSTANT,
    DIM_VALUES,
    IOTA,
    LITERAL,
    READ_DIM,
)
