"""Inputs that a model cannot mean: sizes that do not fit each other, indices and axes out of range.
Each is refused by the call, in the user's names, natively and stepped, and nothing outside of a
tensor is read; what fits gives what ONNX's reference gives."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import Feed, make_model, reference, tensor
from tests.harness.lowering_harness import assert_close

import ingot
import ingot_runtime
from ingot_compiler.ir.errors import ModelError

ROOT = Path(__file__).parents[2]
INT64, BOOL = TensorProto.INT64, TensorProto.BOOL


class Case(NamedTuple):
    """A node ``n``, a feed that it takes, feeds that it refuses, and what the message says."""

    node: NodeProto
    inputs: Sequence[ValueInfoProto]
    good: Feed
    refused: Sequence[tuple[Feed, str]]
    outputs: int = 1
    constants: dict[str, Array] | None = None


def node(op: str, operands: str, **attributes: Any) -> NodeProto:
    """The node under test."""
    names = ["" if name == "-" else name for name in operands.split()]
    return helper.make_node(op, names, ["y0", "y1"][: 2 if op == "TopK" else 1], "n", **attributes)


def floats(*shape: int) -> Array:
    """Different numbers."""
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def ints(*values: Any) -> Array:
    """An i64 vector, or matrix of rows."""
    return np.array(values, np.int64)


def number(value: int) -> Array:
    """An i64 of rank 0."""
    return np.array(value, np.int64)


X, MATRIX = tensor("x", ["a", "b"]), tensor("i", ["c", "d"], INT64)
VECTOR = tensor("i", ["k"], INT64)


def vector_of(count: int) -> ValueInfoProto:
    """An i64 vector of a fixed size, as a tensor that fixes a rank needs."""
    return tensor("i", [count], INT64)


SIZES = {
    "GatherElements": Case(
        node("GatherElements", "x i", axis=1),
        [X, MATRIX],
        {"x": floats(2, 4), "i": ints([0, 3, -1], [1, -4, 2])},
        [
            (
                {"x": floats(2, 4), "i": np.zeros((500, 4), np.int64)},
                "size of the indices at axis 0: expected at most a",
            ),
            ({"x": floats(2, 0), "i": np.zeros((2, 4), np.int64)}, "empty axis"),
        ],
    ),
    "Gather": Case(
        node("Gather", "x i"),
        [tensor("x", ["a", "b"]), VECTOR],
        {"x": floats(3, 4), "i": ints(0, -1)},
        [({"x": floats(0, 4000), "i": ints(0, 0, 0)}, "empty axis")],
    ),
    "GatherND": Case(
        node("GatherND", "x i", batch_dims=1),
        [tensor("x", ["a", "b", "f"]), tensor("i", ["c", "d", 1], INT64)],
        {"x": floats(2, 3, 4), "i": ints([[0], [2]], [[-1], [1]])},
        [
            (
                {"x": floats(2, 3, 4), "i": np.zeros((300, 1, 1), np.int64)},
                "batch sizes differ: a and c",
            )
        ],
    ),
    "ScatterElements": Case(
        node("ScatterElements", "x i u", axis=0),
        [X, MATRIX, tensor("u", ["e", "f"])],
        {"x": floats(3, 4), "i": ints([2, 0]), "u": floats(1, 2)},
        [
            (
                {"x": floats(3, 4), "i": np.zeros((2, 4), np.int64), "u": floats(1, 4)},
                "sizes of indices and updates",
            ),
            (
                {"x": floats(3, 4), "i": np.zeros((1, 600), np.int64), "u": floats(1, 600)},
                "at axis 1: expected at most b",
            ),
        ],
    ),
    "ScatterND": Case(
        node("ScatterND", "x i u"),
        [X, tensor("i", ["c", 1], INT64), tensor("u", ["e", "f"])],
        {"x": floats(3, 4), "i": ints([2], [0]), "u": floats(2, 4)},
        [
            (
                {"x": floats(3, 4), "i": ints([2], [0]), "u": floats(2, 3)},
                "expected equal sizes, got f and b",
            )
        ],
    ),
    "TopK": Case(
        node("TopK", "x i"),
        [X, vector_of(1)],
        {"x": floats(2, 3), "i": ints(2)},
        [({"x": floats(2, 3), "i": ints(400)}, "expected K in [0, b]")],
        2,
    ),
    "Resize": Case(
        node("Resize", "x - - i", mode="linear"),
        [X, vector_of(2)],
        {"x": floats(2, 3), "i": ints(4, 6)},
        [({"x": floats(2, 0), "i": ints(4, 6)}, "empty axis")],
    ),
    "Pad": Case(
        node("Pad", "x p", mode="edge"),
        [X],
        {"x": floats(2, 3)},
        [({"x": floats(0, 3)}, "empty axis")],
        1,
        {"p": ints(1, 0, 1, 0)},
    ),
    "OneHot": Case(
        node("OneHot", "i d v"),
        [VECTOR, tensor("v", ["e"])],
        {"i": ints(0, 2, 9, -1), "v": floats(2)},
        [({"i": ints(0, 2), "v": floats(1)}, "a slice leaves its axis of size e")],
        1,
        {"d": number(3)},
    ),
    "Concat": Case(
        node("Concat", "x w", axis=1),
        [tensor("x", ["a", "b", "f"]), tensor("w", ["c", "d", "e"])],
        {"x": floats(2, 3, 4), "w": floats(2, 1, 4)},
        [({"x": floats(2, 3, 4), "w": floats(4, 1, 2)}, "expected equal sizes")],
    ),
    "Conv": Case(
        node("Conv", "x w"),
        [tensor("x", ["a", "b", "h"]), tensor("w", ["o", "c", 1])],
        {"x": floats(2, 3, 4), "w": floats(2, 3, 1)},
        [
            (
                {"x": floats(2, 3, 4), "w": floats(2, 300, 1)},
                "numbers of input channels differ: b and c",
            )
        ],
    ),
    "GridSample": Case(
        node("GridSample", "x w"),
        [tensor("x", ["a", 1, 4, 4]), tensor("w", ["c", 2, 2, 2])],
        {"x": floats(2, 1, 4, 4), "w": floats(2, 2, 2, 2) / 16 - 1},
        [
            (
                {"x": floats(2, 1, 4, 4), "w": np.zeros((99, 2, 2, 2), np.float32)},
                "batch sizes differ: a and c",
            )
        ],
    ),
    "LSTM": Case(
        node("LSTM", "x w r - - h", hidden_size=2),
        [tensor("x", [3, "a", 2]), tensor("h", [1, "c", 2])],
        {"x": floats(3, 2, 2), "h": floats(1, 2, 2)},
        [({"x": floats(3, 2, 2), "h": floats(1, 1, 2)}, "sizes of h differ: c and a")],
        1,
        {"w": floats(1, 8, 2) / 16, "r": floats(1, 8, 2) / 16},
    ),
    "STFT": Case(
        node("STFT", "x i - l"),
        [tensor("x", [1, "a", 1]), tensor("i", [], INT64)],
        {"x": floats(1, 16, 1), "i": number(4)},
        [({"x": floats(1, 16, 1), "i": number(0)}, "expected a frame_step above 0")],
        1,
        {"l": number(8)},
    ),
}
INDICES = {
    "Gather": Case(
        node("Gather", "x i", axis=1),
        [X, VECTOR],
        {"x": floats(2, 3), "i": ints(-3, 2)},
        [
            ({"x": floats(2, 3), "i": ints(0, wrong)}, "expected every index in [-b, b)")
            for wrong in (3, -4, 1 << 40)
        ],
    ),
    "GatherElements": Case(
        node("GatherElements", "x i"),
        [X, MATRIX],
        {"x": floats(3, 4), "i": ints([0, -3, 2, 1])},
        [({"x": floats(3, 4), "i": ints([0, 0, 0, 3])}, "expected every index in [-a, a)")],
    ),
    "GatherND": Case(
        node("GatherND", "x i"),
        [tensor("x", [3, 4]), tensor("i", ["c", 2], INT64)],
        {"x": floats(3, 4), "i": ints([0, 3], [-3, -4])},
        [
            (
                {"x": floats(3, 4), "i": ints([0, 3], [3, 0])},
                "expected every index in [-3, 3) x [-4, 4)",
            ),
            ({"x": floats(3, 4), "i": ints([2, -5])}, "expected every index in [-3, 3) x [-4, 4)"),
        ],
    ),
    "ScatterElements": Case(
        node("ScatterElements", "x i u"),
        [tensor("x", [3, 2]), tensor("i", [1, 2], INT64), tensor("u", [1, 2])],
        {"x": floats(3, 2), "i": ints([-1, 0]), "u": floats(1, 2)},
        [
            (
                {"x": floats(3, 2), "i": ints([0, 3]), "u": floats(1, 2)},
                "expected every index in [-3, 3)",
            )
        ],
    ),
    "ScatterND": Case(
        node("ScatterND", "x i u", reduction="add"),
        [tensor("x", [3, 2]), tensor("i", ["c", 1], INT64), tensor("u", ["c", 2])],
        {"x": floats(3, 2), "i": ints([-1], [0]), "u": floats(2, 2)},
        [
            (
                {"x": floats(3, 2), "i": ints([1], [3]), "u": floats(2, 2)},
                "expected every index in [-3, 3)",
            )
        ],
    ),
    "Compress": Case(
        node("Compress", "x m"),
        [tensor("x", ["a"]), tensor("m", ["k"], BOOL)],
        {"x": floats(4), "m": np.array([True, False, True])},
        [({"x": floats(2), "m": np.array([True, False, True])}, "expected every index in [-a, a)")],
    ),
    "MaxUnpool": Case(
        node("MaxUnpool", "x i", kernel_shape=[2], strides=[2]),
        [tensor("x", [1, 1, 2]), tensor("i", [1, 1, 2], INT64)],
        {"x": floats(1, 1, 2), "i": ints([[1, 2]])},
        [({"x": floats(1, 1, 2), "i": ints([[1, 4]])}, "expected every index in [-4, 4)")],
    ),
    "RoiAlign": Case(
        node("RoiAlign", "x w i", output_height=1, output_width=1, sampling_ratio=1),
        [tensor("x", ["a", 1, 4, 4]), tensor("w", ["k", 4]), VECTOR],
        {"x": floats(1, 1, 4, 4), "w": floats(1, 4) / 4, "i": ints(0)},
        [
            (
                {"x": floats(1, 1, 4, 4), "w": floats(1, 4), "i": ints(1)},
                "expected every index in [-a, a)",
            )
        ],
    ),
    "ReverseSequence": Case(
        node("ReverseSequence", "x i", batch_axis=0, time_axis=1),
        [X, VECTOR],
        {"x": floats(2, 3), "i": ints(3, 1)},
        [({"x": floats(2, 3), "i": ints(3, 4)}, "expected every length in [0, b]")],
    ),
}
INDICES["GRU"] = Case(
    node("GRU", "x w r - i", hidden_size=2),
    [tensor("x", ["t", 2, 2]), tensor("i", [2], TensorProto.INT32)],
    {"x": floats(3, 2, 2), "i": np.full(2, 3, np.int32)},
    [({"x": floats(3, 2, 2), "i": np.array([3, 4], np.int32)}, "expected every length in [0, t]")],
    1,
    {"w": floats(1, 6, 2) / 16, "r": floats(1, 6, 2) / 16},
)
STEPS_AND_AXES = {
    "Slice steps": Case(
        node("Slice", "x s e - i"),
        [tensor("x", [3, 4]), vector_of(2)],
        {"x": floats(3, 4), "i": ints(1, 2)},
        [({"x": floats(3, 4), "i": ints(1, 0)}, "expected a step other than 0")],
        1,
        {"s": ints(0, 0), "e": ints(9, 9)},
    ),
    "Slice axes": Case(
        node("Slice", "x s s i"),
        [tensor("x", [3, 4]), vector_of(2)],
        {"x": floats(3, 4), "i": ints(1, -2)},
        [
            ({"x": floats(3, 4), "i": ints(0, 2)}, "expected every axis in [-2, 2)"),
            ({"x": floats(3, 4), "i": ints(1, -1)}, "expected every axis at most once"),
        ],
        1,
        {"s": ints(0, 0)},
    ),
    "Range": Case(
        node("Range", "s l i"),
        [tensor("l", [], INT64), tensor("i", [], INT64)],
        {"l": number(9), "i": number(2)},
        [({"l": number(9), "i": number(0)}, "expected a delta other than 0")],
        1,
        {"s": number(0)},
    ),
    "Range of floats": Case(
        node("Range", "s l i"),
        [tensor("l", []), tensor("i", [])],
        {"l": np.float32(9) + np.zeros((), np.float32), "i": np.full((), 2.5, np.float32)},
        [
            (
                {"l": np.zeros((), np.float32), "i": np.zeros((), np.float32)},
                "expected a delta other than 0",
            )
        ],
        1,
        {"s": np.zeros((), np.float32)},
    ),
    "CumSum": Case(
        node("CumSum", "x i"),
        [X, tensor("i", [], INT64)],
        {"x": floats(3, 4), "i": number(-2)},
        [
            ({"x": floats(3, 4), "i": number(wrong)}, "expected every axis in [-2, 2)")
            for wrong in (2, -3)
        ],
    ),
    "CumSum of a vector": Case(
        node("CumSum", "x i"),
        [tensor("x", ["a"]), tensor("i", [], INT64)],
        {"x": floats(3), "i": number(-1)},
        [({"x": floats(3), "i": number(1)}, "expected every axis in [-1, 1)")],
    ),
    "DFT": Case(
        node("DFT", "x - i"),
        [tensor("x", [3, 4, 1]), tensor("i", [], INT64)],
        {"x": floats(3, 4, 1), "i": number(1)},
        [
            ({"x": floats(3, 4, 1), "i": number(3)}, "expected every axis in [-3, 3)"),
            ({"x": floats(3, 4, 1), "i": number(2)}, "expected an axis below 2"),
        ],
    ),
    "Squeeze": Case(
        node("Squeeze", "x i"),
        [tensor("x", [1, 3, 1]), vector_of(1)],
        {"x": floats(1, 3, 1), "i": ints(-1)},
        [({"x": floats(1, 3, 1), "i": ints(3)}, "expected every axis in [-3, 3)")],
    ),
    "Unsqueeze": Case(
        node("Unsqueeze", "x i"),
        [X, vector_of(1)],
        {"x": floats(3, 4), "i": ints(-1)},
        [({"x": floats(3, 4), "i": ints(3)}, "expected every axis in [-3, 3)")],
    ),
    "ReduceSum": Case(
        node("ReduceSum", "x i"),
        [X, vector_of(1)],
        {"x": floats(3, 4), "i": ints(-1)},
        [({"x": floats(3, 4), "i": ints(-3)}, "expected every axis in [-2, 2)")],
    ),
    "Pad": Case(
        node("Pad", "x p - i"),
        [X, vector_of(1)],
        {"x": floats(3, 4), "i": ints(1)},
        [({"x": floats(3, 4), "i": ints(2)}, "expected every axis in [-2, 2)")],
        1,
        {"p": ints(1, 2)},
    ),
}
CASES = {
    **{f"sizes of {name}": case for name, case in SIZES.items()},
    **{f"indices of {name}": case for name, case in INDICES.items()},
    **STEPS_AND_AXES,
}


def model_of(case: Case) -> ModelProto:
    """The node alone."""
    outputs = [
        helper.make_empty_tensor_value_info(name) for name in case.node.output[: case.outputs]
    ]
    return make_model([case.node], case.inputs, outputs, case.constants)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sweep(60)
def test_refused_by_name_and_the_session_goes_on(name: str, tmp_path: Path) -> None:
    """What does not fit raises ``InputError`` with the node's name; the call after it is right."""
    case = CASES[name]
    model, path = model_of(case), tmp_path / "m.ingot"
    ingot.compile(model).save(path)
    expected = reference(model, case.good)
    for executor in ("aot", "vm"):
        session = ingot_runtime.load(path, threads=2, executor=executor)
        for feed, what in case.refused:
            with pytest.raises(ingot_runtime.InputError) as caught:
                session.run(dict(feed))
            assert what in caught.value.why
            assert f"node 'n' ({case.node.op_type})" in caught.value.why
        for got, wanted in zip(
            session.run(dict(case.good)).values(), expected.values(), strict=True
        ):
            assert_close(wanted, got, 1e-4, 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_read_outside_of_the_inputs(name: str, tmp_path: Path) -> None:
    """Random sizes and indices, most of them impossible, with inputs that end where no memory is:
    an answer or a refusal."""
    case, path = CASES[name], tmp_path / "m.ingot"
    ingot.compile(model_of(case)).save(path)
    command = [sys.executable, "-m", "tests.hostile.fenced", str(path), "1", "400"]
    paths = {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **paths}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answered, refused = map(int, done.stdout.split())
    assert answered > 0
    assert refused > 0


def test_indices_may_be_fewer_beside_the_axis(tmp_path: Path) -> None:
    """ONNX GatherElements-13: only the axis itself may be longer than x's."""
    model = make_model([node("GatherElements", "x i", axis=1)], [X, MATRIX], [tensor("y0", None)])
    ingot.compile(model).save(tmp_path / "m.ingot")
    feed = {"x": floats(3, 2), "i": ints([0, -1, 1, 0, 0])}
    (got,) = ingot_runtime.load(tmp_path / "m.ingot").run(feed).values()
    assert np.array_equal(got, [[1, 2, 2, 1, 1]])


def test_scan_inputs_of_different_lengths(tmp_path: Path) -> None:
    """A scan goes over the first one; another that is shorter is refused when its end is reached,
    before it is read."""
    add = helper.make_node("Add", ["p", "q"], ["r"])
    body = helper.make_graph(
        [add], "body", [tensor("p", [4]), tensor("q", [4])], [tensor("r", [4])]
    )
    scan = helper.make_node("Scan", ["x", "w"], ["y"], "n", body=body, num_scan_inputs=2)
    model = make_model([scan], [tensor("x", ["a", 4]), tensor("w", ["c", 4])], [tensor("y", None)])
    ingot.compile(model).save(tmp_path / "m.ingot")
    session = ingot_runtime.load(tmp_path / "m.ingot")
    (got,) = session.run({"x": floats(3, 4), "w": floats(3, 4)}).values()
    assert np.array_equal(got, 2 * floats(3, 4))
    with pytest.raises(
        ingot_runtime.InputError, match=r"expected scan inputs of a elements, got c .node 'n'"
    ):
        session.run({"x": floats(3000, 4), "w": floats(3, 4)})


@pytest.mark.parametrize("taken", [True, False])
def test_only_the_branch_that_runs_is_checked(taken: bool, tmp_path: Path) -> None:
    """An index that is out of range in the other branch does not matter."""
    gather = helper.make_node("Gather", ["x", "i"], ["p"], "n")
    branches = [
        helper.make_graph([gather], "then", [], [tensor("p", None)]),
        helper.make_graph(
            [helper.make_node("Identity", ["x"], ["q"])], "else", [], [tensor("q", None)]
        ),
    ]
    choice = helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
    model = make_model([choice], [tensor("c", [], BOOL), X, VECTOR], [tensor("y", None)])
    ingot.compile(model).save(tmp_path / "m.ingot")
    session = ingot_runtime.load(tmp_path / "m.ingot")
    feed = {"c": np.array(taken), "x": floats(3, 4), "i": ints(0, 3)}
    if taken:
        with pytest.raises(
            ingot_runtime.InputError, match=r"every index in .-a, a.*node 'n' .Gather"
        ):
            session.run(feed)
    else:
        assert np.array_equal(next(iter(session.run(feed).values())), floats(3, 4))


def test_several_requirements_of_one_kernel(tmp_path: Path) -> None:
    """Each node is named by its own message, wherever in the tensor and by whichever thread it was
    found."""
    gathers = [
        helper.make_node("GatherElements", ["x", i], [y], y)
        for i, y in (("i", "first"), ("j", "second"))
    ]
    total = helper.make_node("Add", ["first", "second"], ["y"])
    inputs = [X, MATRIX, tensor("j", ["c", "d"], INT64)]
    model = make_model([*gathers, total], inputs, [tensor("y", None)])
    ingot.compile(model).save(tmp_path / "m.ingot")
    session = ingot_runtime.load(tmp_path / "m.ingot", threads=2)
    x, zeros = floats(700, 300), np.zeros((700, 300), np.int64)
    assert np.array_equal(
        next(iter(session.run({"x": x, "i": zeros, "j": zeros}).values())), 2 * x[:1].repeat(700, 0)
    )
    for place in ((0, 0), (350, 7), (699, 299)):
        wrong = zeros.copy()
        wrong[place] = 700
        for name, feed in (
            ("first", {"i": wrong, "j": zeros}),
            ("second", {"i": zeros, "j": wrong}),
        ):
            with pytest.raises(ingot_runtime.InputError, match=f"node '{name}'"):
                session.run({"x": x, **feed})


def test_indices_are_integers() -> None:
    """A float is no index: refused by the type, not rounded."""
    model = make_model([node("Gather", "x i")], [X, tensor("i", ["k"])], [tensor("y0", None)])
    with pytest.raises(ModelError, match="an element type out of"):
        ingot.compile(model)


def test_a_long_message_keeps_its_names(tmp_path: Path) -> None:
    """What is longer than the place for it is cut off by `main`, and shown whole."""
    gathers = [
        helper.make_node("Gather", ["x", "i"], [f"y{at}"], f"picks_number_{at}") for at in range(90)
    ]
    total = helper.make_node("Sum", [each.output[0] for each in gathers], ["y"])
    model = make_model([*gathers, total], [X, VECTOR], [tensor("y", None)])
    ingot.compile(model).save(tmp_path / "m.ingot")
    with pytest.raises(ingot_runtime.InputError) as caught:
        ingot_runtime.load(tmp_path / "m.ingot").run({"x": floats(2, 3), "i": ints(2)})
    assert "every index in [-a, a)" in caught.value.why
    assert "'picks_number_0' (Gather)" in caught.value.why
    assert "'picks_number_89' (Gather)" in caught.value.why


@pytest.mark.parametrize("count", [3, 5000])
@pytest.mark.parametrize("through", ["", "Reshape", "Cast"])
def test_constant_indices_are_refused_at_compile_time(count: int, through: str) -> None:
    """Small or large, also behind a reshape or a cast: the node, the index and the size are
    named."""
    indices = np.arange(count, dtype=np.int32 if through == "Cast" else np.int64) % 7
    nodes: list[NodeProto] = []
    if through == "Cast":
        nodes.append(helper.make_node("Cast", ["w"], ["i"], to=INT64))
    elif through:
        nodes.append(helper.make_node("Reshape", ["w", "s"], ["i"]))
    nodes.append(helper.make_node("Gather", ["x", "i"], ["y"], "n", axis=1))
    constants: dict[str, Array] = {"w" if through else "i": indices}
    if through == "Reshape":
        constants["s"] = ints(1, -1)
    for at, number_wrong in ((0, 7), (count - 1, -8)):
        indices[:] = np.arange(count) % 7
        indices[at] = number_wrong
        model = make_model(nodes, [tensor("x", [2, 7])], [tensor("y", None)], constants)
        with pytest.raises(ModelError) as caught:
            ingot.compile(model)
        assert caught.value.where == "node 'n' (Gather)"
        assert caught.value.why.endswith(f"expected every index in [-7, 7), got {number_wrong}")


def test_constant_indices_into_an_axis_of_unknown_size(tmp_path: Path) -> None:
    """What the size must be is checked by the call."""
    model = make_model(
        [node("Gather", "x i", axis=1)], [X], [tensor("y0", None)], {"i": ints(0, 3, -2)}
    )
    ingot.compile(model).save(tmp_path / "m.ingot")
    session = ingot_runtime.load(tmp_path / "m.ingot")
    assert np.array_equal(next(iter(session.run({"x": floats(1, 4)}).values())), [[1, 4, 3]])
    with pytest.raises(ingot_runtime.InputError, match=r"every index in .-b, b., got 3 .node 'n'"):
        session.run({"x": floats(2, 3)})
