"""Quantized models run on integers: what their graphs become, and what they give beside ONNX's
reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.harness import quantized_models as models
from tests.harness.end_to_end_harness import (
    check_model,
    make_model,
    reference,
    run_all_ways,
    tensor,
)
from tests.harness.frontend_harness import MemoryStore, translate
from tests.harness.quantized_models import Scheme

import ingot
from ingot_build_rules.making.report.integer_report import products_in_floats_line
from ingot_build_rules.tools.cli.main import main
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.refusal import INTEGER_PRODUCT
from ingot_compiler.oracles.interpret import interpret
from ingot_compiler.passes.pipeline import optimize

Array = models.Array
SCHEMES = {
    "u8s8": Scheme(),
    "one scale": Scheme(per_channel=False),
    "s8s8": Scheme(activations=np.int8),
    "u8u8": Scheme(weights=np.uint8),
    "skewed": Scheme(skewed=True),
    "skewed s8u8": Scheme(np.int8, np.uint8, per_channel=False, skewed=True),
}
MODELS: dict[str, tuple[Callable[[Scheme], ModelProto], tuple[int, ...]]] = {
    "perceptron": (models.perceptron, (40, 33)),
    "network": (models.network, (3, 3, 12, 12)),
    "attention": (models.attention, (4, 11, 16)),
}
_EQUAL_MIN = 0.999


def sample(*shape: int) -> Array:
    """Numbers of which some saturate."""
    return np.random.default_rng(3).normal(0, 1.3, shape).astype(np.float32)


def assert_within_a_step(found: Array, expected: Array) -> None:
    """Every integer within one step, nearly all equal, and not all the same."""
    steps = np.abs(found.astype(np.int64) - expected.astype(np.int64))
    assert steps.max() <= 1
    assert (steps == 0).mean() >= _EQUAL_MIN
    assert len(np.unique(expected)) > 20


def products(graph: Graph) -> list[tuple[str, str]]:
    """The products of a graph with the element type that each sums in."""
    kinds = ("conv", "matmul", "matmul_integer", "attention")
    return [
        (node.op, graph.types[node.results[0]].dtype) for node in graph.nodes if node.op in kinds
    ]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", MODELS)
def test_products_are_those_of_integers(name: str, scheme: str) -> None:
    """No product of floats is left, and the interpreter gives what the reference gives."""
    make, shape = MODELS[name]
    model, x = make(SCHEMES[scheme]), sample(*shape)
    store = MemoryStore()
    optimized = optimize(translate(model, store)[0])
    found = products(optimized.graph)
    assert found
    assert {dtype for _, dtype in found} == {"i32"}
    assert not [item for item in optimized.refusals if item.pattern == INTEGER_PRODUCT]
    (expected,) = reference(model, {"x": x}).values()
    (result,) = interpret(optimized.graph, [x], store.read)
    assert_within_a_step(result, expected)


@pytest.mark.parametrize("scheme", ["u8s8", "skewed s8u8"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.sweep(60)
def test_machine_code_gives_what_the_reference_gives(
    tmp_path: Path, name: str, scheme: str
) -> None:
    """From the model to the bundle's outputs, in every way of running."""
    make, shape = MODELS[name]
    model, x = make(SCHEMES[scheme]), sample(*shape)
    path = tmp_path / "model.ingot"
    ingot.compile(model).save(path)
    (expected,) = reference(model, {"x": x}).values()
    for results in run_all_ways(path, [{"x": x}]):
        assert_within_a_step(next(iter(results.values())), expected)


@pytest.mark.parametrize("weights", [np.int8, np.uint8])
def test_dynamic_quantization_multiplies_integers(weights: Any) -> None:
    """A zero point that is known at run time alone becomes a sum of the weights."""
    model, x = models.dynamic(weights), sample(9, 20)
    store = MemoryStore()
    graph = optimize(translate(model, store)[0]).graph
    assert products(graph) == [("matmul_integer", "i32")]
    operands = next(node.operands for node in graph.nodes if node.op == "matmul_integer")
    assert [graph.types[operand].dtype for operand in operands] == ["u8", "i8"]
    (expected,) = reference(model, {"x": x}).values()
    (result,) = interpret(graph, [x], store.read)
    np.testing.assert_allclose(result, expected, 1e-5, 1e-5)


@pytest.mark.broad
@pytest.mark.parametrize("groups", [1, 2])
def test_dynamic_convolutions_multiply_integers(tmp_path: Path, groups: int) -> None:
    """Around the image stands a zero point that is known at run time alone; the weights have one
    too, so that windows are summed."""
    model, x = models.dynamic_convolution(groups), sample(2, 4, 7, 6)
    graph = optimize(translate(model, MemoryStore())[0]).graph
    assert products(graph) == [("conv", "i32")] * 2
    check_model(model, [{"x": x}], tmp_path, 1e-5, floor=1e-4)


