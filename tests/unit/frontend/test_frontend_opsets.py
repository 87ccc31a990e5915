"""Old forms of ops against ``onnx.reference``, and shapes that stay symbolic or are read at run
time."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator
from tests.harness.frontend_harness import Array, run_model
from tests.hostile.model_builder import INT64, graph_of, model, value

from ingot_compiler.ir.dims import format_dim


def _x(*shape: int) -> Array:
    return np.random.RandomState(3).randn(*shape).astype(np.float32)


OLD_FORMS: list[tuple[int, NodeProto]] = [
    (11, helper.make_node("Squeeze", ["x"], ["y"], axes=[1])),
    (11, helper.make_node("Unsqueeze", ["x"], ["y"], axes=[0, -1])),
    (11, helper.make_node("ReduceSum", ["x"], ["y"], axes=[-1], keepdims=0)),
    (11, helper.make_node("ReduceMean", ["x"], ["y"])),
    (13, helper.make_node("ReduceMax", ["x"], ["y"], axes=[2])),
    (13, helper.make_node("ReduceLogSumExp", ["x"], ["y"], axes=[2, 3])),
    (9, helper.make_node("Slice", ["x"], ["y"], starts=[1, -3], ends=[9, -1], axes=[2, 3])),
    (7, helper.make_node("Clip", ["x"], ["y"], min=-0.5, max=0.5)),
    (11, helper.make_node("Split", ["x"], ["y", "z"], axis=3, split=[1, 4])),
    (8, helper.make_node("Flatten", ["x"], ["y"], axis=2)),
    (9, helper.make_node("Dropout", ["x"], ["y"], ratio=0.3)),
    (7, helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2], auto_pad="SAME_LOWER")),
    (8, helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 2], strides=[2, 2])),
    (11, helper.make_node("DepthToSpace", ["t"], ["y"], blocksize=2, mode="CRD")),
    (7, helper.make_node("GlobalAveragePool", ["x"], ["y"])),
    (9, helper.make_node("LpNormalization", ["x"], ["y"], axis=2, p=2)),
    (7, helper.make_node("Selu", ["x"], ["y"])),
    (7, helper.make_node("HardSigmoid", ["x"], ["y"])),
    (12, helper.make_node("Celu", ["x"], ["y"], alpha=1.5)),
    (13, helper.make_node("Hardmax", ["x"], ["y"], axis=2)),
]


@pytest.mark.parametrize(
    ("opset", "node"), OLD_FORMS, ids=lambda entry: getattr(entry, "op_type", str(entry))
)
def test_old_forms_agree_with_the_reference(opset: int, node: NodeProto) -> None:
    """Attributes that later became operands, and meanings that changed, follow the model's own
    opset."""
    inputs: dict[str, Any] = {"x": _x(2, 1, 4, 5), "t": _x(1, 8, 2, 3)}
    used = {name: array for name, array in inputs.items() if name in node.input}
    typed = [value(name, list(array.shape)) for name, array in used.items()]
    source = model([node], typed, [value(name, None) for name in node.output], opset=opset)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluator: Any = ReferenceEvaluator(source)
        expected: list[object] = evaluator.run(None, used)
    outcome = run_model(source, list(used.values()), expected, 1e-4, 1e-5)
    assert outcome.kind == "agrees", outcome.detail


def test_softmax_before_opset_13_sees_a_matrix() -> None:
    """All axes from ``axis`` on are one row (ONNX Softmax-11); onnx.reference has the later meaning
    only."""
    x = _x(2, 3, 4)
    rows = np.exp(x.reshape(2, 12).astype(np.float64))
    want = (rows / rows.sum(1, keepdims=True)).reshape(2, 3, 4).astype(np.float32)
    for op, expected in (("Softmax", want), ("LogSoftmax", np.log(want))):
        node = helper.make_node(op, ["x"], ["y"], axis=1)
        source = model([node], [value("x", ["n", 3, "m"])], [value("y", None)], opset=11)
        assert run_model(source, [x], [expected], 1e-5, 1e-6).kind == "agrees"


def test_negative_pads_take_elements_away() -> None:
    """Pads of an attribute, one of them below zero; onnx.reference refuses these."""
    x = _x(3, 4)
    node = helper.make_node("Pad", ["x"], ["y"], pads=[1, -1, 0, 2], value=1.5)
    want = np.pad(x[:, 1:], ((1, 0), (0, 2)), constant_values=1.5)
    source = model([node], [value("x", ["n", 4])], [value("y", None)], opset=10)
    assert run_model(source, [x], [want]).kind == "agrees"


def _shape_text(nodes: list[NodeProto], shape: list[int | str], constants: dict[str, Array]) -> str:
    graph = graph_of(model(nodes, [value("x", shape)], [value("y", None)], constants))
    return ", ".join(format_dim(dim) for dim in graph.types[graph.outputs[0]].shape)


def test_shape_chains_end_as_expressions() -> None:
    """Shape -> Gather -> Mul -> Concat -> Reshape leaves no run-time arithmetic in the type."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"], axis=0),
        helper.make_node("Gather", ["s", "one"], ["h"], axis=0),
        helper.make_node("Mul", ["n", "h"], ["p"]),
        helper.make_node("Unsqueeze", ["p", "front"], ["v"]),
        helper.make_node("Concat", ["v", "rest"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    constants = {
        "zero": np.array(0),
        "one": np.array(1),
        "front": np.array([0]),
        "rest": np.array([2, -1]),
    }
    assert _shape_text(nodes, ["n", "h", 6], constants) == "s0*s1, 2, 3"


@pytest.mark.parametrize(
    ("start", "end", "step", "size"),
    [
        (0, 2**31 - 1, 1, "s0"),
        (1, -1, 1, "max(0, s0 - 2)"),
        (-1, -(2**63), -1, "s0"),
        (0, 3, 1, "min(3, s0)"),
        (-2, 2**63 - 1, 1, "min(2, s0)"),
    ],
)
def test_slices_of_unknown_sizes(start: int, end: int, step: int, size: str) -> None:
    """Bounds are clamped and counted from the end as expressions, and each gives the reference's
    rows at any size."""
    constants = {
        name: np.array([number])
        for name, number in (("a", start), ("b", end), ("c", 0), ("d", step))
    }
    nodes = [helper.make_node("Slice", ["x", "a", "b", "c", "d"], ["y"])]
    assert _shape_text(nodes, ["n"], constants) == size
    source = model(nodes, [value("x", ["n"])], [value("y", None)], constants)
    for count in range(6):
        x = np.arange(count, dtype=np.float32)
        stop = None if end <= -(2**31) else end
        assert run_model(source, [x], [x[start:stop:step]]).kind == "agrees"


def test_sizes_that_come_with_the_data() -> None:
    """Reshape (with 0 and -1), Expand, Tile, Pad, Slice and Range take their sizes from inputs."""
    x = _x(2, 6)
    cases = [
        ("Reshape", [np.array([0, 2, -1])], x.reshape(2, 2, 3)),
        ("Expand", [np.array([3, 1, 6])], np.broadcast_to(x, (3, 2, 6))),
        ("Tile", [np.array([2, 3])], np.tile(x, (2, 3))),
        ("Pad", [np.array([1, -1, 0, 2])], np.pad(x[:, 1:], ((1, 0), (0, 2)))),
        ("Slice", [np.array([1]), np.array([-1]), np.array([1]), np.array([2])], x[:, 1:-1:2]),
        ("ReduceSum", [np.array([-1])], x.sum(1, keepdims=True)),
        ("Squeeze", [np.array([0])], x[0]),
        ("Unsqueeze", [np.array([1, -1])], x[:, None, :, None]),
    ]
    for op, operands, expected in cases:
        data = x[:1] if op == "Squeeze" else x
        names = [f"i{position}" for position in range(len(operands))]
        inputs = [
            value("x", list(data.shape)),
            *(
                value(name, [len(array)], INT64)
                for name, array in zip(names, operands, strict=True)
            ),
        ]
        source = model([helper.make_node(op, ["x", *names], ["y"])], inputs, [value("y", None)])
        outcome = run_model(source, [data, *operands], [expected], 1e-5, 1e-5)
        assert outcome.kind == "agrees", (op, outcome.detail)


def test_spellings_of_one_size_agree() -> None:
    """A size written in two ways over one symbol takes the simpler one; two symbols may still
    broadcast."""
    nodes = [
        helper.make_node("Slice", ["table", "zero", "n", "zero"], ["rows"]),
        helper.make_node("Add", ["x", "rows"], ["y"]),
    ]
    constants = {"zero": np.array([0]), "table": np.ones((8, 1), np.float32)}
    shape = [helper.make_node("Shape", ["x"], ["n"], end=1)]
    assert _shape_text([*shape, *nodes], ["n", 3], constants) == "s0, 3"
    add = model(
        [helper.make_node("Add", ["a", "b"], ["y"])],
        [value("a", ["n"]), value("b", ["m"])],
        [value("y", None)],
    )
    for left, right in ((4, 4), (1, 4), (4, 1)):
        a, b = _x(left), _x(right)
        assert run_model(add, [a, b], [a + b]).kind == "agrees"
    assert run_model(add, [_x(3), _x(4)], [_x(4)]).kind == "fails"


def test_float_attributes_are_the_file_s_f32() -> None:
    """An attribute is an f32, given or by default: a graph in f64 computes with just that
    number."""
    x = np.array([-1.0, -3.0, 2.0])
    given, absent = (
        helper.make_node("LeakyRelu", ["x"], ["y"], alpha=0.1),
        helper.make_node("LeakyRelu", ["x"], ["y"]),
    )
    for node, alpha in ((given, np.float32(0.1)), (absent, np.float32(0.01))):
        source = model(
            [node],
            [value("x", [3], TensorProto.DOUBLE)],
            [value("y", None, TensorProto.DOUBLE)],
            opset=16,
        )
        assert (
            run_model(source, [x], [np.where(x < 0, x * np.float64(alpha), x)], 0, 0).kind
            == "agrees"
        )
