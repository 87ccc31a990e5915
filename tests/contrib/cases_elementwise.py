"""Elementwise ops, normalisations and embeddings of com.microsoft.

In: nothing. Out: ``CASES``. Not done here: running them.
"""

from __future__ import annotations

import math

import numpy as np
from tests.contrib.contrib_case import Array, ContribCase, drawn, f32

_ERF = np.vectorize(math.erf)


def gelu(x: Array) -> Array:
    """With the error function."""
    wide = x.astype(np.float64)
    return f32(wide * (1 + _ERF(wide / math.sqrt(2))) / 2)


def tanh_gelu(x: Array) -> Array:
    """With tanh."""
    wide = x.astype(np.float64)
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
    return f32(wide * (1 + np.tanh(inner)) / 2)


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x)."""
    return f32(1 / (1 + np.exp(-x.astype(np.float64))))


def layer_norm(x: Array, scale: Array, shift: Array, epsilon: float) -> Array:
    """Over the last axis."""
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    return f32(centred / np.sqrt(variance + epsilon) * scale + shift)


def rms_norm(x: Array, scale: Array, epsilon: float) -> Array:
    """Over the last axis."""
    wide = x.astype(np.float64)
    mean = (wide**2).mean(-1, keepdims=True)
    return f32(wide / np.sqrt(mean + epsilon) * scale)


def group_norm(x: Array, groups: int, scale: Array, shift: Array, epsilon: float) -> Array:
    """Of x[N, H, W, C]."""
    wide = x.astype(np.float64)
    parts = wide.reshape(*wide.shape[:3], groups, -1)
    centred = parts - parts.mean((1, 2, 4), keepdims=True)
    normal = centred / np.sqrt((centred**2).mean((1, 2, 4), keepdims=True) + epsilon)
    return f32(normal.reshape(x.shape) * scale + shift)


_X, _BIAS, _SKIP = drawn(2, 3, 8), drawn(8, seed=1), drawn(2, 3, 8, seed=2)
_SCALE, _SHIFT = drawn(8, seed=3), drawn(8, seed=4)
_SUM, _ALL = _X + _SKIP, _X + _SKIP + _BIAS
_LEFT, _RIGHT = np.split(_X + _BIAS, 2, axis=-1)
_SCORES = drawn(2, 3, 4, 5)
_IMAGE, _RESIDUAL = drawn(2, 3, 5, 8), drawn(2, 8, seed=5)


def _softmax(x: Array, axes: tuple[int, ...]) -> Array:
    powers = np.exp(x - x.max(axes, keepdims=True))
    return np.asarray(powers / powers.sum(axes, keepdims=True))


def _moments(x: Array, epsilon: float) -> tuple[Array, Array]:
    mean = x.mean(-1, keepdims=True, dtype=np.float32)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return mean, f32(1 / np.sqrt(variance + epsilon))


_ACTIVATIONS = [
    ContribCase("Gelu", "Gelu", [_X], [gelu(_X)]),
    ContribCase("BiasGelu", "BiasGelu", [_X, _BIAS], [gelu(_X + _BIAS)]),
    ContribCase("FastGelu", "FastGelu", [_X], [tanh_gelu(_X)]),
    ContribCase("FastGelu with a bias", "FastGelu", [_X, _BIAS], [tanh_gelu(_X + _BIAS)]),
    ContribCase("QuickGelu", "QuickGelu", [_X], [_X * sigmoid(1.702 * _X)]),
    ContribCase("QuickGelu alpha", "QuickGelu", [_X], [_X * sigmoid(_X)], {"alpha": 1.0}),
    ContribCase(
        "BiasSplitGelu", "BiasSplitGelu", [_X, _BIAS], [_LEFT * gelu(_RIGHT)], is_numpy_only=True
    ),
    ContribCase("BiasAdd", "BiasAdd", [_X, _BIAS, _SKIP], [_ALL], is_numpy_only=True),
    ContribCase(
        "BiasSoftmax outer",
        "BiasSoftmax",
        [_SCORES, _SCORES[:1, :1]],
        [_softmax(_SCORES + _SCORES[:1, :1], (3,))],
        {"axis": 3, "is_inner_broadcast": 0},
        is_numpy_only=True,
    ),
    ContribCase(
        "BiasSoftmax inner",
        "BiasSoftmax",
        [_SCORES, _SCORES[:, 0, 0]],
        [_softmax(_SCORES + _SCORES[:, :1, :1], (3,))],
        {"axis": 3, "is_inner_broadcast": 1},
        is_numpy_only=True,
    ),
    ContribCase(
        "BiasSoftmax of two axes",
        "BiasSoftmax",
        [_SCORES, _SCORES],
        [_softmax(2 * _SCORES, (2, 3))],
        {"axis": 2, "is_inner_broadcast": 0},
        is_numpy_only=True,
    ),
]

_NORMS = [
    ContribCase(
        "SkipLayerNormalization",
        "SkipLayerNormalization",
        [_X, _SKIP, _SCALE, _SHIFT],
        [layer_norm(_SUM, _SCALE, _SHIFT, 1e-12)],
    ),
    ContribCase(
        "SkipLayerNormalization without a shift",
        "SkipLayerNormalization",
        [_X, _SKIP[0], _SCALE],
        [layer_norm(_X + _SKIP[0], _SCALE, 0 * _SHIFT, 0.5)],
        {"epsilon": 0.5},
    ),
    ContribCase(
        "SkipLayerNormalization with the sum",
        "SkipLayerNormalization",
        [_X, _SKIP[:1], _SCALE, _SHIFT, _BIAS],
        [
            layer_norm(_X + _SKIP[:1] + _BIAS, _SCALE, _SHIFT, 1e-12),
            None,
            None,
            _X + _SKIP[:1] + _BIAS,
        ],
    ),
    ContribCase(
        "SkipLayerNormalization with moments",
        "SkipLayerNormalization",
        [_X, _SKIP, _SCALE, _SHIFT, _BIAS],
        [layer_norm(_ALL, _SCALE, _SHIFT, 1e-12), *_moments(_ALL, 1e-12), _ALL],
        is_numpy_only=True,
    ),
    ContribCase(
        "SimplifiedLayerNormalization",
        "SimplifiedLayerNormalization",
        [_X, _SCALE],
        [rms_norm(_X, _SCALE, 1e-5)],
        {"axis": -1},
        domain="",
    ),
    ContribCase(
        "SimplifiedLayerNormalization with its factors",
        "SimplifiedLayerNormalization",
        [_X, _SCALE],
        [
            rms_norm(_X, _SCALE, 0.25),
            (1 / np.sqrt((_X**2).mean(-1, keepdims=True) + 0.25)).astype(np.float32),
        ],
        {"axis": -1, "epsilon": 0.25},
        domain="",
        is_numpy_only=True,
    ),
    ContribCase(
        "SkipSimplifiedLayerNormalization",
        "SkipSimplifiedLayerNormalization",
        [_X, _SKIP, _SCALE],
        [rms_norm(_SUM, _SCALE, 1e-5), None, None, _SUM],
        {"epsilon": 1e-5},
    ),
    ContribCase(
        "SkipSimplifiedLayerNormalization with a bias",
        "SkipSimplifiedLayerNormalization",
        [_X, _SKIP, _SCALE, _BIAS],
        [rms_norm(_ALL, _SCALE, 1e-5), None, None, _ALL],
        {"epsilon": 1e-5},
    ),
    ContribCase(
        "LayerNormalization before opset 17",
        "LayerNormalization",
        [_X, _SCALE, _SHIFT],
        [layer_norm(_X, _SCALE, _SHIFT, 1e-5)],
        {"axis": -1},
        domain="",
        opset=13,
    ),
]

_NORMAL = group_norm(_IMAGE, 4, _SCALE, _SHIFT, 0.5)
_GROUPS = [
    ContribCase(
        "GroupNorm",
        "GroupNorm",
        [_IMAGE, _SCALE, _SHIFT],
        [group_norm(_IMAGE, 2, _SCALE, _SHIFT, 1e-5)],
        {"activation": 0, "groups": 2},
        is_numpy_only=True,
    ),
    ContribCase(
        "GroupNorm channels first with SiLU",
        "GroupNorm",
        [_IMAGE.transpose(0, 3, 1, 2), _SCALE, _SHIFT],
        [(_NORMAL * sigmoid(_NORMAL)).transpose(0, 3, 1, 2)],
        {"activation": 1, "groups": 4, "channels_last": 0, "epsilon": 0.5},
        is_numpy_only=True,
    ),
    ContribCase(
        "SkipGroupNorm",
        "SkipGroupNorm",
        [_IMAGE, _SCALE, _SHIFT, _RESIDUAL, _BIAS],
        [
            group_norm(_IMAGE + _RESIDUAL[:, None, None] + _BIAS, 2, _SCALE, _SHIFT, 1e-5),
            _IMAGE + _RESIDUAL[:, None, None] + _BIAS,
        ],
        {"activation": 0, "groups": 2},
        is_numpy_only=True,
    ),
    ContribCase(
        "SkipGroupNorm channels first",
        "SkipGroupNorm",
        [_IMAGE.transpose(0, 3, 1, 2), _SCALE, _SHIFT, _IMAGE.transpose(0, 3, 1, 2), _BIAS],
        [
            group_norm(2 * _IMAGE + _BIAS, 2, _SCALE, _SHIFT, 1e-5).transpose(0, 3, 1, 2),
            (2 * _IMAGE + _BIAS).transpose(0, 3, 1, 2),
        ],
        {"activation": 0, "groups": 2, "channels_last": 0},
        is_numpy_only=True,
    ),
]

_WORDS = np.array([[1, 5, 2], [0, 3, 3]], np.int32)
_SEGMENTS = np.array([[0, 0, 1], [1, 0, 0]], np.int32)
_MASK = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
_TABLES = drawn(7, 8, seed=6), drawn(4, 8, seed=7), drawn(2, 8, seed=8)
_EMBEDDED = _TABLES[0][_WORDS] + _TABLES[1][:3]
_PLACED = _TABLES[0][_WORDS] + _TABLES[1][_WORDS % 4]
_THREE = _EMBEDDED + _TABLES[2][_SEGMENTS]
_EMBEDDINGS = [
    ContribCase(
        "EmbedLayerNormalization",
        "EmbedLayerNormalization",
        [_WORDS, _SEGMENTS, *_TABLES, _SCALE, _SHIFT, _MASK],
        [layer_norm(_THREE, _SCALE, _SHIFT, 1e-12), np.array([2, 3], np.int32), _THREE],
        constant=(2, 3, 4, 5, 6),
    ),
    ContribCase(
        "EmbedLayerNormalization without segments and mask",
        "EmbedLayerNormalization",
        [_WORDS, None, *_TABLES[:2], None, _SCALE, _SHIFT],
        [layer_norm(_EMBEDDED, _SCALE, _SHIFT, 0.5), np.zeros(2, np.int32)],
        {"epsilon": 0.5},
    ),
    ContribCase(
        "EmbedLayerNormalization with positions",
        "EmbedLayerNormalization",
        [_WORDS, None, *_TABLES[:2], None, _SCALE, _SHIFT, None, _WORDS % 4],
        [layer_norm(_PLACED, _SCALE, _SHIFT, 1e-12), np.zeros(2, np.int32)],
    ),
]
CASES = [*_ACTIVATIONS, *_NORMS, *_GROUPS, *_EMBEDDINGS]
