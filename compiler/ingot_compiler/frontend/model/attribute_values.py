"""Attributes of an ONNX node as plain values.

In: an ``AttributeProto``. Out: int, float, str, tuple or a stored tensor; a tensor of
strings as a tuple. Not done here: what
attributes mean (``ops``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from onnx import AttributeProto, TensorProto

from ingot_compiler.frontend.model.imported import ImportedAttribute
from ingot_compiler.ir.graph import ConstantSource

TensorStore = Callable[[TensorProto], ConstantSource]
"""Stores a tensor's bytes; raises what ``tensor_data.tensor_bytes`` raises."""


class UnsupportedAttribute(Exception):
    """An attribute kind that Ingot has not; ``reason`` says which."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def attribute_value(attribute: AttributeProto, store: TensorStore) -> ImportedAttribute:
    """The value of ``attribute``, floats exactly as the file's f32; UnsupportedAttribute for
    graphs, sparse tensors and types."""
    kind = attribute.type
    if kind == AttributeProto.INT:
        return int(attribute.i)
    if kind == AttributeProto.FLOAT:
        return float(attribute.f)
    if kind == AttributeProto.STRING:
        return attribute.s.decode("utf-8", "replace")
    if kind == AttributeProto.INTS:
        return tuple(int(item) for item in attribute.ints)
    if kind == AttributeProto.FLOATS:
        return tuple(float(item) for item in attribute.floats)
    if kind == AttributeProto.STRINGS:
        return _texts(attribute.name, attribute.strings)
    if kind == AttributeProto.TENSOR and attribute.t.data_type == TensorProto.STRING:
        return _texts(attribute.name, attribute.t.string_data)
    if kind == AttributeProto.TENSOR:
        return store(attribute.t)
    name = AttributeProto.AttributeType.Name(kind).lower()
    raise UnsupportedAttribute(f"attribute {attribute.name!r} is of kind {name}")


def _texts(name: str, contents: Iterable[bytes]) -> tuple[str, ...]:
    """Strings of a model, flat."""
    try:
        return tuple(content.decode() for content in contents)
    except UnicodeDecodeError as error:
        raise UnsupportedAttribute(
            f"attribute {name!r} has a string that is no UTF-8: {error}"
        ) from None
