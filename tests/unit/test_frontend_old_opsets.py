"""Every opset is read; models of opsets 1 to 6 go through the onnx package's converter."""

import math
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.defs import onnx_opset_version
from tests.unit.frontend_harness import run_model

import ingot
import ingot_runtime
from ingot_compiler.ir.errors import UnsupportedError


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


def test_what_cannot_be_converted_is_listed() -> None:
    """What the converter does not know (an inner axis) leaves the model as it was: the import says
    which op is too old."""
    with pytest.raises(UnsupportedError, match="oldest that this build reads"):
        ingot.compile(old_add(6, 3, broadcast=1, axis=1)).to_bytes()


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
