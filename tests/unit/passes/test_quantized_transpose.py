"""Transposed convolutions of quantized tensors run on integers: what their graphs become, and what they
give beside ONNX's reference."""

from __future__ import annotations

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
from ingot_compiler.passes.pipeline import optimize

CHANNELS, RESULTS = 6, 5
SCHEMES = {
    "u8s8": Scheme(),
    "one scale": Scheme(per_channel=False),
    "s8s8": Scheme(activations=np.int8),
}
WINDOWS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "2x2 by 2": ((2, 2), {"strides": [2, 2]}),
    "3x3 by 2": ((3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    "4x4 by 2": ((4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "5x5": ((5, 5), {"pads": [2, 2, 2, 2]}),
    "3x2 by 3x1": ((3, 2), {"strides": [3, 1]}),
    "3x3 dilated": ((3, 3), {"dilations": [2, 2]}),
    "of a line by 4": ((8,), {"strides": [4], "pads": [2, 2]}),
}


def model_of(scheme: Scheme, name: str, *, groups: int = 1, has_bias: bool = True) -> ModelProto:
    """A quantized image, transposed, and quantized again."""
    kernel, attributes = WINDOWS[name]
    layers, middle = Layers(scheme), 128 if scheme.activations is np.uint8 else 0
    x = layers.requantized("x", 0.03, middle - 13)
    w = layers.weights(CHANNELS, RESULTS, *kernel, axis=1)
    bias = [layers.bias(groups * RESULTS)] if has_bias else []
    result = layers.add("ConvTranspose", [x, w, *bias], group=groups, **attributes)
    y = layers.quantized(result, 0.05, middle + 9)
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(scheme.activations))
    inputs = [tensor("x", [2, CHANNELS, *(9, 7)[: len(kernel)]])]
    return make_model(layers.nodes, inputs, [tensor(y, None, dtype)], layers.stored)


def products(model: ModelProto) -> set[str]:
    """What the convolutions of the optimised graph sum in."""
    graph = optimize(translate(model, MemoryStore())[0]).graph
    ops = ("conv", "conv_transpose", "matmul", "matmul_integer")
    return {graph.types[node.results[0]].dtype for node in graph.nodes if node.op in ops}


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_they_run_on_integers(scheme: str, name: str) -> None:
    """One convolution, whose weights are bytes."""
    assert products(model_of(SCHEMES[scheme], name)) == {"i32"}


def test_others_run_in_floats() -> None:
    """Groups, and weights whose zero point is beside the middle."""
    assert products(model_of(Scheme(per_channel=False), "2x2 by 2", groups=2)) == {"f32"}
    assert products(model_of(Scheme(skewed=True), "2x2 by 2")) == {"f32"}
    assert products(model_of(Scheme(weights=np.uint8), "2x2 by 2")) == {"f32"}


@pytest.mark.parametrize("target", [str(target) for target in RUNNABLE])
@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.sweep(60)
def test_results(scheme: str, name: str, target: str, tmp_path: Path, *, has_bias: bool) -> None:
    """Every integer within a step of the reference, nearly all equal."""
    model = model_of(SCHEMES[scheme], name, has_bias=has_bias)
    ingot.compile(model, targets=target).save(tmp_path / "m.ingot")
    sizes = (2, CHANNELS, *(9, 7)[: len(WINDOWS[name][0])])
    feed = {"x": np.random.default_rng(3).normal(0, 1.3, sizes).astype(np.float32)}
    (found,) = run_all_ways(tmp_path / "m.ingot", [feed])[0].values()
    (expected,) = reference(model, feed).values()
    steps = np.abs(found.astype(np.int64) - expected.astype(np.int64))
    assert steps.max() <= 1
    assert (steps == 0).mean() >= 0.999
    assert len(np.unique(expected)) > 20
