"""Small ONNX models for tests, right and wrong, and their way through the frontend.

In: nodes, inputs, initializers. Out: ``ModelProto``, bytes, graphs. Not done here: assertions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from tests.harness.frontend_harness import Array, MemoryStore, no_external
from tests.stage_checks import check_imported

from ingot_compiler.frontend.import_model import import_model
from ingot_compiler.frontend.infer_types import infer_types
from ingot_compiler.frontend.model.imported import ImportedModel
from ingot_compiler.ir.graph import Graph, Names
from ingot_compiler.ir.in_names import error_in_names
from ingot_compiler.ir.sizes.given_shape import read_shape, shape_text
from ingot_runtime.ingot_error import IngotError

FLOAT = TensorProto.FLOAT
INT64 = TensorProto.INT64


def value(
    name: str, shape: Sequence[int | str | None] | None, dtype: int = FLOAT
) -> ValueInfoProto:
    """A graph input or output."""
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    constants: Mapping[str, Array] | None = None,
    opset: int = 20,
) -> ModelProto:
    """A model of one graph called "test"."""
    tensors = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "test", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def relu_chain() -> ModelProto:
    """Two nodes over x[2, n]: relu, then a product with weights."""
    nodes = [
        helper.make_node("Relu", ["x"], ["hidden"], "/first/relu"),
        helper.make_node("MatMul", ["hidden", "w"], ["y"], "/second/product"),
    ]
    weights = np.arange(3 * 512, dtype=np.float32).reshape(3, 512)
    return model(nodes, [value("x", ["n", 3])], [value("y", ["n", 512])], {"w": weights})


def load(
    source: ModelProto | bytes,
    shapes: Mapping[str, object] | Sequence[Mapping[str, object]] | None = None,
    place: Sequence[tuple[str, str]] = (),
    store: MemoryStore | None = None,
) -> tuple[ImportedModel, Names]:
    """``import_model`` without external data; ``shapes``: one profile, or several."""
    data = source if isinstance(source, bytes) else source.SerializeToString()
    given = [shapes] if isinstance(shapes, Mapping) else shapes or []
    profiles = [
        {name: read_shape(shape_text(shape)) for name, shape in each.items()} for each in given
    ]
    write = (store or MemoryStore()).write
    imported, names = import_model(data, no_external, write, profiles, place)
    check_imported(imported)
    return imported, names


def graph_of(source: ModelProto, store: MemoryStore | None = None) -> Graph:
    """Import and infer types; errors speak in the user's names, as the rule makes them."""
    kept = store or MemoryStore()
    imported, names = load(source, store=kept)
    try:
        return infer_types(imported, kept.read).graph
    except IngotError as error:
        raise error_in_names(error, names) from None
