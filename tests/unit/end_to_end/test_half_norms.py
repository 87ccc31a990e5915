"""Norms of f16 and bf16 keep an ``epsilon`` that f16 would round to 0: a row without variance gives
the bias, not NaN (the embeddings of BERT have an epsilon of 1e-12). Batch normalisations whose
parameters are constants are folded in f32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import node, tensor

import ingot
import ingot_runtime

CHANNELS = 32
NORMS = {
    "layer": node("LayerNormalization", "x gain shift", "y", axis=-1, epsilon=1e-12),
    "rms": node("RMSNormalization", "x gain", "y", axis=-1, epsilon=1e-12),
    "group": node("GroupNormalization", "x gain shift", "y", num_groups=2, epsilon=1e-12),
    "instance": node("InstanceNormalization", "x gain shift", "y", epsilon=1e-12),
    "batch": node("BatchNormalization", "x gain shift mean variance", "y", epsilon=1e-12),
}
KINDS: dict[str, tuple[int, np.dtype[Any]]] = {
    "f16": (TensorProto.FLOAT16, np.dtype(np.float16)),
    "bf16": (TensorProto.BFLOAT16, np.dtype(ml_dtypes.bfloat16)),
}


def model_of(
    nodes: list[NodeProto],
    x_shape: list[int],
    y_shape: list[int],
    number: int,
    weights: dict[str, Array],
) -> ModelProto:
    """A model from ``x`` to ``y`` of one element type."""
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(
        nodes, "g", [tensor("x", x_shape, number)], [tensor("y", y_shape, number)], constants
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


@pytest.mark.sweep(7)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", NORMS)
def test_rows_without_variance_give_the_bias(kind: str, norm: str, tmp_path: Path) -> None:
    """Equal values have variance 0, so what is left of ``gain * (x - mean) / sqrt(epsilon) + shift``
    is the shift; RMS norms of zeros give zeros."""
    number, dtype = KINDS[kind]
    values = {"gain": 1.0, "shift": 0.25, "mean": 0.5, "variance": 0.0}
    weights = {
        name: np.full(CHANNELS, value, dtype)
        for name, value in values.items()
        if name in NORMS[norm].input
    }
    shape = [2, CHANNELS, CHANNELS]
    model = model_of([NORMS[norm]], shape, shape, number, weights)
    path = tmp_path / "norm.ingot"
    ingot.compile(model).save(path)
    constant = 0.0 if norm == "rms" else 0.5
    (y,) = ingot_runtime.load(path).run({"x": np.full(shape, constant, dtype)}).values()
    assert (np.asarray(y, np.float32) == (0.0 if norm == "rms" else 0.25)).all()


STATISTICS = {
    "gain": [1.0, 0.75, -1.5, 2.0],
    "shift": [0.0, 0.5, -0.25, 1.0],
    "mean": [0.0, 0.125, 0.3, -0.7],
    "variance": [0.0, 1e-7, 1.0, 4.0],
}
EPSILON = 1e-9
BATCH_NORM = node("BatchNormalization", "t gain shift mean variance", "y", epsilon=EPSILON)
BEFORE = {
    "conv": (node("Conv", "x w b", "t"), [2, 8, 5, 5]),
    "matmul": (node("Gemm", "x w b", "t"), [2, 8]),
    "nothing": (node("Identity", "x", "t"), [2, 4, 5, 5]),
}
HALF_STEPS = {"f16": 2.0**-11, "bf16": 2.0**-8}


@pytest.mark.sweep(10)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("before", BEFORE)
def test_folded_batch_norms_are_rounded_once(kind: str, before: str, tmp_path: Path) -> None:
    """The oracle is float64. New weights and biases are rounded to the type of the weights, and
    then the results; without weights to scale, the results alone."""
    number, dtype = KINDS[kind]
    op, shape = BEFORE[before]
    draw = np.random.default_rng(5)
    x = draw.standard_normal(shape).astype(dtype)
    weights: dict[str, Array] = {
        "w": (draw.standard_normal((8, 4)) / 64).astype(dtype),
        "b": (draw.standard_normal(4) / 64).astype(dtype),
    }
    statistics = {name: np.array(numbers).astype(dtype) for name, numbers in STATISTICS.items()}
    expected = normalised(x, weights if before != "nothing" else {}, statistics)
    if before == "conv":
        weights["w"] = np.ascontiguousarray(weights["w"].T).reshape(4, 8, 1, 1)
    model = model_of([op, BATCH_NORM], shape, list(expected.shape), number, weights | statistics)
    ingot.compile(model).save(tmp_path / "m.ingot")
    (y,) = ingot_runtime.load(tmp_path / "m.ingot").run({"x": x}).values()
    largest = float(np.abs(expected).max())
    np.testing.assert_allclose(
        np.asarray(y, np.float64), expected, 1.01 * HALF_STEPS[kind], 1e-6 * largest
    )


def normalised(x: Array, weights: dict[str, Array], statistics: dict[str, Array]) -> Array:
    """``(x @ w + b)`` normalised, or x itself, channels in axis 1; only new weights are rounded."""
    gain, shift, mean, variance = (array.astype(np.float64) for array in statistics.values())
    factor = gain / np.sqrt(variance + EPSILON)
    rows = np.moveaxis(x.astype(np.float64), 1, -1)
    added = shift - mean * factor
    if not weights:
        result = rows * factor + added
    else:
        w, b = (array.astype(np.float64) for array in weights.values())
        w, b = (
            (array.astype(x.dtype)).astype(np.float64) for array in (w * factor, b * factor + added)
        )
        result = rows @ w + b
    return np.asarray(np.moveaxis(result, -1, 1))
