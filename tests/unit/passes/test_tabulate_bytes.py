"""Functions of bytes with many operations become tables of their 256 results: which do, and what
they give beside ONNX's reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper
from tests.harness.codegen_harness import RUNNABLE
from tests.harness.end_to_end_harness import make_model, reference, run_all_ways, tensor
from tests.harness.frontend_harness import MemoryStore, translate
from tests.harness.quantized_models import Layers, Scheme

import ingot
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.constants.constant_expression import constant_values
from ingot_compiler.passes.pipeline import optimize
from ingot_compiler.passes.tabulate_bytes import tabulate_bytes
from ingot_compiler.targets.host_target import host_target

SHAPE = (2, 40, 33)  # 2,640 elements: some vectors, and a rest
Function = Callable[[Layers, str], str]
SIGNS: tuple[type[np.integer[Any]], ...] = (np.uint8, np.int8)


def _silu(layers: Layers, x: str) -> str:
    """Quantized in between, as tools do it."""
    gate = layers.requantized(layers.add("Sigmoid", [x]), 1 / 255, 0)
    return layers.add("Mul", [x, gate])


def _gelu_by_erf(layers: Layers, x: str) -> str:
    """As exporters compose it."""
    inner = layers.add("Div", [x, layers.constant(np.float32(np.sqrt(2)))])
    total = layers.add("Add", [layers.add("Erf", [inner]), layers.constant(np.float32(1))])
    product = layers.add("Mul", [x, total])
    return layers.add("Mul", [product, layers.constant(np.float32(0.5))])


def _hard_swish(layers: Layers, x: str) -> str:
    """Arithmetic alone, and much of it."""
    gate = layers.requantized(layers.add("HardSigmoid", [x], alpha=1 / 6), 1 / 255, 0)
    return layers.add("Mul", [x, gate])


def _of_one(op: str, **attributes: Any) -> Function:
    return lambda layers, x: layers.add(op, [x], **attributes)


def _reshaped_scale(layers: Layers, x: str) -> str:
    """By a number of more dimensions than a table has."""
    factor = layers.constant(np.full((1, 1, 1), 0.7, np.float32))
    return layers.add("Tanh", [layers.add("Mul", [x, factor])])


TABULATED: dict[str, Function] = {
    "silu": _silu,
    "gelu of erf": _gelu_by_erf,
    "gelu": _of_one("Gelu"),
    "gelu by tanh": _of_one("Gelu", approximate="tanh"),
    "hard swish": _hard_swish,
    "softplus": _of_one("Softplus"),
    "elu": _of_one("Elu", alpha=0.5),
    "a number of three dimensions": _reshaped_scale,
}

NOT_FOLDED = ("gelu of erf", "gelu", "gelu by tanh", "softplus")


def _scaled_rows(layers: Layers, x: str) -> str:
    """Each row has a function of its own."""
    factors = layers.constant(np.linspace(0.5, 1, SHAPE[1]).astype(np.float32).reshape(-1, 1))
    return layers.add("Sigmoid", [layers.add("Mul", [x, factors])])


def _of_two(layers: Layers, x: str) -> str:
    """Of two tensors of integers."""
    turned = layers.add("Transpose", [layers.add("Transpose", [x], perm=[0, 2, 1])], perm=[0, 2, 1])
    rows = layers.requantized(layers.add("CumSum", [turned, layers.constant(1)]), 0.5, 128)
    return layers.add("Mul", [layers.add("Sigmoid", [x]), rows])


COMPUTED: dict[str, Function] = {
    "requantized": lambda _, x: x,
    "a limit": _of_one("Relu"),
    "a function for each row": _scaled_rows,
    "a function along rows": _of_one("Softmax"),
    "a function of two": _of_two,
}


def model_of(
    function: Function, sign: type[np.integer[Any]] = np.uint8, shape: Sequence[int | str] = SHAPE
) -> ModelProto:
    """``function`` between two quantizations."""
    middle = 128 if sign is np.uint8 else 0
    layers = Layers(Scheme(activations=sign))
    x = layers.requantized("x", 0.03, middle - 13)
    result = layers.quantized(function(layers, x), 0.02, middle - 50)
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(sign))
    inputs, outputs = [tensor("x", list(shape))], [tensor(result, None, dtype)]
    return make_model(layers.nodes, inputs, outputs, layers.stored)


def tables(model: ModelProto) -> tuple[Graph, list[TensorType]]:
    """The optimised graph, and what its bytes are looked up in."""
    graph = optimize(translate(model, MemoryStore())[0]).graph
    found = [graph.types[node.operands[0]] for node in graph.nodes if node.op == "gather"]
    return graph, found


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("name", TABULATED)
def test_long_functions_have_a_table(name: str, sign: type[np.integer[Any]]) -> None:
    """One, of all results, folded but for functions that no build computes, which a run does."""
    graph, found = tables(model_of(TABULATED[name], sign))
    assert found == [TensorType("u8" if sign is np.uint8 else "i8", (256,))]
    folded = constant_values(graph)
    looked_up = [node.operands[0] in folded for node in graph.nodes if node.op == "gather"]
    assert looked_up == [name not in NOT_FOLDED]


@pytest.mark.parametrize("name", COMPUTED)
def test_others_are_computed(name: str) -> None:
    """What is short, or no function of one byte."""
    assert tables(model_of(COMPUTED[name]))[1] == []


def test_requirements_are_asked_of_what_a_run_has() -> None:
    """A table would ask them of all numbers."""
    builder = GraphBuilder([TensorType("u8", SHAPE)])
    limit, scale = builder.scalar("u8", 200), builder.scalar("f32", 0.1)
    holds = builder.add("less", (0, limit))
    checked = builder.add("require", (0, holds), {"what": "less than 200"})
    wide = builder.add("cast", (checked,), {"dtype": "f32"})
    value = builder.add("exp", (builder.add("sin", (builder.add("mul", (wide, scale)),)),))
    result = builder.add("cast", (value,), {"dtype": "u8"})
    found = tabulate_bytes(builder.finish([result]))
    (looked_up,) = (node for node in found.nodes if node.op == "gather")
    assert looked_up.operands[1] == checked
    assert any(node.op == "require" and node.operands[0] == 0 for node in found.nodes)


def test_sizes() -> None:
    """Few elements are computed; an open number of them is looked up."""
    assert tables(model_of(_silu, shape=(1, 10, 33)))[1] == []
    assert len(tables(model_of(_silu, shape=("batch", 40, 33)))[1]) == 1


TARGETS = [str(target) for target in RUNNABLE]
if "avx512vbmi" in host_target().features:
    TARGETS.append("x86-64-v4+avx512vbmi")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("name", TABULATED)
@pytest.mark.sweep(60)
def test_results(name: str, sign: type[np.integer[Any]], target: str, tmp_path: Path) -> None:
    """Every byte, and what is beyond them: within a step of the reference, nearly all equal."""
    model = model_of(TABULATED[name], sign, ("batch", *SHAPE[1:]))
    ingot.compile(model, targets=target).save(tmp_path / "m.ingot")
    x = np.linspace(-5, 5, int(np.prod(SHAPE))).astype(np.float32).reshape(SHAPE)
    for feed in ({"x": x}, {"x": np.concatenate([x[1:], x, x])}):
        (found,) = run_all_ways(tmp_path / "m.ingot", [feed])[0].values()
        (expected,) = reference(model, feed).values()
        steps = np.abs(found.astype(np.int64) - expected.astype(np.int64))
        assert steps.max() <= 1
        assert (steps == 0).mean() >= 0.999
        assert len(np.unique(expected)) > 50
