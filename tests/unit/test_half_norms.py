"""Norms of f16 and bf16 keep an ``epsilon`` that f16 would round to 0: a row without variance gives
the bias, not NaN (the embeddings of BERT have an epsilon of 1e-12)."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.unit.end_to_end_harness import node, tensor

import ingot
import ingot_runtime

CHANNELS = 32
NORMS = {
    "layer": node("LayerNormalization", "x gain shift", "y", axis=-1, epsilon=1e-12),
    "rms": node("RMSNormalization", "x gain", "y", axis=-1, epsilon=1e-12),
    "group": node("GroupNormalization", "x gain shift", "y", num_groups=2, epsilon=1e-12),
    "instance": node("InstanceNormalization", "x gain shift", "y", epsilon=1e-12),
}
KINDS = {
    "f16": (TensorProto.FLOAT16, np.dtype(np.float16)),
    "bf16": (TensorProto.BFLOAT16, np.dtype(ml_dtypes.bfloat16)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("norm", NORMS)
def test_rows_without_variance_give_the_bias(kind: str, norm: str, tmp_path: Path) -> None:
    """Equal values have variance 0, so what is left of ``gain * (x - mean) / sqrt(epsilon) + shift``
    is the shift; RMS norms of zeros give zeros."""
    number, dtype = KINDS[kind]
    values = {"gain": 1.0, "shift": 0.25}
    weights = [
        numpy_helper.from_array(np.full(CHANNELS, value, dtype), name)
        for name, value in values.items()
        if name in NORMS[norm].input
    ]
    shape = [2, CHANNELS, CHANNELS]
    graph = helper.make_graph(
        [NORMS[norm]], "g", [tensor("x", shape, number)], [tensor("y", shape, number)], weights
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    path = tmp_path / "norm.ingot"
    ingot.compile(model).save(path)
    constant = 0.0 if norm == "rms" else 0.5
    (y,) = ingot_runtime.load(path).run({"x": np.full(shape, constant, dtype)}).values()
    assert (np.asarray(y, np.float32) == (0.0 if norm == "rms" else 0.25)).all()
