"""Attributes of core ops: the values that they hold, and typed readers of a table of them.

In: a table by name. Out: values of the type that was asked for, or ``OpTypeError``. Not done here:
which attributes an op has (its type rule demands them).

Every attribute is always written out; defaults live in the frontend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from ingot_compiler.ir.dims import Dim, Sum
from ingot_compiler.ir.message import Text, message
from ingot_compiler.ir.op_type_error import AttributeNamesError, OpTypeError, require
from ingot_compiler.ir.types import DTYPES, DType

# Floats are Python floats (printed by repr, exact); Dim covers integers and symbolic expressions.
Scalar = bool | float | str | Dim
Attribute = Scalar | tuple["Attribute", ...]
Attributes = Mapping[str, Attribute]


def require_attributes(attributes: Attributes, *names: str) -> None:
    """Demand exactly these attributes; every one is always written out, defaults live in the
    frontend."""
    if set(attributes) != set(names):
        raise AttributeNamesError(
            f"attributes {{{', '.join(sorted(names))}}}", f"{{{', '.join(sorted(attributes))}}}"
        )


def _value_of(attributes: Attributes, name: str) -> Attribute:
    """Attribute ``name``, of any type."""
    if name not in attributes:
        raise OpTypeError(f"attribute {name}", "none")
    return attributes[name]


def _items(attributes: Attributes, name: str) -> tuple[Attribute, ...]:
    value = _value_of(attributes, name)
    if isinstance(value, tuple):
        return value
    raise OpTypeError(f"{name} to be a tuple", repr(value))


def is_dim(value: Attribute) -> bool:
    """Whether an attribute value is an integer or a symbolic expression (bool is neither)."""
    return isinstance(value, (int, Sum)) and not isinstance(value, bool)


def attribute_dim(attributes: Attributes, name: str) -> Dim:
    """Attribute ``name`` as a dimension."""
    value = _value_of(attributes, name)
    if isinstance(value, (int, Sum)) and not isinstance(value, bool):
        return value
    raise OpTypeError(f"{name} to be an integer expression", repr(value))


def attribute_dims(attributes: Attributes, name: str) -> tuple[Dim, ...]:
    """Attribute ``name`` as a tuple of dimensions."""
    items = _items(attributes, name)
    dims = tuple(
        item for item in items if isinstance(item, (int, Sum)) and not isinstance(item, bool)
    )
    if len(dims) != len(items):
        raise OpTypeError(f"{name} to be a tuple of integer expressions", repr(items))
    return dims


def attribute_int(attributes: Attributes, name: str) -> int:
    """Attribute ``name`` as an integer."""
    value = _value_of(attributes, name)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise OpTypeError(f"{name} to be an integer", repr(value))


def attribute_ints(attributes: Attributes, name: str) -> tuple[int, ...]:
    """Attribute ``name`` as a tuple of integers."""
    dims = attribute_dims(attributes, name)
    ints = tuple(item for item in dims if isinstance(item, int))
    if len(ints) != len(dims):
        raise OpTypeError(f"{name} to be a tuple of integers", list(dims))
    return ints


def attribute_float(attributes: Attributes, name: str) -> float:
    """Attribute ``name`` as a float."""
    value = _value_of(attributes, name)
    if isinstance(value, float):
        return value
    raise OpTypeError(f"{name} to be a float", repr(value))


def attribute_floats(attributes: Attributes, name: str) -> tuple[float, ...]:
    """Attribute ``name`` as a tuple of floats."""
    items = _items(attributes, name)
    floats = tuple(item for item in items if isinstance(item, float))
    if len(floats) != len(items):
        raise OpTypeError(f"{name} to be a tuple of floats", repr(items))
    return floats


def attribute_numbers(attributes: Attributes, name: str) -> tuple[float, ...]:
    """Attribute ``name`` as a tuple of plain numbers: floats, integers and bools stay what they
    are."""
    items = _items(attributes, name)
    numbers = tuple([item for item in items if isinstance(item, (int, float))])
    if len(numbers) != len(items):
        raise OpTypeError(f"{name} to be a tuple of numbers", repr(items))
    return numbers


def attribute_bool(attributes: Attributes, name: str) -> bool:
    """Attribute ``name`` as a bool."""
    value = _value_of(attributes, name)
    if isinstance(value, bool):
        return value
    raise OpTypeError(f"{name} to be true or false", repr(value))


def attribute_bools(attributes: Attributes, name: str) -> tuple[bool, ...]:
    """Attribute ``name`` as a tuple of bools."""
    items = _items(attributes, name)
    flags = tuple(item for item in items if isinstance(item, bool))
    if len(flags) != len(items):
        raise OpTypeError(f"{name} to be a tuple of bools", repr(items))
    return flags


def attribute_str(attributes: Attributes, name: str, allowed: Sequence[str] = ()) -> str:
    """Attribute ``name`` as a string, one of ``allowed`` when given."""
    value = _value_of(attributes, name)
    if isinstance(value, str):
        if allowed and value not in allowed:
            raise OpTypeError(f"{name} to be one of {' '.join(allowed)}", value)
        return value
    raise OpTypeError(f"{name} to be a string", repr(value))


def attribute_text(attributes: Attributes, name: str) -> Text:
    """Attribute ``name`` as a text that may refer to sizes."""
    value = _value_of(attributes, name)
    parts = value if isinstance(value, tuple) else (value,)
    if not parts or not all(
        isinstance(part, str) or (isinstance(value, tuple) and is_dim(part)) for part in parts
    ):
        raise OpTypeError(f"{name} to be a string, or a tuple of strings and sizes", repr(value))
    return message(*parts)


def text_attribute(text: Text) -> Attribute:
    """A text that refers to nothing but sizes as the value of an attribute: a string, or its
    parts."""
    if isinstance(text, str):
        return text
    return tuple(piece for piece in text.pieces if isinstance(piece, str | Sum))


def attribute_strs(attributes: Attributes, name: str) -> tuple[str, ...]:
    """Attribute ``name`` as a tuple of strings."""
    items = _items(attributes, name)
    texts = tuple(item for item in items if isinstance(item, str))
    if len(texts) != len(items):
        raise OpTypeError(f"{name} to be a tuple of strings", repr(items))
    return texts


def attribute_dtype(attributes: Attributes) -> DType:
    """Attribute ``dtype`` as an element type."""
    name = attribute_str(attributes, "dtype")
    for dtype in DTYPES:
        if dtype == name:
            return dtype
    raise OpTypeError(f"dtype to be one of {' '.join(DTYPES)}", name)


def attribute_axis(attributes: Attributes, rank: int) -> int:
    """Attribute ``axis``, counted from the front: 0 <= axis < rank."""
    axis = attribute_int(attributes, "axis")
    require(0 <= axis < rank, f"axis in [0, {rank})", axis)
    return axis


def attribute_axes(attributes: Attributes, rank: int) -> tuple[int, ...]:
    """Attribute ``axes``: ascending, without repetition, each in [0, rank)."""
    axes = attribute_ints(attributes, "axes")
    ascending = all(a < b for a, b in pairwise(axes))
    require(
        ascending and all(0 <= axis < rank for axis in axes), f"ascending axes in [0, {rank})", axes
    )
    return axes
