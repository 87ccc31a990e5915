"""Models of ai.onnx.ml ops, and what ONNX's reference says of them.

In: nodes, arrays. Out: models, outcomes of the interpreter. Not done here: machine code
(``end_to_end_harness``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper
from onnx.helper import np_dtype_to_tensor_dtype
from tests.harness.end_to_end_harness import reference
from tests.harness.frontend_harness import Array, Outcome, run_model

ML = "ai.onnx.ml"


def ml_node(op: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    """A node of ai.onnx.ml."""
    return helper.make_node(op, inputs.split(), outputs.split(), domain=ML, **attributes)


def ml_model(
    nodes: Sequence[NodeProto], feed: Mapping[str, Array], outputs: str, opset: int = 3
) -> ModelProto:
    """A model whose inputs are like the arrays of ``feed``; outputs have no declared type."""
    inputs = [
        helper.make_tensor_value_info(name, np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feed.items()
    ]
    made = [helper.make_empty_tensor_value_info(name) for name in outputs.split()]
    graph = helper.make_graph(nodes, "g", inputs, made)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(ML, opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def agrees(
    nodes: Sequence[NodeProto], feed: Mapping[str, Array], outputs: str, opset: int = 3
) -> Outcome:
    """The interpreter beside ONNX's reference."""
    model = ml_model(nodes, feed, outputs, opset)
    expected = reference(model, feed)
    return run_model(model, list(feed.values()), list(expected.values()), 1e-5, 1e-5)


MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def classic_trees(
    trees: int, depth: int, kind: str, targets: int, seed: int, modes: Sequence[str] = MODES
) -> dict[str, Any]:
    """The attributes of random trees over four features; ids begin anywhere."""
    rng = np.random.default_rng(seed)
    nodes: dict[str, list[Any]] = {
        name: []
        for name in (
            "treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
            "missing_value_tracks_true",
        )
    }  # fmt: skip
    leaves: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}

    def add(tree: int, left: int) -> int:
        number, place = 7 + len(nodes["nodeids"]), len(nodes["nodeids"])
        is_leaf = left == 0 or (left < depth and rng.random() < 0.2)
        chosen = rng.integers(4), rng.integers(-2, 3), rng.choice(modes)
        row = (tree, number, *chosen, 0, 0, rng.integers(2))
        for name, value in zip(nodes, row, strict=True):
            nodes[name].append(value if name == "modes" else int(value))
        if is_leaf:
            nodes["modes"][place] = "LEAF"
            for target in range(targets):
                entry = (tree, number, target, float(np.float32(rng.normal())))
                for name, value in zip(leaves, entry, strict=True):
                    leaves[name].append(value)
        else:
            nodes["truenodeids"][place] = add(tree, left - 1)
            nodes["falsenodeids"][place] = add(tree, left - 1)
        return number

    for tree in range(trees):
        add(3 * tree + 1, depth)
    nodes["values"] = [float(value) for value in nodes["values"]]
    own = {f"nodes_{name}": values for name, values in nodes.items()}
    return own | {f"{kind}_{name}": values for name, values in leaves.items()}


def rows(count: int = 40, dtype: type[np.number[Any]] = np.float32) -> Array:
    """Features that often are equal to values of branches; some are NaN."""
    drawn: Array = np.random.default_rng(5).integers(-3, 4, (count, 4))
    x: Array = np.asarray(drawn, dtype)
    if np.dtype(dtype).kind == "f":
        x[::3] += 0.5
        x[1::5, 1], x[2::7, 2] = np.nan, np.inf
    return x


TENSOR = {"f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE}
