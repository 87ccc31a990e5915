"""What the frontend knows of small tensors' values: numbers, and expressions over symbols.

In: a core op, its attributes, what is known of its operands. Out: what is known of its result. So
chains such as Shape -> Gather -> Concat -> Reshape end as symbolic shapes. Not done here: deciding
what to do with it (``context``).

Known values are numpy object arrays of the tensor's shape; an element is an integer expression
(``Dim``), a float, or None when it is not known. Bools are 0 and 1. A float tensor may hold an
expression: its value is that integer, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot_compiler.ir.attributes import Attribute, attribute_ints, attribute_str
from ingot_compiler.ir.dims import Dim, Sum, dim_add, dim_floordiv, dim_mod, dim_mul, terms_of
from ingot_compiler.ir.errors import LimitError
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.ranges import equal, is_nonnegative, less, maximum, minimum
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, DType, TensorType

Element = Dim | float | None
KnownValues = npt.NDArray[Any]
ELEMENT_COUNT_MAX = 1024
_DEFERRED_DEPTH_MAX = 100  # each is some calls deep in Python

_NUMPY: dict[DType, type[np.generic]] = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32,
    "u64": np.uint64, "bool": np.bool_, "f32": np.float32, "f64": np.float64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DeferredValue:
    """Known values of floats, found when somebody asks for them: a graph does not depend on weights
    that nobody asks for.

    ``depth``: how many such stand behind one another.
    """

    find: Callable[[], KnownValues | None]
    depth: int = 1


def known_or_none(known_values: KnownValues | DeferredValue | None) -> KnownValues | None:
    """Find them now."""
    return known_values.find() if isinstance(known_values, DeferredValue) else known_values


def as_known_values(values: Sequence[Element], shape: tuple[int, ...]) -> KnownValues:
    """Row-major values as known values of that shape."""
    flat = np.empty(len(values), np.object_)
    flat[:] = values
    return flat.reshape(shape)


def propagate(
    op: OpName,
    attributes: Mapping[str, Attribute],
    operands: Sequence[tuple[TensorType, KnownValues | DeferredValue | None]],
    result: TensorType,
) -> KnownValues | DeferredValue | None:
    """Known values of an op's result, None when nothing is known or it is too large; of floats,
    deferred where an operand's are."""
    count = result.element_count
    if not isinstance(count, int) or count > ELEMENT_COUNT_MAX or not _concrete(attributes):
        return None
    if Trait.MOVEMENT not in OPS_BY_NAME[op].traits and any(
        known_values is None for _, known_values in operands
    ):
        return None

    def find() -> KnownValues | None:
        return _propagated(
            op,
            attributes,
            [(type_, known_or_none(known_values)) for type_, known_values in operands],
            result,
        )

    depth = max(
        (
            known_values.depth
            for _, known_values in operands
            if isinstance(known_values, DeferredValue)
        ),
        default=0,
    )
    if result.dtype not in FLOATS or not 0 < depth < _DEFERRED_DEPTH_MAX:
        return find()
    return DeferredValue(cache(find), depth + 1)


def _propagated(
    op: OpName,
    attributes: Mapping[str, Attribute],
    operands: Sequence[tuple[TensorType, KnownValues | None]],
    result: TensorType,
) -> KnownValues | None:
    traits = OPS_BY_NAME[op].traits
    if Trait.MOVEMENT in traits:
        return _move(op, attributes, operands)
    known = [known_values for _, known_values in operands if known_values is not None]
    if len(known) < len(operands) or result.dtype not in _NUMPY:
        return None
    if Trait.INDEXED in traits:
        return _indexed(op, attributes, operands)
    if Trait.EXACT in traits and all(_is_concrete(known_values) for known_values in known):
        return _evaluate(op, attributes, operands, result)
    return _symbolic(op, attributes, known, result)


def _concrete(attributes: Mapping[str, Attribute]) -> bool:
    return not any(
        isinstance(item, Sum)
        for value in attributes.values()
        for item in (value if isinstance(value, tuple) else (value,))
    )


def _is_concrete(known_values: KnownValues) -> bool:
    return all(isinstance(item, (int, float)) for item in known_values.flat)


