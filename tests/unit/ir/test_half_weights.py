"""Weights of f16 and bf16 stay as they are stored: in the bundle two bytes each, widened in the
kernel, with the bits that weights widened before give."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tests.harness.end_to_end_harness import Feed, node, run_all_ways, tensor

import ingot
from ingot_compiler.ir.op import Array

TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
KINDS = {
    "f16": (TensorProto.FLOAT16, np.float16),
    "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
}


def model_of(matrix: Array, kernel: Array, activation: int, *, through_f32: bool) -> ModelProto:
    """A product and a convolution; weights of ``through_f32`` models are cast by a node. Of the
    matrix the sizes are read, too: if it is of f32, it stays so."""
    weights = [
        numpy_helper.from_array(array, name) for name, array in (("m", matrix), ("k", kernel))
    ]
    names = ["m", "k"]
    nodes = []
    if through_f32:
        nodes = [node("Cast", name, f"{name}_wide", to=TensorProto.FLOAT) for name in names]
        names = [f"{name}_wide" for name in names]
    nodes += [
        node("Transpose", names[0], "turned", perm=[1, 0]),
        node("MatMul", "x turned", "y"),
        node("Shape", "m", "sizes"),
        node("Conv", f"image {names[1]}", "z"),
    ]
    inputs = [tensor("x", ["n", 512], activation), tensor("image", [1, 16, 8, 8], activation)]
    outputs = [tensor("y", ["n", 1024], activation), tensor("z", None, activation)]
    outputs.append(tensor("sizes", [2], TensorProto.INT64))
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", 22)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.broad
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("through_f32", [False, True])
@pytest.mark.sweep(3)
def test_they_stay_as_they_are(kind: str, *, through_f32: bool, tmp_path: Path) -> None:
    """The bundle has one MiB for a matrix of half a million halves, not two; results are those of
    the same numbers in f32, bit for bit where results are f32. f16 that a node casts stays so where
    the processor widens it."""
    number, dtype = KINDS[kind]
    targets = TARGETS[1:] if through_f32 and kind == "f16" else TARGETS
    rng = np.random.default_rng(9)
    matrix = rng.standard_normal((1024, 512)).astype(dtype)
    kernel = rng.standard_normal((24, 16, 3, 3)).astype(dtype)
    activation = TensorProto.FLOAT if through_f32 else number
    path = tmp_path / "half.ingot"
    ingot.compile(
        model_of(matrix, kernel, activation, through_f32=through_f32), targets=targets
    ).save(path)
    assert path.stat().st_size < 2.6 * 2**20
    given = np.float32 if through_f32 else dtype
    x = rng.standard_normal((3, 512)).astype(np.float32).astype(given)
    image = rng.standard_normal((1, 16, 8, 8)).astype(np.float32).astype(given)
    feed: Feed = {"x": x, "image": image}
    (result,) = run_all_ways(path, [feed])
    wide = tmp_path / "wide.ingot"
    widened = model_of(
        matrix.astype(np.float32), kernel.astype(np.float32), TensorProto.FLOAT, through_f32=False
    )
    ingot.compile(widened, targets=targets).save(wide)
    assert wide.stat().st_size > path.stat().st_size
    (expected,) = run_all_ways(
        wide, [{name: array.astype(np.float32) for name, array in feed.items()}]
    )
    for name, array in expected.items():
        rounded = array if through_f32 or array.dtype == np.int64 else array.astype(dtype)
        assert result[name].tobytes() == rounded.tobytes()
