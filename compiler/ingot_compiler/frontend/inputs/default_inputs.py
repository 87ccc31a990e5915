"""Inputs that a caller need not give: an initializer has their name.

In: a graph, the version of its file format. Out: which initializers these are. Not done here: their
bytes (``import_model``), the value in a call (the loader).

Before version 4 of the format, every initializer had to be listed as an input, and none could be
given. Later exporters can still list their weights so; more than a few of them are taken for that,
for a weight that comes with the call can neither be packed nor folded.
"""

from __future__ import annotations

from collections.abc import Collection

from onnx import GraphProto, ValueInfoProto
from onnx.helper import make_tensor_value_info

IR_VERSION_MIN = 4
COUNT_MAX = 8


def default_inputs(graph: GraphProto, ir_version: int, read: Collection[str]) -> list[str]:
    """Return the names of the inputs with a default among those that somebody reads, in the order
    of the inputs."""
    if ir_version < IR_VERSION_MIN:
        return []
    values = {tensor.name for tensor in graph.initializer}
    return [value.name for value in graph.input if value.name in values and value.name in read]


def with_shape(value: ValueInfoProto, graph: GraphProto) -> ValueInfoProto:
    """Return an input with the shape of its default where it declares none."""
    if value.type.tensor_type.HasField("shape"):
        return value
    for tensor in graph.initializer:
        if tensor.name == value.name:
            return make_tensor_value_info(value.name, tensor.data_type, tensor.dims)
    return value
