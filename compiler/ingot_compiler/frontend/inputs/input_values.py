"""Inputs of a model that are no tensors of numbers, as the tensors that they are made of.

In: ``ValueInfoProto`` of each input. Out: one for each tensor, and the form of each input. Not done
here: types of those tensors (``input_types``), how they are packed (the loader).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import TensorProto, TypeProto, ValueInfoProto, helper

from ingot_compiler.frontend.inputs.input_profiles import Shapes
from ingot_compiler.frontend.model.onnx_types import dtype_of
from ingot_compiler.ir.value_forms import TENSOR, part_names

_STRING_PLACES = (2, 2)  # where a string begins and ends: the last axis of its places


def input_form(value: ValueInfoProto) -> str:
    """The form of an input; that of a tensor for what Ingot has not."""
    return _form(value.type) or TENSOR


def _form(kind: TypeProto) -> str:
    if kind.HasField("tensor_type"):
        return _of_elements(kind.tensor_type)
    if kind.HasField("sequence_type"):
        element = kind.sequence_type.elem_type
        inner = _of_elements(element.tensor_type) if element.HasField("tensor_type") else ""
        return f"q{inner}" if inner else ""
    if kind.HasField("optional_type"):
        inner = _form(kind.optional_type.elem_type)
        return f"o{inner}" if inner and inner[0] != "o" else ""
    return ""


def _of_elements(kind: TypeProto.Tensor) -> str:
    is_text = kind.elem_type == TensorProto.STRING
    return "s" if is_text else TENSOR if dtype_of(kind.elem_type) is not None else ""


def tensors_of(inputs: Sequence[ValueInfoProto], forms: Sequence[str]) -> list[ValueInfoProto]:
    """The tensors that inputs are made of, in the order of their forms."""
    names = iter(part_names([value.name for value in inputs], forms))
    found: list[ValueInfoProto] = []
    for value, form in zip(inputs, forms, strict=True):
        if form == TENSOR:
            next(names)
            found.append(value)
        else:
            types = _types(value.name, value.type)
            found += [ValueInfoProto(name=next(names), type=type_) for type_ in types]
    return found


def _types(name: str, kind: TypeProto) -> list[TypeProto]:
    if kind.HasField("optional_type"):
        return [*_types(name, kind.optional_type.elem_type), _type(TensorProto.BOOL, ())]
    if kind.HasField("sequence_type"):
        element = kind.sequence_type.elem_type.tensor_type
        rank = len(element.shape.dim) if element.HasField("shape") else None
        return [*_flat(element.elem_type), _type(TensorProto.INT64, (f"len({name})", rank))]
    tensor = kind.tensor_type
    if tensor.elem_type != TensorProto.STRING:
        return [kind]
    places = TypeProto()
    places.CopyFrom(kind)
    places.tensor_type.elem_type = TensorProto.INT64
    if tensor.HasField("shape"):
        places.tensor_type.shape.dim.add().dim_value = 2
    return [places, _type(TensorProto.UINT8, (None,))]


def _flat(element: int) -> list[TypeProto]:
    if element == TensorProto.STRING:
        return [_type(TensorProto.INT64, (None, 2)), _type(TensorProto.UINT8, (None,))]
    return [_type(element, (None,))]


def _type(element: int, shape: Sequence[int | str | None]) -> TypeProto:
    return helper.make_tensor_type_proto(element, shape)


def shapes_of(shapes: Shapes, inputs: Sequence[ValueInfoProto], forms: Sequence[str]) -> Shapes:
    """The user's shapes, those of strings as the shapes of their places."""
    strings = {value.name for value, form in zip(inputs, forms, strict=True) if form == "s"}
    if not strings:
        return shapes

    def seen(given: Mapping[str, Sequence[object]]) -> dict[str, object]:
        return {
            name: (*shape, _STRING_PLACES) if name in strings else shape
            for name, shape in given.items()
        }

    return [seen(each) for each in shapes]  # type: ignore[misc]
