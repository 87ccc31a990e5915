"""Tensors of strings that a file holds, as nodes that write them down: strings are no weights.

In: a graph. Out: the graph, with a Constant (and a Reshape) in the place of each tensor of strings.
Not done here: their translation (``ops/constant``).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from onnx import GraphProto, NodeProto, TensorProto, helper

from ingot_compiler.frontend.model.sort_nodes import regions_of
from ingot_compiler.ir.errors import ModelError


def write_strings(graph: GraphProto) -> None:
    """Rewrite the initializers and Constants of a graph and its regions; ModelError for a tensor
    that has more or fewer strings than its shape says."""
    made: list[NodeProto] = []
    for tensor in [each for each in graph.initializer if each.data_type == TensorProto.STRING]:
        made += _nodes(tensor.name, tensor)
        graph.initializer.remove(tensor)
        for value in [each for each in graph.input if each.name == tensor.name]:
            graph.input.remove(value)
    for node in graph.node:
        for region in regions_of(node):
            write_strings(region)
        strings = _strings_of(node)
        made += [node] if strings is None else _nodes(node.output[0], strings, node.name)
    if len(made) != len(graph.node):
        kept = [NodeProto.FromString(node.SerializeToString()) for node in made]
        del graph.node[:]
        graph.node.extend(kept)


def _strings_of(node: NodeProto) -> TensorProto | None:
    """The tensor of strings of a Constant that is no vector, which an attribute cannot say."""
    for attribute in node.attribute if node.op_type == "Constant" else ():
        tensor: TensorProto = attribute.t
        if tensor.data_type == TensorProto.STRING and list(tensor.dims) != [
            len(tensor.string_data)
        ]:
            return tensor
    return None


def _nodes(name: str, tensor: TensorProto, called: str = "") -> Sequence[NodeProto]:
    count = prod(tensor.dims)
    if len(tensor.string_data) != count or min(tensor.dims, default=0) < 0:
        why = f"expected {count} strings for {list(tensor.dims)}, got {len(tensor.string_data)}"
        do = "export the model again; the file was damaged or written wrongly"
        raise ModelError("a tensor of strings contradicts its shape", f"tensor {name!r}", why, do)
    flat = TensorProto(data_type=TensorProto.STRING, dims=[len(tensor.string_data)])
    flat.string_data.extend(tensor.string_data)
    called = called or name
    if len(tensor.dims) == 1:
        return [helper.make_node("Constant", [], [name], called, value=flat)]
    parts = [f"{name} as a vector", f"shape of {name}"]
    shape = helper.make_tensor("shape", TensorProto.INT64, [len(tensor.dims)], list(tensor.dims))
    return [
        helper.make_node("Constant", [], parts[:1], called, value=flat),
        helper.make_node("Constant", [], parts[1:], f"{called} shape", value=shape),
        helper.make_node("Reshape", parts, [name], f"{called} reshape"),
    ]
