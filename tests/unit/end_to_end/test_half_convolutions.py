"""Convolutions of f16 and bf16 with a bias: their loop programs are verified, and their results are
those of f32, rounded."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import node, tensor

import ingot
import ingot_runtime

TYPES = {
    "f32": (TensorProto.FLOAT, np.dtype(np.float32)),
    "f16": (TensorProto.FLOAT16, np.dtype(np.float16)),
    "bf16": (TensorProto.BFLOAT16, np.dtype(ml_dtypes.bfloat16)),
}
STEPS = {"f16": 2.0**-10, "bf16": 2.0**-7}
SAME = [1, 1, 1, 1]
CONVOLUTIONS: dict[str, tuple[NodeProto, list[int], list[int]]] = {
    "points": (node("Conv", "x w b", "y"), [1, 3, 5, 5], [4, 3, 1, 1]),
    "taps": (node("Conv", "x w b", "y", strides=[2, 2]), [1, 16, 9, 9], [16, 16, 3, 3]),
    "winograd": (node("Conv", "x w b", "y", pads=SAME), [1, 32, 16, 16], [32, 32, 3, 3]),
    "depthwise": (node("Conv", "x w b", "y", group=8), [1, 8, 8, 8], [8, 1, 3, 3]),
    "groups": (node("Conv", "x w b", "y", group=2), [1, 8, 8, 8], [8, 4, 3, 3]),
    "transposed": (node("ConvTranspose", "x w b", "y"), [1, 3, 8, 8], [3, 4, 3, 3]),
    "steps": (node("ConvTranspose", "x w b", "y", strides=[2, 2]), [1, 3, 8, 8], [3, 4, 2, 2]),
    "gemm": (node("Gemm", "x w b", "y"), [4, 8], [8, 6]),
}


def model(name: str, kind: str) -> ModelProto:
    """A convolution and a Relu, of weights that are small multiples of 1/64: halves hold them."""
    number, dtype = TYPES[kind]
    op, x_shape, w_shape = CONVOLUTIONS[name]
    draw = np.random.default_rng(3)
    channels = w_shape[0] if op.op_type == "Conv" else w_shape[1]
    weights = {
        "w": draw.integers(-64, 65, w_shape) / 64,
        "b": draw.integers(-64, 65, channels) / 64,
    }
    graph = helper.make_graph(
        [op, node("Relu", "y", "z")],
        "g",
        [tensor("x", x_shape, number)],
        [tensor("z", None, number)],
        [numpy_helper.from_array(w.astype(dtype), k) for k, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


@pytest.mark.sweep(60)
@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_bias_is_added_in_f32(name: str, kind: str, tmp_path: Path) -> None:
    """Sum and bias have one type (every loop program of a test is verified), and nothing is rounded
    before the result is stored."""
    x = np.random.default_rng(4).integers(-64, 65, CONVOLUTIONS[name][1]) / 64
    results: list[Array] = []
    for each in (kind, "f32"):
        path = tmp_path / f"{each}.ingot"
        ingot.compile(model(name, each)).save(path)
        (z,) = ingot_runtime.load(path).run({"x": x.astype(TYPES[each][1])}).values()
        results.append(np.asarray(z, np.float64))
    got, wide = results
    error = np.abs(got - wide)
    assert (error <= 0.5 * STEPS[kind] * np.abs(wide) + 1e-5).all()
