"""Attributes of an ONNX node as plain values.

In: an ``AttributeProto``. Out: int, float, str, tuple or a stored tensor. Not done here: what
attributes mean (``ops``).
"""

from __future__ import annotations

from collections.abc import Callable

from onnx import AttributeProto, TensorProto

from ingot_compiler.frontend.imported import ImportedAttribute
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
        return tuple(item.decode("utf-8", "replace") for item in attribute.strings)
    if kind == AttributeProto.TENSOR:
        return store(attribute.t)
    name = AttributeProto.AttributeType.Name(kind).lower()
    raise UnsupportedAttribute(f"attribute {attribute.name!r} is of kind {name}")
