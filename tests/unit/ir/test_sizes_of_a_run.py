"""Sizes that an op compares with a number of its own (an attribute, a weight, a rank) where types
have an expression: right when a run has that size, a refusal with both when it has another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, helper, numpy_helper
from tests.harness.end_to_end_harness import node, tensor

import ingot
import ingot_runtime
from ingot_compiler.ir.op import Array

_RNG = np.random.default_rng(5)
_CODES = _RNG.integers(0, 256, (4, 32)).astype(np.uint8)
_SIGNED = _CODES.view(np.int8)
_SCALE = _RNG.uniform(0.01, 0.1, (4, 1)).astype(np.float32)
_ROWS = _RNG.standard_normal((2, 32)).astype(np.float32)
_PACKED = _RNG.standard_normal((1, 3, 2, 3, 4)).astype(np.float32)
_IMAGE = _RNG.standard_normal((1, 2, 3, 4)).astype(np.float32)
_DOUBLED = _IMAGE.repeat(2, 2).repeat(2, 3)


@dataclass(frozen=True)
class _Case:
    """Nodes from ``x`` to ``y``; the shape that ``x`` is declared with; ``x`` and the result of a
    run; which axis of ``x`` is too short in one that is refused, and what is said."""

    nodes: Sequence[NodeProto]
    constants: dict[str, Array]
    declared: Sequence[int | str]
    x: Array
    result: Array
    axis: int
    why: str


def _contrib(op: str, inputs: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), ["y"], domain="com.microsoft", **attributes)


def _resize(inputs: str) -> NodeProto:
    attributes: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric"}
    return node("Resize", inputs, "y", mode="nearest", nearest_mode="floor", **attributes)


def _list_case(made: NodeProto, x: Sequence[float], result: Array, why: str) -> _Case:
    """An operand of one number for each axis of an image."""
    array = np.array(x, np.float32 if isinstance(x[0], float) else np.int64)
    constants = {"image": _IMAGE, "sizes": np.array(_IMAGE.shape)}
    return _Case([made], constants, ["k"], array, result, 0, why)


def _attention(packed: Array) -> Array:
    """Of [B, S, heads, 3, D], as [B, S, heads * D]."""
    q, k, v = (packed[:, :, :, position].transpose(0, 2, 1, 3) for position in range(3))
    scores = np.exp(q @ k.transpose(0, 1, 3, 2) / 2)
    result = (scores / scores.sum(-1, keepdims=True)) @ v
    return np.asarray(result.transpose(0, 2, 1, 3).reshape(*packed.shape[:2], -1))


def _causal(packed: Array) -> Array:
    """Of [1, S, 4 * D]: two heads of queries, one of keys and one of values."""
    size = packed.shape[2] // 4
    q, k, v = (packed[0][:, size * at :][:, : size * count] for at, count in _PARTS)
    scores = q.reshape(-1, 2, size).transpose(1, 0, 2) @ k.T / np.sqrt(size)
    scores = np.exp(np.where(np.tri(len(q), dtype=bool), scores, -np.inf))
    result = (scores / scores.sum(-1, keepdims=True)) @ v
    return np.asarray(result.transpose(1, 0, 2).reshape((*packed.shape[:2], -1)))


def _relu_layer(x: Array) -> Array:
    """One step, from a state of zeros, of two directions."""
    return np.asarray(np.maximum(np.einsum("sbi,dhi->sdbh", x, _BOTH), 0))


_PARTS = ((0, 2), (2, 1), (3, 1))
_QKV = _RNG.standard_normal((1, 3, 12)).astype(np.float32)
_STEP = _RNG.standard_normal((1, 2, 3)).astype(np.float32)
_BOTH = _RNG.standard_normal((2, 4, 3)).astype(np.float32)
_GRID = np.stack(np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 3)), -1)[None]
_CASES = {
    "MatMulNBits": _Case(
        [_contrib("MatMulNBits", "x b s", K=32, N=4, bits=8, block_size=32)],
        {"b": _CODES.reshape(4, 1, 32), "s": _SCALE},
        ["n", "k"], _ROWS, _ROWS @ ((_CODES.astype(np.float32) - 128) * _SCALE).T,
        1, "expected A of depth K = 32, got k",
    ),
    "DequantizeLinear": _Case(
        [
            node("DequantizeLinear", "b s", "w", axis=1, block_size=16),
            node("Transpose", "w", "t"),
            node("MatMul", "x t", "y"),
        ],
        {"b": _SIGNED, "s": np.repeat(_SCALE, 2, 1)},
        ["n", "k"], _ROWS, _ROWS @ (_SIGNED * _SCALE).T,
        1, "expected a depth of 32, got k",
    ),
    "blocks": _Case(
        [node("DequantizeLinear", "b x", "y", axis=1, block_size=16)],
        {"b": _SIGNED},
        [4, "k"], np.repeat(_SCALE, 2, 1), _SIGNED * _SCALE,
        1, "expected 2 blocks of 16 along axis 1, got k",
    ),
    "MultiHeadAttention": _Case(
        [_contrib("MultiHeadAttention", "x", num_heads=2)], {},
        [1, 3, 2, "k", 4], _PACKED, _attention(_PACKED),
        3, "expected [batch, sequence, heads, 3, size], got k",
    ),
    "GroupQueryAttention": _Case(
        [
            helper.make_node(
                "GroupQueryAttention", ["x", "", "", "", "", "ends", "total"],
                ["y", "keys", "values"], domain="com.microsoft", num_heads=2, kv_num_heads=1,
            )
        ],
        {"ends": np.array([2], np.int32), "total": np.array([3], np.int32)},
        [1, 3, "k"], _QKV, _causal(_QKV),
        2, "expected [batch, sequence, hidden] whose last dimension 4 heads divide, got k",
    ),
    "RNN": _Case(
        [
            node(
                "RNN", "steps x zeros", "y", hidden_size=4, direction="bidirectional",
                activations=["Relu", "Relu"],
            )
        ],
        {"steps": _STEP, "zeros": np.zeros((2, 4, 4), np.float32)},
        ["k", 4, 3], _BOTH, _relu_layer(_STEP), 0, "expected weights and states of 2 directions, got k",
    ),
    "roi": _list_case(
        node(
            "Resize", "image x - sizes", "y", mode="nearest", nearest_mode="floor",
            coordinate_transformation_mode="tf_crop_and_resize",
        ),
        [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0], _IMAGE, "expected 8 numbers in roi, got k",
    ),
    "GridSample": _Case(
        [node("GridSample", "image x", "y", align_corners=1)], {"image": _IMAGE},
        [1, 3, 4, "k"], _GRID.astype(np.float32), _IMAGE,
        3, "expected a grid of rank 4 with 2 coordinates, got k",
    ),
    "Pad": _list_case(
        node("Pad", "image x", "y"), [0, 0, 1, 0, 0, 0, 0, 2],
        np.pad(_IMAGE, ((0, 0), (0, 0), (1, 0), (0, 2))), "expected 8 pads, got k",
    ),
    "Tile": _list_case(
        node("Tile", "image x", "y"), [1, 2, 1, 3], np.tile(_IMAGE, (1, 2, 1, 3)),
        "expected 4 repeats, got k",
    ),
    "sizes": _list_case(
        _resize("image - - x"), [1, 2, 6, 8], _DOUBLED, "expected 4 sizes, got k"
    ),
    "scales": _list_case(
        _resize("image - x"), [1.0, 1.0, 2.0, 2.0], _DOUBLED, "expected 4 scales, got k"
    ),
}  # fmt: skip


@pytest.mark.sweep(22)
@pytest.mark.parametrize("name", _CASES)
def test_a_size_that_a_run_says_is_compared_then(name: str, tmp_path: Path) -> None:
    """The op's number is what types say behind the comparison."""
    case, path = _CASES[name], tmp_path / "m.ingot"
    dtype = helper.np_dtype_to_tensor_dtype(case.x.dtype)
    tensors = [numpy_helper.from_array(array, key) for key, array in case.constants.items()]
    inputs, outputs = [tensor("x", case.declared, dtype)], [tensor("y", None)]
    graph = helper.make_graph(case.nodes, "g", inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    ingot.compile(helper.make_model(graph, opset_imports=opsets, ir_version=10)).save(path)
    session = ingot_runtime.load(path)
    result = session.run({"x": case.x})
    np.testing.assert_allclose(result["y"], case.result, 1e-5, 1e-5)
    wrong = np.delete(case.x, -1, case.axis)
    with pytest.raises(ingot_runtime.InputError) as caught:
        session.run({"x": wrong})
    assert case.why in str(caught.value)


def _session(nodes: Sequence[NodeProto], shape: Sequence[int | str], path: Path) -> Any:
    """A bundle of one input ``x``, loaded."""
    graph = helper.make_graph(nodes, "g", [tensor("x", shape)], [tensor("y", None)])
    domains = {"": 21, "com.microsoft": 1, "ai.onnx.ml": 3}
    opsets = [helper.make_opsetid(*pair) for pair in domains.items()]
    ingot.compile(helper.make_model(graph, opset_imports=opsets, ir_version=10)).save(path)
    return ingot_runtime.load(path)


def test_heads_have_the_size_that_a_run_says(tmp_path: Path) -> None:
    """The scale of the scores follows from it."""
    made = [_contrib("MultiHeadAttention", "x x x", num_heads=2)]
    session = _session(made, [1, 3, "k"], tmp_path / "m.ingot")
    for size in (4, 12):
        x = _RNG.standard_normal((1, 3, size)).astype(np.float32)
        heads = x.reshape(3, 2, size // 2).transpose(1, 0, 2)
        scores = np.exp(heads @ heads.transpose(0, 2, 1) / np.sqrt(size // 2))
        expected = (scores / scores.sum(-1, keepdims=True)) @ heads
        got = session.run({"x": x})["y"]
        np.testing.assert_allclose(got, expected.transpose(1, 0, 2).reshape(x.shape), 1e-5, 1e-5)


def test_features_are_cut_or_filled_at_run_time(tmp_path: Path) -> None:
    """FeatureVectorizer of a tensor whose columns only a run counts."""
    made = [
        helper.make_node(
            "FeatureVectorizer", ["x", "x"], ["y"], domain="ai.onnx.ml", inputdimensions=[2, 4]
        )
    ]
    session = _session(made, ["n", "k"], tmp_path / "m.ingot")
    for size in (1, 3, 5):
        x = _RNG.standard_normal((2, size)).astype(np.float32)
        filled = np.pad(x, ((0, 0), (0, 4)))
        expected = np.concatenate([filled[:, :2], filled[:, :4]], 1)
        np.testing.assert_array_equal(session.run({"x": x})["y"], expected)
