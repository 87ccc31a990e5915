"""What is known of the result of a core op, from what is known of its operands.

In: a core op, its attributes, what is known of its operands. Out: what is known of its result. So
chains such as Shape -> Gather -> Concat -> Reshape end as symbolic shapes. Not done here: functions
of single elements (``known_arithmetic``), deciding what to do with it (``context``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from functools import reduce as fold
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot_compiler.frontend.build.known_arithmetic import REDUCTIONS, function_of
from ingot_compiler.frontend.build.known_values import (
    DeferredValue,
    Element,
    KnownValues,
    are_numbers,
    as_known_values,
    known_or_none,
)
from ingot_compiler.ir.attributes import Attributes, attribute_ints, attribute_str
from ingot_compiler.ir.dims import Sum
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, DType, TensorType
from ingot_runtime.lazy_dataclass import dataclass

ELEMENT_COUNT_MAX = 1024
_DEFERRED_DEPTH_MAX = 100  # each is some calls deep in Python

_NUMPY: dict[DType, type[np.generic]] = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "bool": np.bool_, "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip

_Array = npt.NDArray[Any]
_Found = KnownValues | DeferredValue | None


@dataclass(frozen=True, slots=True)
class _Application:
    """A core op on operands, and the type of its result."""

    op: OpName
    attributes: Attributes
    types: tuple[TensorType, ...]
    result: TensorType

    def reference(self, arrays: Sequence[_Array]) -> _Array | None:
        """The op's own numpy reference; None where it refuses the arrays."""
        try:
            return OPS_BY_NAME[self.op].reference(arrays, self.attributes)[0]
        except (IndexError, ValueError, OverflowError, OpTypeError):
            return None


def propagate(
    op: OpName,
    attributes: Attributes,
    operands: Sequence[tuple[TensorType, _Found]],
    result: TensorType,
) -> _Found:
    """Known values of an op's result, None when nothing is known or it is too large; of floats,
    deferred where an operand's are."""
    known = [known_values for _, known_values in operands]
    if all(item is None for item in known):  # nearly all ops
        return None
    if Trait.MOVEMENT not in OPS_BY_NAME[op].traits and any(item is None for item in known):
        return None
    count = result.element_count
    if not isinstance(count, int) or count > ELEMENT_COUNT_MAX or _has_symbols(attributes):
        return None
    application = _Application(op, attributes, tuple(type_ for type_, _ in operands), result)
    find = partial(_found, application, known)
    depth = max((item.depth for item in known if isinstance(item, DeferredValue)), default=0)
    if result.dtype not in FLOATS or not 0 < depth < _DEFERRED_DEPTH_MAX:
        return find()
    return DeferredValue(cache(find), depth + 1)


def _has_symbols(attributes: Attributes) -> bool:
    return any(
        isinstance(item, Sum)
        for value in attributes.values()
        for item in (value if isinstance(value, tuple) else (value,))
    )


def _found(application: _Application, operands: Sequence[_Found]) -> KnownValues | None:
    """What is known of a result, once the deferred values of its operands are found."""
    traits = OPS_BY_NAME[application.op].traits
    found = [known_or_none(known_values) for known_values in operands]
    if Trait.MOVEMENT in traits:
        return _move(application, found)
    known = [known_values for known_values in found if known_values is not None]
    if len(known) < len(found) or application.result.dtype not in _NUMPY:
        return None
    if Trait.INDEXED in traits:
        return _indexed(application, known)
    if Trait.EXACT in traits and all(map(are_numbers, known)):
        return _evaluate(application, known)
    return _symbolic(application, known)


def _move(application: _Application, known: Sequence[KnownValues | None]) -> KnownValues | None:
    if all(known_values is None for known_values in known):
        return None
    arrays: list[KnownValues] = []
    for type_, known_values in zip(application.types, known, strict=True):
        shape = tuple(dim for dim in type_.shape if isinstance(dim, int))
        if known_values is None and (len(shape) < type_.rank or type_.element_count == 0):
            return None
        # An unknown operand is an array of unknown elements.
        arrays.append(np.full(shape, None, np.object_) if known_values is None else known_values)
    return application.reference(arrays)


def _indexed(application: _Application, known: Sequence[KnownValues]) -> KnownValues | None:
    """Operand 1 holds the indices, which must be numbers."""
    first, indices, *others = known
    if application.attributes.get("reduction", "none") != "none" or not are_numbers(indices):
        return None
    return application.reference([first, indices.astype(np.int64), *others])


def _evaluate(application: _Application, known: Sequence[KnownValues]) -> KnownValues | None:
    """By the op's reference, in the element types of its operands."""
    dtypes: list[DType] = [type_.dtype for type_ in application.types]
    if not all(dtype in _NUMPY for dtype in dtypes):
        return None
    try:
        arrays = [values.astype(_NUMPY[dtype]) for values, dtype in zip(known, dtypes, strict=True)]
    except OverflowError:
        return None
    value = application.reference(arrays)
    if value is None:
        return None
    if application.op == "cast" and value.dtype.kind != "f" and not _is_finite(arrays[0]):
        return None
    number = float if application.result.dtype in FLOATS else int
    items: list[Element] = [number(item) for item in value.ravel().tolist()]
    return as_known_values(items, value.shape)


def _is_finite(array: _Array) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _symbolic(application: _Application, known: Sequence[KnownValues]) -> KnownValues | None:
    """Element by element, as expressions."""
    if application.op == "reduce":
        return _reduce(application, known[0])
    function = function_of(application.op, application.result.dtype)
    if function is None:
        return None
    elements: Any = np.frompyfunc(function, len(known), 1)(*known)
    known_values = np.empty(np.broadcast_shapes(*(operand.shape for operand in known)), np.object_)
    known_values[...] = elements
    return known_values


def _reduce(application: _Application, known_values: KnownValues) -> KnownValues | None:
    function = REDUCTIONS.get(attribute_str(application.attributes, "function"))
    axes = attribute_ints(application.attributes, "axes")
    if function is None or known_values.size == 0:
        return None
    shape = tuple(dim for dim in application.result.shape if isinstance(dim, int))
    # Stable: kept axes first, each in its order.
    order = sorted(range(known_values.ndim), key=lambda axis: axis in axes)
    rows = known_values.transpose(order).reshape(int(np.prod(shape)), -1)
    return as_known_values([fold(function, row) for row in rows], shape)
