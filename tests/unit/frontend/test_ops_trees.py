"""Tree ensembles of ai.onnx.ml beside ONNX's reference, and what is no tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import ModelProto, helper
from tests.harness.end_to_end_harness import check_model, reference
from tests.harness.frontend_harness import MemoryStore, Outcome, run_model, translate
from tests.harness.ml_harness import (
    MODES,
    TENSOR,
    agrees,
    classic_trees,
    ml_model,
    ml_node,
    rows,
)

import ingot
import ingot_runtime
from ingot_compiler.frontend.families.trees.tables import tree_tables
from ingot_runtime.ingot_error import IngotError

AGREES = Outcome("agrees")


@pytest.mark.parametrize("mode", [*MODES, "all"])
def test_every_mode(mode: str) -> None:
    """Equal values, infinities and NaN take the branch that ONNX says, whether NaN tracks true or
    not."""
    modes = MODES if mode == "all" else (mode,)
    attributes = classic_trees(5, 5, "target", 1, 3, modes)
    node = ml_node("TreeEnsembleRegressor", "x", "y", n_targets=1, **attributes)
    assert agrees([node], {"x": rows()}, "y") == AGREES


@pytest.mark.parametrize("function", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 3])
def test_aggregates(function: str, targets: int) -> None:
    """Every aggregate function, with base values, of one and of several targets."""
    node = ml_node(
        "TreeEnsembleRegressor",
        "x",
        "y",
        n_targets=targets,
        aggregate_function=function,
        base_values=[0.5] * targets,
        **classic_trees(4, 3, "target", targets, 1),
    )
    assert agrees([node], {"x": rows()}, "y") == AGREES


def test_trees_of_one_target_each() -> None:
    """Trees that each add to one of several targets, as boosting writes them, an unequal number to
    each."""
    attributes = classic_trees(7, 3, "target", 1, 2)
    targets = [(tree // 3) % 3 for tree in attributes["target_treeids"]]
    attributes["target_ids"] = targets
    node = ml_node("TreeEnsembleRegressor", "x", "y", n_targets=3, **attributes)
    assert agrees([node], {"x": rows()}, "y") == AGREES


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_classifier(transform: str) -> None:
    """Labels need not be 0, 1, ..; scores after each transform."""
    attributes = classic_trees(6, 4, "class", 3, 4)
    node = ml_node(
        "TreeEnsembleClassifier",
        "x",
        "label scores",
        classlabels_int64s=[10, -3, 7],
        post_transform=transform,
        base_values=[0.1, 0.2, 0.3],
        **attributes,
    )
    assert agrees([node], {"x": rows()}, "label scores") == AGREES


def test_probit() -> None:
    """PROBIT of scores between 0 and 1."""
    attributes = classic_trees(1, 3, "class", 2, 4)
    attributes["class_weights"] = [0.1 + 0.8 * abs(np.tanh(w)) for w in attributes["class_weights"]]
    node = ml_node(
        "TreeEnsembleClassifier",
        "x",
        "label scores",
        classlabels_int64s=[0, 1],
        post_transform="PROBIT",
        **attributes,
    )
    assert agrees([node], {"x": rows()}, "label scores") == AGREES


def test_two_classes_of_one_score() -> None:
    """Weights for one class decide between two: LOGISTIC as the reference has it."""
    node = ml_node(
        "TreeEnsembleClassifier",
        "x",
        "label scores",
        classlabels_int64s=[4, 9],
        post_transform="LOGISTIC",
        **classic_trees(6, 4, "class", 1, 4),
    )
    assert agrees([node], {"x": rows()}, "label scores") == AGREES


@pytest.mark.broad
def test_wide_features(tmp_path: Path) -> None:
    """f64 features are compared as such: one that f32 would round across a value goes right."""
    attributes = classic_trees(3, 3, "target", 1, 6, ["BRANCH_LEQ", "BRANCH_LT"])
    x = rows(dtype=np.float64)
    x[::2] *= 1 + 1e-12
    node = ml_node("TreeEnsembleRegressor", "x", "y64", n_targets=1, **attributes)
    cast = helper.make_node("Cast", ["y64"], ["y"], to=TENSOR["f32"])
    model = ml_model([node, cast], {"x": x}, "y")
    check_model(model, [{"x": x}], tmp_path)


def test_integer_features() -> None:
    """Integers are compared as floats."""
    attributes = classic_trees(3, 3, "target", 1, 6)
    node, x = (
        ml_node("TreeEnsembleRegressor", "x", "y", n_targets=1, **attributes),
        rows(dtype=np.int64),
    )
    wanted = reference(
        ml_model([node], {"x": x.astype(np.float32)}, "y"), {"x": x.astype(np.float32)}
    )
    assert run_model(ml_model([node], {"x": x}, "y"), [x], [wanted["y"]]) == AGREES


def ensemble(**changes: Any) -> Any:
    """A TreeEnsemble of two trees over three leaves, one of which is a set membership."""
    splits = helper.make_tensor("s", TENSOR["f32"], [3], [0.5, 0.0, 1.0])
    modes = helper.make_tensor("m", 2, [3], bytes([0, 6, 1]), raw=True)
    weights = helper.make_tensor("w", TENSOR["f32"], [3], [1.0, 2.0, 4.0])
    members = helper.make_tensor("v", TENSOR["f32"], [4], [1.0, -2.0, 3.0, np.nan])
    attributes = {
        "nodes_splits": splits,
        "nodes_modes": modes,
        "leaf_weights": weights,
        "membership_values": members,
        "nodes_featureids": [0, 1, 3],
        "tree_roots": [0, 2],
        "nodes_truenodeids": [1, 0, 2],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 1, 0],
        "nodes_falseleafs": [1, 1, 1],
        "leaf_targetids": [0, 1, 1],
        "n_targets": 2,
    }
    return ml_node("TreeEnsemble", "x", "y", **(attributes | changes))


@pytest.mark.parametrize("function", range(4))
def test_newest_form(function: int) -> None:
    """TreeEnsemble of opset 5: sets, trees that share leaves, every aggregate function."""
    x = rows()[:, :]
    model = ml_model([ensemble(aggregate_function=function)], {"x": x}, "y", 5)
    (got,) = _interpret(model, x)
    member, low = np.isin(x[:, 1], [1, -2, 3]), x[:, 3] < 1
    first = np.where(x[:, 0] <= 0.5, np.where(member, 1, 2), 4)
    second = np.where(low, 4, 1)
    targets = np.where(first == 1, 0, 1), np.where(second == 1, 0, 1)
    for row in range(len(x)):
        for target in range(2):
            mine = [
                w[row] for w, t in zip((first, second), targets, strict=True) if t[row] == target
            ]
            if mine:
                value = (sum(mine) / 2, sum(mine), min(mine), max(mine))[function]
                assert got[row, target] == value


def _interpret(model: Any, *inputs: Any) -> Any:
    from ingot_compiler.oracles.interpret import interpret

    store = MemoryStore()
    graph, _ = translate(model, store)
    return interpret(graph, list(inputs), store.read)


@pytest.mark.broad
def test_any_number_of_rows(tmp_path: Path) -> None:
    """One bundle for every batch: blocks, groups and single rows, on one thread and two."""
    attributes = classic_trees(21, 5, "class", 3, 8)
    node = ml_node(
        "TreeEnsembleClassifier", "x", "label scores", classlabels_int64s=[0, 1, 2], **attributes
    )
    model = ml_model([node], {"x": rows(1)}, "label scores")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    check_model(model, [{"x": rows(count)} for count in (1, 7, 64, 200)], tmp_path)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "itself": (
        {"nodes_truenodeids": [0, 0, 2], "nodes_trueleafs": [0, 1, 1]},
        "returns to branch 0",
    ),
    "outside": ({"nodes_falsenodeids": [5, 1, 0]}, "nodes_falsenodeids in [0, 3), got 5"),
    "cycle": ({"nodes_truenodeids": [1, 0, 2], "nodes_trueleafs": [0, 0, 1]}, "returns to branch"),
    "root": ({"tree_roots": [0, 9]}, "tree_roots in [0, 3), got 9"),
    "lengths": ({"nodes_featureids": [0, 1]}, "expected 2 entries of nodes_splits, got 3"),
    "targets": ({"leaf_targetids": [0, 1, 2]}, "targets in [0, 2)"),
    "features": ({"nodes_featureids": [0, -1, 3]}, "features in [0,"),
    "columns": ({"nodes_featureids": [0, 4, 3]}, "features of trees to be at most 4, got 5"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_tree(case: str) -> None:
    """Each contradiction is refused with what was expected and got."""
    changes, text = BAD[case]
    model = ml_model([ensemble(**changes)], {"x": rows()}, "y", 5)
    with pytest.raises(IngotError) as caught:
        translate(model, MemoryStore())
    assert text in str(caught.value)


CLASSIC_BAD: dict[str, tuple[dict[str, Any], str]] = {
    "itself": ({"nodes_truenodeids": [7, 0, 0]}, "returns to branch 0"),
    "outside": ({"nodes_falsenodeids": [99, 0, 0]}, "nodes_falsenodeids to be a node of its tree"),
    "twice": ({"nodes_nodeids": [7, 8, 8]}, "node 8 of tree 1 twice"),
    "mode": ({"nodes_modes": ["BRANCH_LEQ", "LEAF", "OTHER"]}, "got 'OTHER'"),
    "length": ({"nodes_values": [0.0]}, "expected 3 entries of nodes_values, got 1"),
    "nan": ({"nodes_values": [np.nan, 0.0, 0.0]}, "NaN in branch 0"),
    "leaf": ({"target_nodeids": [8, 77]}, "target_nodeids to be a node of its tree"),
}


@pytest.mark.parametrize("case", CLASSIC_BAD)
def test_what_is_no_tree_of_the_older_ops(case: str) -> None:
    """Each contradiction is refused with what was expected and got."""
    changes, text = CLASSIC_BAD[case]
    attributes = classic_trees(1, 1, "target", 1, 0) | changes
    node = ml_node("TreeEnsembleRegressor", "x", "y", n_targets=1, **attributes)
    with pytest.raises(IngotError) as caught:
        translate(ml_model([node], {"x": rows()}, "y"), MemoryStore())
    assert text in str(caught.value)
    assert "node 'TreeEnsembleRegressor'" in str(caught.value) or "node" in caught.value.where


@pytest.mark.broad
@pytest.mark.parametrize("shape", ["chain", "bushy"])
def test_a_million_nodes(shape: str) -> None:
    """Tables of a tree of a million nodes are made of arrays, however deep it is."""
    count = 500_000
    branch = np.arange(count)
    if shape == "chain":
        first, second = branch + 1, count + branch
        first[-1] = 2 * count
    else:
        first, second = 2 * branch + 1, 2 * branch + 2
    ids = np.arange(2 * count + 1)
    zeros = np.zeros(count + 1, np.int64)
    attributes: dict[str, npt.NDArray[Any]] = {
        "nodes_treeids": zeros.repeat(2)[: len(ids)],
        "nodes_nodeids": ids,
        "nodes_featureids": np.zeros_like(ids),
        "nodes_values": np.zeros(len(ids), np.float32),
        "nodes_truenodeids": np.append(first, zeros),
        "nodes_falsenodeids": np.append(second, zeros),
    }
    node = ml_node("TreeEnsembleRegressor", "x", "y", n_targets=1)
    for name, values in attributes.items():
        entry = node.attribute.add(name=name, type=6 if name == "nodes_values" else 7)
        (entry.floats if name == "nodes_values" else entry.ints).extend(values.tolist())
    modes = node.attribute.add(name="nodes_modes", type=8)
    modes.strings.extend([b"BRANCH_LEQ"] * count + [b"LEAF"] * (count + 1))
    tables = tree_tables(node, 0.0, has_wide=False)
    assert tables.nodes is not None
    assert tables.nodes.shape == (2 * count + 2, 4)  # a leaf more, which adds nothing
    assert tables.depth == (count if shape == "chain" else 19)


def test_labels_that_are_strings() -> None:
    """They are the strings of the places that integer labels would be."""
    attributes = classic_trees(2, 2, "class", 2, 4)

    def classifier(**labels: Any) -> ModelProto:
        node = ml_node("TreeEnsembleClassifier", "x", "label scores", **labels, **attributes)
        return ml_model([node], {"x": rows()}, "label scores")

    found = reference(classifier(classlabels_int64s=[0, 1]), {"x": rows()})
    texts = np.array(["a", "b"], object)[found["label"]]
    model = classifier(classlabels_strings=["a", "b"])
    assert run_model(model, [rows()], [texts, found["scores"]]) == AGREES


def test_zip_map_is_an_array(tmp_path: Path) -> None:
    """What would be maps from labels to scores is the array of scores."""
    attributes = classic_trees(2, 2, "class", 2, 4)
    nodes = [
        ml_node(
            "TreeEnsembleClassifier", "x", "label scores", classlabels_int64s=[5, 6], **attributes
        ),
        ml_node("ZipMap", "scores", "maps", classlabels_int64s=[5, 6]),
    ]
    ingot.compile(ml_model(nodes, {"x": rows()}, "scores maps")).save(tmp_path / "m.ingot")
    outputs = ingot_runtime.load(tmp_path / "m.ingot").run({"x": rows()})
    np.testing.assert_array_equal(outputs["maps"], outputs["scores"])