def _reference(
    op: OpName, arrays: Sequence[npt.NDArray[Any]], attributes: Mapping[str, Attribute]
) -> npt.NDArray[Any] | None:
    try:
        return OPS_BY_NAME[op].reference(arrays, attributes)[0]
    except (IndexError, ValueError, OverflowError, OpTypeError):
        return None


def _move(
    op: OpName,
    attributes: Mapping[str, Attribute],
    operands: Sequence[tuple[TensorType, KnownValues | None]],
) -> KnownValues | None:
    if all(known_values is None for _, known_values in operands):
        return None
    arrays: list[KnownValues] = []
    for type_, known_values in operands:
        shape = tuple(dim for dim in type_.shape if isinstance(dim, int))
        if known_values is None and (len(shape) < type_.rank or type_.element_count == 0):
            return None
        # An unknown operand is an array of unknown elements.
        arrays.append(np.full(shape, None, np.object_) if known_values is None else known_values)
    return _reference(op, arrays, attributes)


def _indexed(
    op: OpName,
    attributes: Mapping[str, Attribute],
    operands: Sequence[tuple[TensorType, KnownValues | None]],
) -> KnownValues | None:
    arrays: list[npt.NDArray[Any]] = []
    if attributes.get("reduction", "none") != "none":
        return None
    for position, (_, known_values) in enumerate(operands):
        assert known_values is not None
        if position == 1:
            if not _is_concrete(known_values):
                return None
            arrays.append(known_values.astype(np.int64))
        else:
            arrays.append(known_values)
    return _reference(op, arrays, attributes)


def _evaluate(
    op: OpName,
    attributes: Mapping[str, Attribute],
    operands: Sequence[tuple[TensorType, KnownValues | None]],
    result: TensorType,
) -> KnownValues | None:
    arrays: list[npt.NDArray[Any]] = []
    for type_, known_values in operands:
        if type_.dtype not in _NUMPY:
            return None
        assert known_values is not None
        try:
            arrays.append(known_values.astype(_NUMPY[type_.dtype]))
        except OverflowError:
            return None
    value = _reference(op, arrays, attributes)
    if value is None or (op == "cast" and value.dtype.kind != "f" and not _finite(arrays[0])):
        return None
    items: list[Element] = [
        float(item) if result.dtype in FLOATS else int(item) for item in value.ravel().tolist()
    ]
    return as_known_values(items, value.shape)


def _finite(array: npt.NDArray[Any]) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _symbolic(
    op: OpName,
    attributes: Mapping[str, Attribute],
    known: Sequence[KnownValues],
    result: TensorType,
) -> KnownValues | None:
    if op == "reduce":
        return _reduce(attributes, known[0], result)
    function = _CASTS.get(result.dtype, _same) if op == "cast" else _FUNCTIONS.get(op)
    if function is None:
        return None
    if op == "div" and result.dtype in FLOATS:
        function = _divide_exactly
    elements: Any = np.frompyfunc(function, len(known), 1)(*known)
    known_values = np.empty(np.broadcast_shapes(*(operand.shape for operand in known)), np.object_)
    known_values[...] = elements
    return known_values


def _reduce(
    attributes: Mapping[str, Attribute], known_values: KnownValues, result: TensorType
) -> KnownValues | None:
    function = {"sum": _add, "product": _multiply, "max": _max, "min": _min}.get(
        attribute_str(attributes, "function")
    )
    axes = attribute_ints(attributes, "axes")
    shape = tuple(dim for dim in result.shape if isinstance(dim, int))
    if function is None or known_values.size == 0:
        return None
    order = [axis for axis in range(known_values.ndim) if axis not in axes] + [
        axis for axis in range(known_values.ndim) if axis in axes
    ]
    rows = known_values.transpose(order).reshape(int(np.prod(shape)), -1)
    totals: list[Element] = []
    for row in rows:
        total: Element = row[0]
        for item in row[1:]:
            total = function(total, item)
        totals.append(total)
    return as_known_values(totals, shape)


