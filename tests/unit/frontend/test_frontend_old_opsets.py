"""Every opset is read; nodes of opsets 1 to 6 are brought into the form of opset 7."""

import math
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.defs import onnx_opset_version
from tests.harness.frontend_harness import run_model

import ingot
import ingot_runtime


def old_add(opset: int, width: int, **attributes: int) -> ModelProto:
    """``y = x + w`` with x f32[2, 3, 4] and w f32[width]; ``broadcast`` and ``axis`` as before
    opset 7."""
    node = helper.make_node("Add", ["x", "w"], ["y"])
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    graph = helper.make_graph(
        [node],
        "old",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3, 4])],
        [numpy_helper.from_array(np.arange(width, dtype=np.float32), "w")],
    )
    graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [width]))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)


@pytest.mark.parametrize("opset", [1, 6])
def test_old_broadcast(opset: int) -> None:
    """``Add`` before opset 7 broadcasts when an attribute says so."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    session = ingot_runtime.load(ingot.compile(old_add(opset, 4, broadcast=1)).to_bytes())
    np.testing.assert_array_equal(session.run({"x": x})["y"], x + np.arange(4, dtype=np.float32))


@pytest.mark.parametrize("opset", range(1, onnx_opset_version() + 1))
def test_every_opset(opset: int) -> None:
    """A layer with ``Relu`` gives the same numbers, whichever opset the model states; so does a
    pair of ops whose axes were attributes at first."""
    x, w, b = (
        (np.arange(math.prod(shape), dtype=np.float32) - 3).reshape(shape)
        for shape in ((2, 3), (3, 4), (4,))
    )
    broadcast: dict[str, Any] = {"broadcast": 1} if opset < 7 else {}
    layer = [
        helper.make_node("Gemm", ["x", "w", "b"], ["g"], **broadcast),
        helper.make_node("Relu", ["g"], ["y"]),
    ]
    axes: dict[str, Any] = {"axes": [1]} if opset < 13 else {}
    given = ["axes"] if opset >= 13 else []
    pair = [
        helper.make_node("Unsqueeze", ["x", *given], ["u"], **axes),
        helper.make_node("ReduceSum", ["u", *given], ["y"], **axes, keepdims=0),
    ]
    constants: dict[str, Any] = {"w": w, "b": b, "axes": np.array([1], np.int64)}
    for nodes, want in ((layer, np.maximum(x @ w + b, 0)), (pair, x)):
        used = {name: value for name, value in constants.items() if name in nodes[0].input}
        graph = helper.make_graph(
            nodes,
            "one",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, list(want.shape))],
            [numpy_helper.from_array(value, name) for name, value in used.items()],
        )
        for name in used if opset < 7 else ():  # up to IR version 3, constants are inputs, too
            graph.input.append(
                helper.make_tensor_value_info(name, TensorProto.FLOAT, used[name].shape)
            )
        opsets, version = [helper.make_opsetid("", opset)], 3 if opset < 7 else 8
        model = helper.make_model(graph, opset_imports=opsets, ir_version=version)
        outcome = run_model(model, [x], [want])
        assert outcome.kind == "agrees", outcome.detail


X = np.random.RandomState(0).random_sample((2, 3, 4, 4)).astype(np.float32) + 0.1
V, W = X[0, :, 0, 0].copy(), X[0, 0].copy()
HALVES = [np.array([1, 3], np.float32)]
OLD: dict[str, tuple[str, int, dict[str, Any], list[Any], Any]] = {
    "inner axis": ("Sub", 6, {"broadcast": 1, "axis": 1}, [X, V], X - V[:, None, None]),
    "last axes": ("Pow", 1, {"broadcast": 1}, [X, W], X**W),
    "first axis": (
        "Div",
        1,
        {"broadcast": 1, "axis": 0},
        [X, X[:, 0, 0, 0].copy()],
        X / X[:, :1, :1, :1],
    ),
    "greater": ("Greater", 1, {"broadcast": 1, "axis": 1}, [X, V], V[:, None, None] < X),
    "less": ("Less", 6, {}, [X, X[::-1].copy()], X[::-1] > X),
    "and": ("And", 1, {"broadcast": 1}, [X > 0.5, W > 0.5], (X > 0.5) & (W > 0.5)),
    "equal": ("Equal", 6, {}, [np.arange(3), np.array([0, 5, 2])], np.array([True, False, True])),
    "cast": ("Cast", 5, {"to": "INT32"}, [X * 4], (X * 4).astype(np.int32)),
    "concat": ("Concat", 3, {}, [X, X], np.concatenate([X, X], 1)),
    "reshape": ("Reshape", 4, {"shape": [0, -1]}, [X], X.reshape(2, -1)),
    "pad": (
        "Pad",
        1,
        {"paddings": [0, 0, 1, 0, 0, 0, 0, 2]},
        [X],
        np.pad(X, ((0, 0), (0, 0), (1, 0), (0, 2))),
    ),
    "upsample": (
        "Upsample",
        1,
        {"height_scale": 2.0, "width_scale": 3.0},
        [X],
        X.repeat(2, 2).repeat(3, 3),
    ),
    "norm": ("GlobalLpPool", 1, {"p": 2.0}, [X], np.sqrt((X**2).sum((2, 3), keepdims=True))),
    "dropout": ("Dropout", 1, {"is_test": 0}, [X], X),
    "hint": ("Relu", 1, {"consumed_inputs": [0]}, [X - 0.5], np.maximum(X - 0.5, 0)),
}


def of_one_node(opset: int, node: Any, given: list[Any], constants: list[Any]) -> ModelProto:
    """A model of one node; the last operands are constants, which are inputs, too."""
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in zip(node.input, [*given, *constants], strict=True)
    ]
    names = list(node.input)[len(given) :]
    stored = [numpy_helper.from_array(it, name) for it, name in zip(constants, names, strict=True)]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output]
    graph = helper.make_graph([node], "old", infos, outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)


@pytest.mark.parametrize("case", sorted(OLD))
def test_old_forms(case: str) -> None:
    """What opset 7 says in another way."""
    op, opset, attributes, given, expected = OLD[case]
    node = helper.make_node(op, [f"i{number}" for number in range(len(given))], ["y"], **attributes)
    outcome = run_model(of_one_node(opset, node, given, []), given, [expected])
    assert outcome.kind == "agrees", outcome.detail


def test_operands_that_became_attributes() -> None:
    """Of Split and Tile."""
    split = helper.make_node("Split", ["x", "s"], ["y", "z"], axis=3)
    parts = [X[..., :1], X[..., 1:]]
    assert run_model(of_one_node(1, split, [X], HALVES), [X], parts).kind == "agrees"
    tile = helper.make_node("Tile", ["x", "n", "a"], ["y"])
    counts = [np.array([2], np.float32), np.array([1], np.float32)]
    tiled = np.tile(X, (1, 2, 1, 1))
    assert run_model(of_one_node(5, tile, [X], counts), [X], [tiled]).kind == "agrees"
    unknown = run_model(of_one_node(5, tile, [X, *counts], []), [X, *counts], [tiled])
    assert (unknown.kind, "run time only" in unknown.detail) == ("unsupported", True)


def test_old_recurrent_layers() -> None:
    """They said which results they have by an attribute."""
    x = X.reshape(4, 2, 12)[:, :, :3].copy()
    w, r = np.ones((1, 5, 3), np.float32) / 9, np.ones((1, 5, 5), np.float32) / 9
    node = helper.make_node("RNN", ["x", "w", "r"], ["y"], hidden_size=5, output_sequence=1)
    state, states = np.zeros((2, 5), np.float32), list[Any]()
    for step in x:
        state = np.tanh(step @ w[0].T + state @ r[0].T)
        states.append(state[None])
    expected = np.stack(states)
    assert run_model(of_one_node(6, node, [x], [w, r]), [x], [expected]).kind == "agrees"


def test_training_mode_of_an_old_node_is_refused() -> None:
    """Where the statistics of the batch are results."""
    node = helper.make_node("BatchNormalization", list("xsbmv"), list("ynopq"))
    ones = [np.ones(3, np.float32)] * 4
    outcome = run_model(of_one_node(6, node, [X], ones), [X], [X])
    assert (outcome.kind, "training mode" in outcome.detail) == ("unsupported", True)


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize("between", [False, True])
def test_old_slopes_lie_along_the_channels(opset: int, between: bool) -> None:
    """``PRelu`` before opset 7 has one slope per channel, also of a tensor whose shape is not
    declared."""
    nodes = [helper.make_node("PRelu", ["h" if between else "x", "s"], ["y"])]
    nodes[:0] = [helper.make_node("Identity", ["x"], ["h"])] if between else []
    slopes = np.array([0.5, -1, 2], np.float32)
    graph = helper.make_graph(
        nodes,
        "old",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4, 5]),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, [3]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3, 4, 5])],
        [numpy_helper.from_array(slopes, "s")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)
    x = np.random.RandomState(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    got = ingot_runtime.load(ingot.compile(model).to_bytes()).run({"x": x})["y"]
    np.testing.assert_array_equal(got, np.where(x < 0, x * slopes[:, None, None], x))
