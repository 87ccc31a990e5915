"""The fusion report: what became one kernel, bytes saved, and what stopped a kernel or a pattern,
in the user's names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ingot
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_build_rules.tools.cli.main import main

F32 = TensorProto.FLOAT


def saved(tmp_path: Path, model: onnx.ModelProto) -> Path:
    """A bundle of the model for one target."""
    path = tmp_path / "m.ingot"
    ingot.compile(model, targets=["x86-64-v3"]).save(path)
    return path


def report(
    tmp_path: Path, model: onnx.ModelProto
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Launches and refusals."""
    debug = describe_bundle(saved(tmp_path, model))["debug"]
    return debug["launches"]["x86-64-v3"], debug["refusals"]


def model_of(
    nodes: list[onnx.NodeProto], inputs: dict[str, list[Any]], outputs: dict[str, list[Any]]
) -> onnx.ModelProto:
    """A model with weights ``w`` [8, 8, 1, 1]."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, F32, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, F32, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(np.ones((8, 8, 1, 1), np.float32), "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def conv_relu(*, shared: bool) -> onnx.ModelProto:
    """Conv, Relu; the convolution's result is also negated if ``shared``."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
        helper.make_node("Relu", ["c"], ["y"], name="activation"),
        helper.make_node("Neg", ["c" if shared else "y"], ["z"], name="negated"),
    ]
    shape = [1, 8, 4, 4]
    return model_of(nodes, {"x": shape}, {"y": shape, "z": shape} if shared else {"z": shape})


def attention(*, shared: bool) -> onnx.ModelProto:
    """Softmax(q @ k) @ v; the scores are an output too if ``shared``."""
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["s"], name="scores"),
        helper.make_node("Softmax", ["s"], ["p"], name="softmax", axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"], name="mix"),
        helper.make_node("Neg", ["s" if shared else "y"], ["z"], name="spy"),
    ]
    shapes = {"q": [1, 2, 5, 8], "k": [1, 2, 8, 5], "v": [1, 2, 5, 8]}
    return model_of(nodes, shapes, {"y": [1, 2, 5, 8], "z": [1, 2, 5, 5 if shared else 8]})


def test_fused_chain_saves_its_inner_tensors(tmp_path: Path) -> None:
    """Conv, Relu and Neg are one kernel; two tensors of 512 bytes never reach memory; the result is
    returned."""
    launches, refusals = report(tmp_path, conv_relu(shared=False))
    (kernel,) = [launch for launch in launches if launch["kind"] == "conv_rows"]
    assert [name for name, _ in kernel["nodes"]] == ["conv", "activation", "negated"]
    assert kernel["saved_bytes"] == 2 * 8 * 16 * 4
    assert kernel["ends"] == "the model returns it"
    assert refusals == []


def test_shared_value_ends_its_kernel(tmp_path: Path) -> None:
    """A value with two users is stored, and the report names both."""
    launches, _ = report(tmp_path, conv_relu(shared=True))
    (kernel,) = [launch for launch in launches if launch["kind"] == "conv_rows"]
    assert (kernel["ends"], kernel["users"]) == ("the value has 2 users", ["activation", "negated"])
    assert kernel["saved_bytes"] == 0


def test_attention_saves_its_scores(tmp_path: Path) -> None:
    """Scores and probabilities of recognised attention count as saved."""
    launches, refusals = report(tmp_path, attention(shared=False))
    (kernel,) = [launch for launch in launches if launch["kind"] == "attention"]
    assert {"scores", "softmax", "mix"} <= {name for name, _ in kernel["nodes"]}
    assert kernel["saved_bytes"] >= 2 * 2 * 5 * 5 * 4
    assert refusals == []


def test_other_user_stops_attention(tmp_path: Path) -> None:
    """The report says that the scores are used elsewhere, and by whom."""
    _, (refusal,) = report(tmp_path, attention(shared=True))
    assert refusal["pattern"] == "attention"
    assert refusal["nodes"] == [["mix", "MatMul"]]
    assert refusal["reason"] == "the result of an inner matmul is used outside"
    assert ["spy", "Neg"] in refusal["others"]


def test_softmax_over_another_axis_is_no_attention(tmp_path: Path) -> None:
    """A near miss of the pattern itself has its own reason."""
    model = attention(shared=False)
    model.graph.node[1].attribute[0].i = 2
    _, (refusal,) = report(tmp_path, model)
    assert refusal["reason"] == "the softmax is not over the last axis"


def test_inspect_prints_fusion_and_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """People read lines, scripts JSON; the workspace stands beside its lower bound; shapes have no
    quotes."""
    model = conv_relu(shared=True)
    for tensor in (*model.graph.input, *model.graph.output):
        tensor.type.tensor_type.shape.dim[0].dim_param = "batch"
    path = str(saved(tmp_path, model))
    assert main(["inspect", path, "--fusion"]) == 0
    text = capsys.readouterr().out
    assert "nodes conv (Conv)" in text
    assert "stop reason  the value has 2 users: activation, negated" in text
    assert main(["inspect", path]) == 0
    text = capsys.readouterr().out
    assert "x: f32[batch, 8, 4, 4]" in text
    assert "ratio 1.000, with open dimensions of 64" in text
    assert main(["inspect", path, "--json"]) == 0
    memory = json.loads(capsys.readouterr().out)["debug"]["memory"]["x86-64-v3"]
    assert memory["planned_bytes"] >= memory["lower_bound_bytes"] > 0


def test_inspect_tells_fusion_of_each_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each version has its launches, numbered as in the list of launches, and its own sum."""
    nodes = [helper.make_node("Softmax", ["x"], ["s"]), helper.make_node("Neg", ["s"], ["y"])]
    model = model_of(nodes, {"x": ["batch", 8]}, {"y": ["batch", 8]})
    path = str(tmp_path / "m.ingot")
    ingot.compile(model, targets=["x86-64-v3"], shapes={"x": "3x8"}).save(path)
    assert main(["inspect", path, "--fusion"]) == 0
    shown = capsys.readouterr().out.splitlines()
    titles = [line for line in shown if line.startswith("fusion for")]
    assert titles == [
        "fusion for x86-64-v3 for any other sizes: 1 launch, 2.0 kB never reach memory",
        "fusion for x86-64-v3 for batch = 3: 1 launch, 96 B never reach memory",
    ]
    assert [line.split()[0] for line in shown if line[:5].strip().isdecimal()] == ["0", "1"]


def test_windows_that_few_elements_do_not_fill_save_nothing(tmp_path: Path) -> None:
    """Where 64, the size that stands for an open one, is less than a window, no launch saves a
    negative number of bytes."""
    nodes = [
        helper.make_node("Constant", [], ["length"], value_int=400),
        helper.make_node("Constant", [], ["step"], value_int=160),
        helper.make_node("STFT", ["x", "step", "", "length"], ["y"], name="frames"),
    ]
    model = model_of(nodes, {"x": [1, "n", 1]}, {"y": [1, None, 201, 2]})
    launches, _ = report(tmp_path, model)
    assert [launch["saved_bytes"] for launch in launches if launch["saved_bytes"] < 0] == []
