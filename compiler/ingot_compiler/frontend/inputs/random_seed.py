"""The input from which random numbers come: a model whose random ops have no seed of their own gets
one, ``random_seed``, an i64 that is 0 where a call does not give it.

In: a graph. Out: the input, whose default is an initializer of the graph. Not done here: the
numbers (``random_numbers``).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper
from onnx.helper import make_tensor_value_info

from ingot_compiler.frontend.model.sort_nodes import all_nodes

_NAME = "random_seed"
_RANDOM = frozenset(
    (
        "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
        "RandomUniformLike",
    )
)  # fmt: skip


def add_seed(graph: GraphProto) -> ValueInfoProto | None:
    """Add the default of the seed to a graph that needs one; return the input."""
    nodes = [*all_nodes(graph.node)]
    known = dict(_known_flags(graph, nodes))
    if not any(_is_random(node, known) for node in nodes):
        return None
    taken = {value.name for value in (*graph.input, *graph.initializer, *graph.output)}
    taken |= {name for node in nodes for name in (*node.input, *node.output)}
    name = _NAME
    while name in taken:
        name += "_"
    graph.initializer.append(numpy_helper.from_array(np.array(0, np.int64), name))
    return make_tensor_value_info(name, TensorProto.INT64, [])


def _is_random(node: NodeProto, known: dict[str, bool]) -> bool:
    """Whether a node draws numbers and has no seed; Dropout does where it trains."""
    if node.domain not in ("", "ai.onnx") or any(item.name == "seed" for item in node.attribute):
        return False
    trains = len(node.input) > 2 and node.input[2] != "" and known.get(node.input[2], True)
    return node.op_type in _RANDOM or (node.op_type == "Dropout" and trains)


def _known_flags(graph: GraphProto, nodes: list[NodeProto]) -> Iterator[tuple[str, bool]]:
    """Constants of one bool."""
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.BOOL:
            yield tensor.name, _flag(tensor)
    for node in nodes:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.t.data_type == TensorProto.BOOL:
                yield node.output[0], _flag(attribute.t)


def _flag(tensor: TensorProto) -> bool:
    return any(tensor.raw_data) or any(tensor.int32_data)
