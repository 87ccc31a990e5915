"""The operators of programs: all core ops, and those that make memory and read shapes.

In: a name. Out: ``Operator``: its type rule, its numpy reference, and which of its operands the
host reads. Not done here: the core ops (``ir.ops``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_axis,
    attribute_dims,
    attribute_dtype,
    attribute_int,
    attribute_str,
    require_attributes,
)
from ingot_compiler.ir.dims import dim_floordiv
from ingot_compiler.ir.op import CoreOp
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.rules.reference_rules import STORAGE_DTYPES
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType
from ingot_compiler.programs.expressions import Expression, OperatorCall
from ingot_compiler.programs.types import StorageType, TupleType, Type
from ingot_runtime.lazy_dataclass import dataclass

OperatorRule = Callable[[Sequence[Type], Attributes], Type]
OperatorReference = Callable[[Sequence[Any], Attributes], Any]


@dataclass(frozen=True, slots=True)
class Operator:
    """``infer(types, attributes)`` gives the type of the result or raises ``OpTypeError``;
    ``reference(arguments, attributes)`` its value.

    ``host_operands``: positions of the operands that the host reads (sizes, shapes).
    ``on_host``: the result is on the host. ``on_attribute``: the attribute ``device`` names the
    declared device of the result. ``is_source``: made of nothing, so it is made wherever it is
    read, and never copied.
    """

    name: str
    infer: OperatorRule
    reference: OperatorReference
    host_operands: tuple[int, ...] = ()
    on_host: bool = False
    on_attribute: bool = False
    is_source: bool = False


def find_operator(name: str) -> Operator | None:
    """The operator of that name, if there is one."""
    return _OPERATORS.get(name)


def is_source(expression: Expression) -> bool:
    """Whether it is made of nothing: it is made wherever it is read."""
    if not isinstance(expression, OperatorCall):
        return False
    operator = find_operator(expression.operator)
    return operator is not None and operator.is_source


def _of_core_op(op: CoreOp) -> Operator:
    def infer(types: Sequence[Type], attributes: Attributes) -> Type:
        tensors = [_tensor(type_) for type_ in types]
        results = op.infer(tensors, attributes).results
        return results[0] if len(results) == 1 else TupleType(results)

    def reference(arguments: Sequence[Any], attributes: Attributes) -> Any:
        results = op.reference(arguments, attributes)
        return results[0] if len(results) == 1 else results

    return Operator(op.name, infer, reference, is_source=Trait.SOURCE in op.traits)


def _tensor(type_: Type) -> TensorType:
    if isinstance(type_, TensorType):
        return type_
    raise OpTypeError("a tensor", type_)


def _storage(type_: Type) -> None:
    require(isinstance(type_, StorageType), "storage", type_)


def _count(types: Sequence[Type], count: int) -> None:
    require(len(types) == count, f"{count} operands", len(types))


def _infer_split(types: Sequence[Type], attributes: Attributes) -> Type:
    require_attributes(attributes, "axis", "parts")
    _count(types, 1)
    tensor, parts = _tensor(types[0]), attribute_int(attributes, "parts")
    axis = attribute_axis(attributes, tensor.rank)
    size = tensor.shape[axis]
    require(parts > 0, "parts > 0", parts)
    require(not isinstance(size, int) or size % parts == 0, f"a multiple of {parts}", size)
    shape = (*tensor.shape[:axis], dim_floordiv(size, parts), *tensor.shape[axis + 1 :])
    return TupleType((TensorType(tensor.dtype, shape),) * parts)


def _split(arguments: Sequence[Any], attributes: Attributes) -> Any:
    parts, axis = attribute_int(attributes, "parts"), attribute_int(attributes, "axis")
    return tuple(np.split(arguments[0], parts, axis))


def _infer_alloc_storage(types: Sequence[Type], attributes: Attributes) -> Type:
    require_attributes(attributes, "device")
    attribute_str(attributes, "device")
    _count(types, 3)
    for type_ in types:
        _tensor(type_)
    return StorageType()


def _infer_alloc_tensor(types: Sequence[Type], attributes: Attributes) -> Type:
    require_attributes(attributes, "dtype", "shape")
    _count(types, 3)
    _storage(types[0])
    return TensorType(attribute_dtype(attributes), attribute_dims(attributes, "shape"))


def _alloc_tensor(arguments: Sequence[Any], attributes: Attributes) -> Any:
    return np.zeros(tuple(map(int, arguments[2])), STORAGE_DTYPES[attribute_dtype(attributes)])


def _infer_shape_of(types: Sequence[Type], attributes: Attributes) -> Type:
    require_attributes(attributes)
    _count(types, 1)
    return TensorType("i64", (_tensor(types[0]).rank,))


def _infer_reshape_tensor(types: Sequence[Type], attributes: Attributes) -> Type:
    require_attributes(attributes, "shape")
    _count(types, 2)
    _tensor(types[1])
    return TensorType(_tensor(types[0]).dtype, attribute_dims(attributes, "shape"))


_OPERATORS = {
    operator.name: operator
    for operator in (
        *map(_of_core_op, OPS_BY_NAME.values()),
        Operator("split", _infer_split, _split),
        Operator(
            "alloc_storage",
            _infer_alloc_storage,
            lambda arguments, _: ("storage", int(arguments[0])),
            host_operands=(0, 1, 2),
            on_attribute=True,
        ),
        Operator("alloc_tensor", _infer_alloc_tensor, _alloc_tensor, host_operands=(1, 2)),
        Operator(
            "shape_of",
            _infer_shape_of,
            lambda arguments, _: np.array(arguments[0].shape, np.int64),
            on_host=True,
        ),
        Operator(
            "reshape_tensor",
            _infer_reshape_tensor,
            lambda arguments, _: arguments[0].reshape(tuple(map(int, arguments[1]))),
            host_operands=(1,),
        ),
    )
}