def _whole(value: Element) -> Dim | None:
    """The value as an integer expression, None when it is not one."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value


def _dims(function: Callable[[Dim, Dim], Dim | None]) -> Callable[[Element, Element], Element]:
    """Lift a function of two integer expressions: unknown when one is, or when the expression would
    be too long.

    What is not known here is computed by kernels, and read where a size needs it.
    """

    def lifted(left: Element, right: Element) -> Element:
        a, b = _whole(left), _whole(right)
        try:
            return None if a is None or b is None else function(a, b)
        except LimitError:
            return None

    return lifted


def _difference(left: Dim, right: Dim) -> Dim:
    return dim_add(left, dim_mul(right, -1))


def _truncating_div(left: Dim, right: Dim) -> Dim | None:
    if isinstance(left, int) and isinstance(right, int):
        return (
            None
            if right == 0
            else abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        )
    if dim_mod(left, right) == 0:
        return dim_floordiv(left, right)
    return dim_floordiv(left, right) if is_nonnegative(left) and is_nonnegative(right) else None


def _exact_div(left: Dim, right: Dim) -> Dim | None:
    return dim_floordiv(left, right) if right != 0 and dim_mod(left, right) == 0 else None


def _truth(function: Callable[[Dim, Dim], bool | None]) -> Callable[[Element, Element], Element]:
    """Lift a question about two integer expressions: 1 or 0, unknown where it cannot be seen."""

    def asked(left: Dim, right: Dim) -> Dim | None:
        answer = function(left, right)
        return None if answer is None else int(answer)

    return _dims(asked)


def _less_equal(left: Dim, right: Dim) -> bool | None:
    greater = less(right, left)
    return None if greater is None else not greater


def _absolute(value: Element) -> Element:
    return value if isinstance(value, (int, Sum)) and is_nonnegative(value) else None


def _negative(value: Element) -> Element:
    return None if value is None else -value


def _small(value: Element) -> Element:
    return value if isinstance(value, int) and 0 <= value < 128 else None


def _select(condition: Element, left: Element, right: Element) -> Element:
    if condition is None:
        return left if left == right else None
    return left if condition else right


def _and(left: Element, right: Element) -> Element:
    return 0 if 0 in (left, right) else None if None in (left, right) else 1


def _or(left: Element, right: Element) -> Element:
    return 1 if 1 in (left, right) else None if None in (left, right) else 0


def _not(value: Element) -> Element:
    return None if value is None else int(not value)


def _same(value: Element) -> Element:
    return value


def _whole_only(value: Element) -> Element:
    return _whole(value)


def _to_bool(value: Element) -> Element:
    if value is None or isinstance(value, float):
        return None
    zero = equal(value, 0)
    return None if zero is None else int(not zero)


_add, _multiply, _max, _min = _dims(dim_add), _dims(dim_mul), _dims(maximum), _dims(minimum)
_divide_exactly = _dims(_exact_div)
# Integer types of 32 and 64 bits hold every size; narrower ones would wrap.
_CASTS: dict[DType, Callable[..., Element]] = {
    "bool": _to_bool, "i64": _whole_only, "i32": _whole_only, "f32": _same, "f64": _same,
    "i8": _small, "i16": _small, "u8": _small, "u16": _small, "u32": _small, "u64": _small,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Element]] = {
    "add": _add, "sub": _dims(_difference), "mul": _multiply, "div": _dims(_truncating_div), "mod": _dims(dim_mod),
    "min": _min, "max": _max, "neg": _negative, "abs": _absolute,
    "floor": _whole_only, "ceil": _whole_only, "round": _whole_only,
    "equal": _truth(equal), "less": _truth(less), "less_equal": _truth(_less_equal),
    "logical_and": _and, "logical_or": _or, "logical_not": _not, "select": _select,
}  # fmt: skip


def is_known(known_values: KnownValues) -> bool:
    """Whether every element is an integer expression."""
    return all(isinstance(item, (int, Sum)) for item in known_values.flat)


def symbols_appear(known_values: KnownValues) -> bool:
    """Whether some element is not a plain integer."""
    return any(isinstance(item, Sum) and terms_of(item) for item in known_values.flat)


def tells_something(known_values: KnownValues | DeferredValue) -> bool:
    """Whether some element is known, or may be."""
    return isinstance(known_values, DeferredValue) or any(
        item is not None for item in known_values.flat
    )
