"""Weights that a model quantizes itself: integers are computed when it is compiled."""

import numpy as np
import pytest
from onnx import ModelProto
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.unit.passes.test_passes_constant_expression import Weights

import ingot
from ingot_compiler.ir.rules.reference_rules import STORAGE_DTYPES
from ingot_compiler.lowering.constants.constant_expression import constant_values, extract
from ingot_compiler.lowering.constants.evaluate_constant import evaluate
from ingot_compiler.oracles.interpret import interpret


@pytest.mark.parametrize("source", ["f16", "f32", "f64", "bf16"])
@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "bool"])
def test_floats_become_the_integers_of_the_interpreter(source: str, dtype: str) -> None:
    """Of every type, also where a number fits into none: more elements than one chunk."""
    weights = Weights()
    value = weights.add("cast", (weights.constant("w", source, 70_000),), dtype=dtype)
    graph = weights.builder.finish((value,))
    expression = extract(graph, value, {node.results[0]: node for node in graph.nodes})
    assert value in constant_values(graph)
    found = np.frombuffer(evaluate(expression, weights.read), STORAGE_DTYPES[dtype])
    np.testing.assert_array_equal(found, interpret(expression, (), weights.read)[0])


@pytest.mark.parametrize("op", ["round", "floor", "ceil", "relu"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_steps_are_those_of_the_interpreter(op: str, dtype: str) -> None:
    """Exact ops, the same on every machine."""
    weights = Weights()
    value = weights.add(op, (weights.constant("w", dtype, 4096),))
    graph = weights.builder.finish((value,))
    expression = extract(graph, value, {node.results[0]: node for node in graph.nodes})
    assert value in constant_values(graph)
    found = np.frombuffer(evaluate(expression, weights.read), STORAGE_DTYPES[dtype])
    np.testing.assert_array_equal(found, interpret(expression, (), weights.read)[0])


def _network(*, stored: bool) -> ModelProto:
    """One quantized convolution; its weights are integers in the file, or floats and a
    QuantizeLinear, as quantizers write them on demand (AddQDQPairToWeight)."""
    floats = np.random.default_rng(5).normal(size=(8, 4, 3, 3)).astype(np.float32)
    integers = np.clip(np.rint(floats / np.float32(0.05)), -128, 127).astype(np.int8)
    constants = {
        "s": np.array(0.05, np.float32),
        "x_zero": np.array(128, np.uint8),
        "w_zero": np.array(0, np.int8),
        **({"q": integers} if stored else {"w": floats}),
    }
    nodes = [
        node("QuantizeLinear", "x s x_zero", "xq"),
        node("DequantizeLinear", "xq s x_zero", "xd"),
        *(() if stored else [node("QuantizeLinear", "w s w_zero", "q")]),
        node("DequantizeLinear", "q s w_zero", "wd"),
        node("Conv", "xd wd", "y"),
    ]
    return make_model(nodes, [tensor("x", [1, 4, 9, 9])], [tensor("y", None)], constants)


@pytest.mark.broad
def test_weights_that_the_model_quantizes_are_integers_in_the_bundle() -> None:
    """The same kernels as with integers in the file: none quantizes weights in a call."""
    counts = {
        stored: ingot.compile(_network(stored=stored), targets="x86-64-v3")
        .text("fused")
        .count("kernel ")
        for stored in (False, True)
    }
    assert counts[False] == counts[True]
