"""Who makes, reads and keeps the tensors of a model.

In: a ``ModelProto``. Out: ``ModelView``. Not done here: choosing what is quantized
(``choose_tensors``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from ingot_compiler.frontend.model.sort_nodes import names_read, node_name, regions_of
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ModelView:
    """The main graph. ``kept`` are outputs of the model and what branches and bodies read: their
    floats must stay. ``constants`` are names of tensors that no input changes; ``stored`` those of
    them that lie in the file. ``types``: element types, as far as ONNX infers them."""

    nodes: Sequence[NodeProto]
    producers: dict[str, int]
    readers: dict[str, list[int]]
    kept: frozenset[str]
    constants: frozenset[str]
    stored: dict[str, TensorProto]
    types: dict[str, int]

    def activations(self, node: NodeProto) -> list[str]:
        """What a node reads that is no constant."""
        return [name for name in node.input if name and name not in self.constants]

    def name(self, index: int) -> str:
        """What the user calls a node: its name, else that of its result."""
        return node_name(self.nodes[index])

    def only_readers(self, name: str) -> list[int] | None:
        """The nodes that read a tensor; None if anything else does."""
        return None if name in self.kept else self.readers.get(name, [])


def view_model(model: ModelProto) -> ModelView:
    """Look at a model's main graph."""
    graph = model.graph
    given = {value.name for value in graph.input}
    stored = {tensor.name: tensor for tensor in graph.initializer if tensor.name not in given}
    readers: dict[str, list[int]] = {}
    for index, node in enumerate(graph.node):
        for name in dict.fromkeys(node.input):
            readers.setdefault(name, []).append(index)
    inner = (
        name for node in graph.node for name in islice(names_read(node), len(node.input), None)
    )
    return ModelView(
        nodes=graph.node,
        producers={name: index for index, node in enumerate(graph.node) for name in node.output},
        readers=readers,
        kept=frozenset(value.name for value in graph.output).union(inner),
        constants=_constants(graph, set(stored)),
        stored=stored,
        types=_types(model),
    )


def _types(model: ModelProto) -> dict[str, int]:
    inferred = onnx.shape_inference.infer_shapes(model).graph
    values = (*inferred.input, *inferred.value_info, *inferred.output)
    return {value.name: value.type.tensor_type.elem_type for value in values}


def _constants(graph: GraphProto, found: set[str]) -> frozenset[str]:
    for node in graph.node:
        if regions_of(node):
            continue
        known = all(not name or name in found for name in node.input)
        if known and (node.op_type == "Constant" or any(node.input)):
            found.update(name for name in node.output if name)
    return frozenset(found)
