"""LSTM, GRU and RNN, from ONNX to machine code, beside the interpreter's numpy and ONNX's
reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import check_model, make_model, node, run_all_ways, tensor
from tests.harness.frontend_harness import MemoryStore, translate
from tests.harness.lowering_harness import assert_close, compile_graph

import ingot
from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.refusal import INTEGER_PRODUCT
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.groups.fused import launches_of
from ingot_compiler.oracles.interpret import interpret
from ingot_compiler.passes.pipeline import optimize

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def parameters(op: str, directions: int, size: int, hidden: int) -> dict[str, Array]:
    """W, R and B."""
    rng, gates = np.random.default_rng(5), GATES[op]
    shapes = {
        "w": (directions, gates * hidden, size), "r": (directions, gates * hidden, hidden),
        "b": (directions, 2 * gates * hidden),
    }  # fmt: skip
    return {
        name: (rng.standard_normal(shape) / 4).astype(np.float32) for name, shape in shapes.items()
    }


def check_interpreted(model: ModelProto, feed: dict[str, Array], folder: Path) -> None:
    """Machine code, run in every way, against the interpreter."""
    ingot.compile(model).save(folder / "m.ingot")
    (result,) = run_all_ways(folder / "m.ingot", [feed])
    store = MemoryStore()
    graph, names = translate(model, store)
    for name, expected in zip(
        names.outputs, interpret(graph, list(feed.values()), store.read), strict=True
    ):
        assert_close(expected, result[name], 1e-5, 1e-6)


@pytest.mark.parametrize("op", list(GATES))
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("batch", "hidden"), [(1, 40), (3, 17), (40, 5)])
@pytest.mark.sweep(60)
def test_directions_and_sizes(
    tmp_path: Path, op: str, direction: str, batch: int, hidden: int
) -> None:
    """Every cell in every direction agrees with the interpreter, for one row and for many."""
    directions = 2 if direction == "bidirectional" else 1
    x = np.random.default_rng(6).standard_normal((7, batch, 9)).astype(np.float32)
    outputs = "y h c" if op == "LSTM" else "y h"
    nodes = [node(op, "x w r b", outputs, direction=direction, hidden_size=hidden)]
    tables = parameters(op, directions, 9, hidden)
    model = make_model(
        nodes, [tensor("x", x.shape)], [tensor(name, None) for name in outputs.split()], tables
    )
    check_interpreted(model, {"x": x}, tmp_path)


@pytest.mark.broad
@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_reference(tmp_path: Path, op: str) -> None:
    """Both directions with weights of a run agree with ONNX's own reference, which keeps no state
    in registers."""
    x = np.random.default_rng(7).standard_normal((5, 2, 4)).astype(np.float32)
    tables = parameters(op, 1, 4, 6)
    nodes = [node(op, "x w r b", "y h", hidden_size=6)]
    inputs = [tensor("x", x.shape), *(tensor(name, table.shape) for name, table in tables.items())]
    model = make_model(nodes, inputs, [tensor("y", None), tensor("h", None)])
    check_model(model, [{"x": x, **tables}], tmp_path, 1e-5, floor=1e-6)


@pytest.mark.sweep(18)
@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("LSTM", {"clip": 0.3, "input_forget": 1}),
        ("LSTM", {"activations": ["HardSigmoid", "Softsign", "Relu", "Sigmoid", "Tanh", "Elu"]}),
        ("GRU", {"linear_before_reset": 1, "clip": 0.5}),
        ("GRU", {"activations": ["Sigmoid", "LeakyRelu", "Sigmoid", "ScaledTanh"], "activation_alpha": [0.1, 1.5],
                 "activation_beta": [0.7]}),
        ("RNN", {"activations": ["Affine", "ThresholdedRelu"], "activation_alpha": [0.5, 0.1], "activation_beta": [0.2]}),
        ("RNN", {"activations": ["Softplus", "Relu"], "layout": 1}),
    ],
)  # fmt: skip
def test_attributes(tmp_path: Path, op: str, attributes: dict[str, Any]) -> None:
    """Activations per direction, clipping, coupled gates and the other layout agree with the
    interpreter."""
    x = np.random.default_rng(8).standard_normal((4, 3, 5)).astype(np.float32)
    nodes = [node(op, "x w r b", "y h", direction="bidirectional", hidden_size=6, **attributes)]
    model = make_model(
        nodes,
        [tensor("x", x.shape)],
        [tensor("y", None), tensor("h", None)],
        parameters(op, 2, 5, 6),
    )
    check_interpreted(model, {"x": x}, tmp_path)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("op", list(GATES))
def test_lengths_states_and_peepholes(tmp_path: Path, op: str) -> None:
    """Behind the end of a short row y is 0 and the state stays; it starts from the given state."""
    rng = np.random.default_rng(9)
    x = rng.standard_normal((6, 3, 4)).astype(np.float32)
    tables = parameters(op, 2, 4, 5)
    tables["h"] = rng.standard_normal((2, 3, 5)).astype(np.float32)
    operands, outputs = "x w r b lengths h", "y yh"
    if op == "LSTM":
        tables |= {
            "c": rng.standard_normal((2, 3, 5)).astype(np.float32),
            "p": rng.standard_normal((2, 15)).astype(np.float32),
        }
        operands, outputs = operands + " c p", outputs + " yc"
    nodes = [node(op, operands, outputs, direction="bidirectional", hidden_size=5)]
    inputs = [tensor("x", x.shape), tensor("lengths", [3], TensorProto.INT32)]
    model = make_model(nodes, inputs, [tensor(name, None) for name in outputs.split()], tables)
    feed = {"x": x, "lengths": np.array([6, 2, 0], np.int32)}
    check_interpreted(model, feed, tmp_path)
    (result,) = run_all_ways(tmp_path / "m.ingot", [feed])
    assert not result["y"][2:, :, 1].any()
    assert_close(tables["h"][:, 2], result["yh"][:, 2], 0.0)


def quantized(directions: int, size: int, hidden: int) -> dict[str, Array]:
    """W, R and B of DynamicQuantizeLSTM, a scale for each column."""
    rng, columns = np.random.default_rng(5), 4 * hidden
    tables: dict[str, Array] = {"b": parameters("LSTM", directions, size, hidden)["b"]}
    for name, rows in (("w", size), ("r", hidden)):
        numbers = rng.integers(-127, 128, (directions, rows, columns))
        scales = rng.uniform(0.002, 0.004, (directions, columns))
        tables |= {name: numbers.astype(np.int8), name + "_scale": scales.astype(np.float32)}
        tables[name + "_zero"] = np.zeros((directions, columns), np.int8)
    return tables


@pytest.mark.broad
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(("batch", "hidden"), [(1, 40), (3, 17), (40, 5)])
def test_quantized_states(tmp_path: Path, batch: int, hidden: int, is_open: bool) -> None:
    """Integers of any depth for one row and for many, that start from given states and from zeros,
    agree with the interpreter."""
    rng = np.random.default_rng(6)
    states = rng.standard_normal((3, 2, batch, hidden)).astype(np.float32)
    states[0, 1] = 0
    tables = quantized(2, 9, hidden) | {"p": states[2, :, 0, :1].repeat(3 * hidden, 1)}
    operands = "x w r b lengths h c p w_scale w_zero r_scale r_zero"
    options = {"domain": "com.microsoft", "direction": "bidirectional", "hidden_size": hidden}
    nodes = [node("DynamicQuantizeLSTM", operands, "y yh yc", **options)]
    feed: dict[str, Array] = {
        "x": rng.standard_normal((7, batch, 9)).astype(np.float32),
        "lengths": np.arange(7, 7 - batch, -1).clip(0).astype(np.int32),
        "h": states[0],
        "c": states[1],
    }
    sizes = ["steps", "rows"] if is_open else [7, batch]
    inputs = [
        tensor("x", [*sizes, 9]),
        tensor("lengths", sizes[1:], TensorProto.INT32),
        *(tensor(name, [2, sizes[1], hidden]) for name in "hc"),
    ]
    if is_open:  # weights that a caller gives are read where they lie
        feed["r"] = tables.pop("r")
        inputs.append(tensor("r", feed["r"].shape, TensorProto.INT8))
    outputs = [tensor(name, None) for name in ("y", "yh", "yc")]
    model = make_model(nodes, inputs, outputs, tables)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    ingot.compile(model).save(tmp_path / "m.ingot")
    (result,) = run_all_ways(tmp_path / "m.ingot", [feed])
    store = MemoryStore()
    graph, names = translate(model, store)
    for name, expected in zip(
        names.outputs, interpret(graph, list(feed.values()), store.read), strict=True
    ):
        assert_close(expected, result[name], 2e-3, 1e-3)
        assert np.median(np.abs(expected - result[name])) < 1e-6


def recurrent_product(zero: int, hidden: int) -> ModelProto:
    """A layer whose weights have a zero point."""
    tables = quantized(1, 9, hidden)
    tables["r_zero"] = np.full_like(tables["r_zero"], zero)
    operands = "x w r b - - - - w_scale w_zero r_scale r_zero"
    options = {"domain": "com.microsoft", "hidden_size": hidden}
    nodes = [node("DynamicQuantizeLSTM", operands, "y", **options)]
    model = make_model(nodes, [tensor("x", [7, 1, 9])], [tensor("y", None)], tables)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


@pytest.mark.parametrize(("zero", "refusals"), [(0, []), (3, ["it has no kernel for integers"])])
def test_integers_that_are_centred_are_multiplied(zero: int, refusals: list[str]) -> None:
    """Another zero point than the middle runs in floats, and is told."""
    optimized = optimize(translate(recurrent_product(zero, 6), MemoryStore())[0])
    assert [
        item.reason for item in optimized.refusals if item.pattern == INTEGER_PRODUCT
    ] == refusals
    (layer,) = [item for item in optimized.graph.nodes if item.op == "recurrent"]
    assert optimized.graph.types[layer.operands[1]].dtype == ("f32" if refusals else "i8")


def test_quantized_weights_stay_bytes_in_the_bundle(tmp_path: Path) -> None:
    """Two megabytes of them, where f32 took nine."""
    model = recurrent_product(0, 768)
    ingot.compile(model).save(tmp_path / "m.ingot")
    size = (tmp_path / "m.ingot").stat().st_size
    assert size < 1.15 * len(model.SerializeToString()) + (1 << 20)


@pytest.mark.parametrize(
    ("weights", "sums", "cell", "message"),
    [
        ("i8", "f32", "lstm", "sums of i32"),
        ("f32", "i32", "lstm", "i8"),
        ("i8", "i32", "rnn", "a quantized layer to be an lstm"),
    ],
)
def test_quantized_operands_of_other_types_are_refused(
    weights: DType, sums: DType, cell: str, message: str
) -> None:
    """By what was expected."""
    is_lstm, columns = cell == "lstm", 12 if cell == "lstm" else 3
    count = 3 if is_lstm else 1
    attributes: dict[str, Attribute] = {
        "activations": ("Tanh",) * count, "alphas": (0.0,) * count, "betas": (0.0,) * count, "cell": cell,
        "clip": 0.0, "has_lengths": False, "has_peepholes": False, "input_forget": False, "is_quantized": True,
        "linear_before_reset": False, "reverse": (False,),
    }  # fmt: skip
    states = [TensorType("f32", (1, 2, 3))] * (2 if is_lstm else 1)
    types = [
        TensorType("f32", (5, 2, columns)), TensorType(weights, (1, 3, columns)), *states,
        TensorType("f32", (1, columns)), TensorType(sums, (1, columns)),
    ]  # fmt: skip
    with pytest.raises(OpTypeError, match=message):
        OPS_BY_NAME["recurrent"].infer(types, attributes)


@pytest.mark.broad
def test_symbolic_sizes(tmp_path: Path) -> None:
    """One bundle runs any number of steps and rows."""
    tables = parameters("LSTM", 2, 4, 8)
    nodes = [node("LSTM", "x w r b", "y h c", direction="bidirectional", hidden_size=8)]
    model = make_model(
        nodes,
        [tensor("x", ["t", "n", 4])],
        [tensor(name, None) for name in ("y", "h", "c")],
        tables,
    )
    rng = np.random.default_rng(10)
    for shape in ((1, 1, 4), (5, 2, 4), (3, 33, 4), (0, 2, 4)):
        check_interpreted(model, {"x": rng.standard_normal(shape).astype(np.float32)}, tmp_path)


@pytest.mark.broad
@pytest.mark.parametrize("rows", [1, 3, 6])
def test_open_rows_give_the_bits_of_fixed_ones(tmp_path: Path, rows: int) -> None:
    """A kernel for one row and one for few stand beside that for any number of them."""
    x = np.random.default_rng(11).standard_normal((5, rows, 9)).astype(np.float32)
    tables = parameters("LSTM", 1, 9, 40)
    found: list[Array] = []
    for batch in (rows, "rows"):
        nodes = [node("LSTM", "x w r b", "y", hidden_size=40)]
        model = make_model(nodes, [tensor("x", [5, batch, 9])], [tensor("y", None)], tables)
        launches = launches_of(compile_graph(translate(model, MemoryStore())[0]).fused)
        kernels = [step.group for step in launches if step.group.kind == "recurrent"]
        assert len(kernels) == (3 if batch == "rows" else 1)
        ingot.compile(model).save(tmp_path / "m.ingot")
        found += [result["y"] for result in run_all_ways(tmp_path / "m.ingot", [{"x": x}])]
    assert all(y.tobytes() == found[0].tobytes() for y in found)


@pytest.mark.parametrize(
    ("name", "shape"),
    [("r", (2, 12, 3)), ("b", (2, 24)), ("b", (1, 30)), ("h", (2, 2, 3)), ("p", (2, 9))],
)
def test_operands_of_more_directions_are_refused(name: str, shape: tuple[int, ...]) -> None:
    """What a forward LSTM would not read is no operand of it."""
    shapes = {"w": (1, 12, 4), "r": (1, 12, 3), "b": (1, 24), "h": (1, 2, 3), "p": (1, 9)}
    stored = {key: np.zeros(size, np.float32) for key, size in (shapes | {name: shape}).items()}
    made = helper.make_node("LSTM", ["x", "w", "r", "b", "", "h", "", "p"], ["y"], hidden_size=3)
    model = make_model([made], [tensor("x", [5, 2, 4])], [tensor("y", None)], stored)
    with pytest.raises(ModelError, match=r"of 1 direction,|a bias of 2 x 12 numbers"):
        translate(model, MemoryStore())
