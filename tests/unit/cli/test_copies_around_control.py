"""What nodes inside of control flow read on a device is copied there once: read from the traces of
runs, which give what the host alone gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.lowering_harness import assert_close
from tests.unit.artifacts.test_copies_in_traces import copies_of_calls
from tests.unit.placement.test_marks_inside import called, graph

import ingot
import ingot_runtime
from ingot_build_rules.tools.cli.main import main

X = np.abs(np.random.default_rng(7).standard_normal((5, 8)).astype(np.float32))


def means(name: str, op: str) -> list[NodeProto]:
    """``NAME``: means of an op of ``h``; both nodes read on the device that has them."""
    return [
        called(f"/{name}/op", node(op, "h", f"{name}0")),
        called(f"/{name}/add", node("Mul", f"{name}0 h", f"{name}1")),
        called(f"/{name}/mean", node("ReduceMean", f"{name}1 axis", name, keepdims=0)),
    ]


def branch(name: str, op: str) -> GraphProto:
    """That in a branch."""
    return graph(name, means(name, op), [], [tensor(name, [8])])


def choice(result: str) -> list[NodeProto]:
    """An If that the data decide."""
    branches = {"then_branch": branch("then", "Sqrt"), "else_branch": branch("else", "Tanh")}
    return [called("/if", node("If", "c", result, **branches))]


def loop(nodes: Sequence[NodeProto], added: str, result: str = "r") -> list[NodeProto]:
    """A Loop that adds what ``nodes`` make to what it carries, three times."""
    inside = graph(
        "body",
        [*nodes, called("/sum", node("Add", f"v {added}", "n")), called("/go", node("Identity", "g", "go"))],
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("g", TensorProto.BOOL, []), tensor("v", [8])],
        [helper.make_tensor_value_info("go", TensorProto.BOOL, []), tensor("n", [8])],
    )  # fmt: skip
    return [called("/loop", node("Loop", "count - zeros", result, body=inside))]


def network(nodes: Sequence[NodeProto]) -> ModelProto:
    """``h`` of the host's, ``c``: whether its input has a positive sum; ``nodes``, which make ``r``
    of them."""
    before = [
        called("/h", node("Exp", "x", "h")),
        called("/s", node("ReduceSum", "x", "s", keepdims=0)),
        called("/c", node("Greater", "s zero", "c")),
    ]
    weights: dict[str, Array] = {
        "zero": np.array(0, np.float32),
        "axis": np.array([0]),
        "count": np.array(3),
        "zeros": np.zeros(8, np.float32),
    }
    return make_model([*before, *nodes], [tensor("x", [5, 8])], [tensor("r", [8])], weights)


AFTER = [*means("after", "Neg"), called("/r", node("Add", "if after", "r"))]
CASES: dict[str, tuple[list[NodeProto], Mapping[str, str], tuple[int, int]]] = {
    "one branch": (choice("r"), {"/then/*": "acc"}, (1, 0)),
    "branches": (choice("r"), {"/then/*": "acc", "/else/*": "acc"}, (1, 1)),
    "and behind": ([*choice("if"), *AFTER], {"/then/*": "acc", "/after/*": "acc"}, (1, 1)),
    "before": ([*AFTER[:-1], *choice("if"), AFTER[-1]], {"/*e*/*": "acc"}, (1, 1)),
    "body": (loop(means("mean", "Sqrt"), "mean"), {"/mean/*": "acc"}, (1, 1)),
    "in a body": (loop(choice("if"), "if"), {"/then/*": "acc", "/else/*": "acc"}, (1, 1)),
    "a body and behind": (
        [*loop(means("mean", "Sqrt"), "mean", "if"), *AFTER],
        {"/mean/*": "acc", "/after/*": "acc"},
        (1, 1),
    ),
}
"""Nodes, their places, and how often ``h`` is copied where ``c`` holds, and where not."""


@pytest.mark.parametrize("kind", ["cpu:1", pytest.param("opencl", marks=pytest.mark.opencl)])
@pytest.mark.parametrize("case", CASES)
def test_each_value_is_copied_once(
    case: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For two branches once, for all iterations once, and not again where it is there already."""
    nodes, place, expected = CASES[case]
    monkeypatch.chdir(tmp_path)
    alone = ingot.compile(network(nodes)).to_bytes()
    made = ingot.compile(network(nodes), targets=["x86-64-v2"], devices={"acc": kind}, place=place)
    made.save("m.ingot")
    for sign, count in zip((1, -1), expected, strict=True):
        feed = {"x": sign * X}
        np.savez("x.npz", x=feed["x"])
        assert main(["run", "m.ingot", "--inputs", "x.npz", "--trace", "t.json"]) == 0
        for copies in copies_of_calls(Path("t.json")):
            of_h = [copy for copy in copies if copy["size_bytes"] == X.nbytes]
            assert [copy["destination"] for copy in of_h] == ["acc"] * count
        with ingot_runtime.load(alone) as session:
            wanted = session.run(feed)
        for executor in ("aot", "vm"):
            with ingot_runtime.load("m.ingot", executor=executor) as session:
                assert_close(wanted["r"], session.run(feed)["r"], 1e-5)