def test_values_that_are_only_moved_are_bytes() -> None:
    """Maximum, concatenation and reshape of activations take integers and give integers."""
    store = MemoryStore()
    graph = optimize(translate(models.network(SCHEMES["u8s8"]), store)[0]).graph
    kinds = [
        graph.types[node.results[0]]
        for node in graph.nodes
        if node.op in ("max_pool", "concat", "reshape")
    ]
    activations = [kind for kind in kinds if not isinstance(kind.element_count, int)]
    assert {kind.dtype for kind in activations} == {"u8"}


@pytest.mark.parametrize("name", MODELS)
def test_the_sign_of_activations_changes_no_step(name: str) -> None:
    """Values of i8 are stored as u8: none is flipped on its way to a product but by what repacks
    the second operand of one, as values of u8 are."""
    flips = [
        sum(node.op == "bitwise_xor" and _is_open(graph, node) for node in graph.nodes)
        for scheme in (Scheme(per_channel=False), Scheme(np.int8, per_channel=False))
        for graph in [optimize(translate(MODELS[name][0](scheme), MemoryStore())[0]).graph]
    ]
    assert flips[0] == flips[1]


def _is_open(graph: Graph, node: Node) -> bool:
    """Whether a value has a size that only a run knows, which weights have not."""
    return not isinstance(graph.types[node.results[0]].element_count, int)


def test_other_limits_than_those_of_the_type_are_kept(tmp_path: Path) -> None:
    """What is rounded, clipped to less than its type holds and cast is no QuantizeLinear."""
    constants: dict[str, Array] = {
        "s": np.array(0.5, np.float32), "z": np.array(0, np.int8),
        "low": np.array(-3, np.float32), "high": np.array(10, np.float32),
    }  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Div", ["d", "s"], ["quotient"]),
        helper.make_node("Round", ["quotient"], ["rounded"]),
        helper.make_node("Clip", ["rounded", "low", "high"], ["clipped"]),
        helper.make_node("Cast", ["clipped"], ["integers"], to=TensorProto.INT8),
        helper.make_node("Cast", ["integers"], ["y"], to=TensorProto.FLOAT),
    ]
    model = make_model(nodes, [tensor("x", (8,))], [tensor("y", None)], constants)
    x = np.array([-20, -3, -1, 0, 1, 3, 20, 100], np.float32)
    check_model(model, [{"x": x}], tmp_path)


def test_weights_stay_bytes_in_the_bundle(tmp_path: Path) -> None:
    """Four megabytes of them are not five, where f32 took sixteen."""
    layers = models.Layers(SCHEMES["u8s8"])
    x = layers.requantized("x", 0.02, 128)
    result = layers.add("MatMul", [x, layers.weights(2048, 2048, axis=1)])
    model = layers.model((1, 2048), layers.quantized(result, 0.3, 128))
    path = tmp_path / "model.ingot"
    ingot.compile(model).save(path)
    assert path.stat().st_size < 1.15 * len(model.SerializeToString()) + (1 << 20)


def refused(nodes: list[Any], stored: dict[str, Array], dtype: int = 1) -> str:
    """What the frontend says of a model."""
    model = make_model(nodes, [tensor("x", [2, 4])], [tensor("y", None, dtype)], stored)
    with pytest.raises(ModelError) as caught:
        translate(model, MemoryStore())
    return str(caught.value)


def test_a_zero_point_of_another_type_is_refused() -> None:
    """The operator's two operands have one type."""
    stored: dict[str, Array] = {"q": np.zeros((2, 4), np.int8), "s": np.array(0.1, np.float32)}
    stored["z"] = np.array(3, np.uint8)
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Add", ["x", "d"], ["y"]),
    ]
    assert "a zero point of i8" in refused(nodes, stored)


@pytest.mark.parametrize(("scale", "window"), [(0.0, 2), (-0.05, 2), (np.nan, 1), (np.inf, 1)])
def test_scales_that_are_no_steps_give_what_the_reference_gives(scale: float, window: int) -> None:
    """Zero, negative, NaN, infinite: no pass takes them for a step. (The reference has
    no maximum of NaNs alone.)"""
    move = "MaxPool" if window > 1 else "Flatten"
    attributes: dict[str, Any] = {"kernel_shape": [window]} if window > 1 else {}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node(move, ["d"], ["p"], **attributes),
        helper.make_node("QuantizeLinear", ["p", "s", "z"], ["y"]),
    ]
    stored: dict[str, Array] = {"s": np.array(scale, np.float32), "z": np.array(9, np.uint8)}
    model = make_model(nodes, [tensor("x", [1, 2, 8])], [tensor("y", None, 2)], stored)
    x, store = sample(1, 2, 8), MemoryStore()
    graph = optimize(translate(model, store)[0]).graph
    with np.errstate(all="ignore"):
        (expected,) = reference(model, {"x": x}).values()
        (result,) = interpret(graph, [x], store.read)
    np.testing.assert_array_equal(result, expected)


