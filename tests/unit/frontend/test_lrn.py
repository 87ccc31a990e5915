"""LRN: windows of every length, against its formula; ``onnx.reference`` has others."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.conformance.run_case import MemoryStore, translate
from tests.harness.codegen_harness import Array
from tests.harness.lowering_harness import assert_close

import ingot
import ingot_runtime
from ingot_compiler.oracles.interpret import interpret

ALPHA, BIAS, ERROR_MAX = 0.3, 1.5, 1e-6


def model(size: int, channels: int | str, beta: float = 0.75) -> ModelProto:
    """One LRN."""
    shape = [2, channels, 3, 2]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy")
    node = helper.make_node("LRN", ["x"], ["y"], size=size, alpha=ALPHA, beta=beta, bias=BIAS)
    graph = helper.make_graph([node], "lrn", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def numbers(channels: int) -> Array:
    """An input."""
    drawn = np.random.default_rng(channels).standard_normal((2, channels, 3, 2))
    return drawn.astype(np.float32)


def expected(x: Array, size: int, beta: float = 0.75) -> Array:
    """As ONNX LRN-13 says it, computed in f64."""
    channels, squares = x.shape[1], x.astype(np.float64) ** 2
    windows = (
        slice(max(0, c - (size - 1) // 2), min(channels - 1, c + size // 2) + 1)
        for c in range(channels)
    )
    sums = np.stack([squares[:, window].sum(1) for window in windows], 1)
    return (x / (BIAS + ALPHA / size * sums) ** beta).astype(np.float32)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("size", [1, 2, 5, 7, 8, 9, 16, 63, 64, 65, 75, 1001])
@pytest.mark.parametrize("channels", [1, 3, 80])
def test_windows_of_every_length(size: int, channels: int) -> None:
    """Sums of sums are the sums of windows; what lies outside counts as 0."""
    store, x = MemoryStore(), numbers(channels)
    graph, _ = translate(model(size, channels), store)
    (found,) = interpret(graph, [x], store.read)
    assert_close(expected(x, size), found, ERROR_MAX)


@pytest.mark.broad
@pytest.mark.sweep(3)
@pytest.mark.parametrize("beta", [0.75, 0.6])
def test_machine_code(beta: float) -> None:
    """For any number of channels, with roots and with a power."""
    x = numbers(9)
    session = ingot_runtime.load(ingot.compile(model(5, "channels", beta)).to_bytes())
    assert_close(expected(x, 5, beta), session.run({"x": x})["y"], ERROR_MAX)
