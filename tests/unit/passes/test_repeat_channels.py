"""Convolutions that give several channels of each: depthwise ones of repeated channels, with the same
results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto
from tests.harness.end_to_end_harness import make_model, node, reference, run_all_ways, tensor
from tests.harness.frontend_harness import MemoryStore, translate

import ingot
from ingot_compiler.passes.pipeline import optimize


def convolution(channels: int, results: int, kernel: int, step: int) -> ModelProto:
    """Of images of an open number, with bias, behind a ReLU."""
    rng = np.random.default_rng(results)
    tables = {
        "w": rng.standard_normal((results, 1, kernel, kernel)).astype(np.float32),
        "b": rng.standard_normal(results).astype(np.float32),
    }
    pads, strides = [kernel // 2] * 4, [step, step]
    nodes = [
        node("Relu", "x", "r"),
        node("Conv", "r w b", "y", group=channels, pads=pads, strides=strides),
    ]
    return make_model(nodes, [tensor("x", ["n", channels, 9, 11])], [tensor("y", None)], tables)


def groups_of(model: ModelProto) -> int:
    """The groups of the one convolution that it becomes."""
    graph = optimize(translate(model, MemoryStore())[0]).graph
    (found,) = [item for item in graph.nodes if item.op == "conv"]
    return found.integer("groups")


@pytest.mark.sweep(8)
@pytest.mark.parametrize(
    ("channels", "results", "kernel", "step", "groups"),
    [
        (4, 8, 3, 1, 8),
        (3, 15, 5, 2, 15),
        (1, 6, 3, 1, 1),  # a product of matrices
        (4, 8, 3, 3, 4),
        (4, 4, 3, 1, 4),
    ],
)
def test_several_results_of_a_channel(
    channels: int, results: int, kernel: int, step: int, groups: int, tmp_path: Path
) -> None:
    """As ONNX's reference has it, in whichever way."""
    model = convolution(channels, results, kernel, step)
    assert groups_of(model) == groups
    ingot.compile(model, targets=["x86-64-v3"]).save(tmp_path / "m.ingot")
    rng = np.random.default_rng(1)
    feeds = [{"x": rng.standard_normal((n, channels, 9, 11)).astype(np.float32)} for n in (1, 3)]
    for feed, result in zip(feeds, run_all_ways(tmp_path / "m.ingot", feeds), strict=True):
        expected = reference(model, feed)["y"]
        np.testing.assert_allclose(result["y"], expected, rtol=1e-5, atol=1e-5)