def float_product(case: str) -> ModelProto:
    """A quantized product, and one that is not one of integers for the reason of the case."""
    layers = models.Layers(SCHEMES["u8s8"])
    x = layers.requantized("x", 0.02, 128)
    y = layers.add("MatMul", [x, layers.weights(8, 8, axis=1)])
    if case == "along":
        y = layers.requantized(y, 0.03, 128)
        return _returned(layers, layers.add("MatMul", [y, layers.weights(8, 5)]))
    if case == "wide":
        wide = layers.constant(layers.random.integers(-999, 999, (8, 5)).astype(np.int16))
        w = layers.add("DequantizeLinear", [wide, layers.constant(np.float32(0.001))])
        y = layers.requantized(y, 0.03, 128)
        return _returned(layers, layers.add("MatMul", [y, w]))
    w = layers.constant(layers.random.normal(size=(8, 5)).astype(np.float32))
    y = layers.requantized(y, 0.03, 128) if case == "second" else layers.add("Sigmoid", [y])
    return _returned(layers, layers.add("MatMul", [y, w]))


def _returned(layers: models.Layers, name: str) -> ModelProto:
    return make_model(layers.nodes, [tensor("x", (3, 8))], [tensor(name, None)], layers.stored)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("along", "a scale or zero point changes along the axis that is summed"),
        ("wide", "its integers are i16, not 8-bit"),
        ("second", "its second operand is not quantized"),
        ("both", "no operand is quantized"),
    ],
)
def test_what_runs_in_floats_is_told(case: str, reason: str) -> None:
    """By name, with the reason."""
    graph, names = translate(float_product(case), MemoryStore())
    line = products_in_floats_line(optimize(graph).refusals, names)
    name = names.nodes[-1][0]
    assert line == f"runs in floats in this quantized model: {name} (MatMul): {reason}"


def test_models_without_integers_have_nothing_to_tell() -> None:
    """A product of floats is no news where nothing is quantized."""
    w = np.ones((4, 3), np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    model = make_model(nodes, [tensor("x", [2, 4])], [tensor("y", None)], {"w": w})
    graph, names = translate(model, MemoryStore())
    assert products_in_floats_line(optimize(graph).refusals, names) == ""


@pytest.mark.broad
def test_compiling_warns_of_products_in_floats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command has the line among its warnings."""
    source, target = str(tmp_path / "model.onnx"), str(tmp_path / "model.ingot")
    Path(source).write_bytes(float_product("second").SerializeToString())
    assert main(["compile", source, "-o", target, "--cache", str(tmp_path / "cache")]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "in floats" in line]
    assert line.startswith("warning: ")
    assert line.endswith(": its second operand is not quantized")


def test_one_channel_behind_whole_vectors_is_narrowed_alone(tmp_path: Path) -> None:
    """An image of 17 channels is turned and made bytes: found by fuzzing, LLVM learns late that the
    last vector has one lane, and wrote over the pixel behind it."""
    weights = np.random.default_rng(2).integers(0, 256, (4, 17, 1)).astype(np.uint8)
    constants: dict[str, Array] = {
        "s": np.array(0.115, np.float32), "z": np.array(101, np.uint8),
        "w": weights, "ws": np.array(0.0084, np.float32), "wz": np.array(128, np.uint8),
    }  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["v"]),
        helper.make_node("Conv", ["d", "v"], ["y"]),
    ]
    model = make_model(nodes, [tensor("x", (2, 17, 2))], [tensor("y", None)], constants)
    check_model(model, [{"x": sample(2, 17, 2)}], tmp_path, 1e-5, floor=1e-5)


def test_products_of_no_depth_are_zeros(tmp_path: Path) -> None:
    """Integers whose sums have no terms: weights without rows are packed, too."""
    nodes = [helper.make_node("MatMulInteger", ["x", "w"], ["y"])]
    stored: dict[str, Array] = {"w": np.zeros((0, 20), np.int8)}
    model = make_model(
        nodes, [tensor("x", (3, 0), TensorProto.UINT8)], [tensor("y", None, 6)], stored
    )
    path = tmp_path / "model.ingot"
    ingot.compile(model).save(path)
    (found,) = run_all_ways(path, [{"x": np.zeros((3, 0), np.uint8)}])
    np.testing.assert_array_equal(found["y"], np.zeros((3, 20), np.int32))
