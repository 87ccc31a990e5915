"""Stored integers that are added, joined or quantized again are rounded where ONNX's text rounds:
most of their quotients may be middles of two integers, and none is a step off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, helper
from tests.harness.end_to_end_harness import make_model, run_all_ways, tensor
from tests.harness.frontend_harness import MemoryStore, translate

import ingot
from ingot_compiler.oracles.interpret import interpret
from ingot_compiler.passes.pipeline import optimize

Array = np.ndarray[Any, np.dtype[Any]]
# Steps of one and two decimals: of a and b, of the result.
STEPS = ((0.1, 0.05, 0.1), (0.05, 0.05, 0.1), (0.1, 0.3, 0.2), (0.01, 0.02, 0.04), (0.7, 0.35, 0.7))
OPS = ("Add", "Sub", "Mul", "Concat", "Max", "Relu of sum", "again", "joined and added")
SIZE = 1 << 16


def all_pairs(dtype: type[np.integer[Any]]) -> tuple[Array, Array]:
    """Every pair of two numbers of a type."""
    limits = np.iinfo(dtype)
    numbers = np.arange(limits.min, limits.max + 1, dtype=dtype)
    return np.repeat(numbers, 256), np.tile(numbers, 256)


def body(op: str) -> list[NodeProto]:
    """From ``p`` and ``q`` to ``c``."""
    make = helper.make_node
    if op == "Concat":
        return [make("Concat", ["p", "q"], ["c"], axis=0)]
    if op == "Relu of sum":
        return [make("Add", ["p", "q"], ["t"]), make("Relu", ["t"], ["c"])]
    if op == "again":
        return [make("Identity", ["p"], ["c"])]
    if op == "joined and added":
        both = [make("Concat", pair, [pair[0] * 2], axis=0) for pair in (["p", "q"], ["q", "p"])]
        return [*both, make("Add", ["pp", "qq"], ["c"])]
    return [make(op, ["p", "q"], ["c"])]


def ties(
    op: str, steps: tuple[float, float, float], dtype: type[np.integer[Any]], size: int | str
) -> ModelProto:
    """Two stored tensors dequantized, computed with, quantized."""
    zeros = (3, 120, 128) if dtype is np.uint8 else (0, -5, 1)
    make, stored = helper.make_node, dict[str, Array]()
    for name, step, zero in zip("abc", steps, zeros, strict=True):
        stored |= {f"s{name}": np.array(step, np.float32), f"z{name}": np.array(zero, dtype)}
    nodes = [
        make("DequantizeLinear", ["a", "sa", "za"], ["p"]),
        make("DequantizeLinear", ["b", "sb", "zb"], ["q"]),
        *body(op),
        make("QuantizeLinear", ["c", "sc", "zc"], ["y"]),
    ]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs = [tensor(name, (size,), kind) for name in "ab"]
    return make_model(nodes, inputs, [tensor("y", None, kind)], stored)


def _rectified(x: Array) -> Array:
    return np.maximum(x, np.float32(0))


_FUNCTIONS: dict[str, Any] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Max": np.maximum,
    "Relu": _rectified, "Identity": np.array,
}  # fmt: skip


def as_text_says(model: ModelProto, feed: dict[str, Array]) -> Array:
    """Each op rounds once, to f32."""
    stored = {each.name: np.asarray(_array(each)) for each in model.graph.initializer}
    values: dict[str, Array] = {**stored, **feed}
    for node in model.graph.node:
        x, *others = (values[name] for name in node.input)
        if node.op_type == "DequantizeLinear":
            wide = x.astype(np.int32) - others[1].astype(np.int32)
            values[node.output[0]] = wide.astype(np.float32) * others[0]
        elif node.op_type == "QuantizeLinear":
            limits = np.iinfo(others[1].dtype)
            y = np.rint(x / others[0]) + others[1].astype(np.float32)
            values[node.output[0]] = np.clip(y, limits.min, limits.max).astype(others[1].dtype)
        elif node.op_type == "Concat":
            values[node.output[0]] = np.concatenate((x, *others))
        else:
            function: Any = _FUNCTIONS[node.op_type]
            values[node.output[0]] = function(x, *others)
    return values["y"]


def _array(proto: Any) -> Any:
    from onnx import numpy_helper

    return numpy_helper.to_array(proto)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("steps", STEPS, ids=str)
@pytest.mark.parametrize("op", OPS)
def test_the_interpreter_rounds_where_the_text_does(
    op: str, steps: tuple[float, float, float], dtype: type[np.integer[Any]]
) -> None:
    """Of the optimised graph, for each pair of integers: no step is another one."""
    model, (a, b) = ties(op, steps, dtype, "n"), all_pairs(dtype)
    store = MemoryStore()
    (found,) = interpret(optimize(translate(model, store)[0]).graph, [a, b], store.read)
    np.testing.assert_array_equal(found, as_text_says(model, {"a": a, "b": b}))


@pytest.mark.parametrize("size", [SIZE, "n"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.sweep(60)
def test_machine_code_rounds_where_the_text_does(
    op: str, dtype: type[np.integer[Any]], size: int | str, tmp_path: Path
) -> None:
    """For each pair of integers, with steps whose middles are many, on every way of running."""
    feed = dict(zip("ab", all_pairs(dtype), strict=True))
    for at, steps in enumerate(STEPS[:2]):
        model, path = ties(op, steps, dtype, size), tmp_path / f"{at}.ingot"
        ingot.compile(model, targets=["x86-64-v2", "native"]).save(path)
        expected = as_text_says(model, feed)
        for found in run_all_ways(path, [feed]):
            np.testing.assert_array_equal(found["y"], expected)
