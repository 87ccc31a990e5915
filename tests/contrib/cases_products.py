"""Products and convolutions of com.microsoft.

In: nothing. Out: ``CASES``. Not done here: running them.
"""

from __future__ import annotations

import numpy as np
from tests.contrib.cases_elementwise import sigmoid, tanh_gelu
from tests.contrib.contrib_case import Array, ContribCase, drawn, f32


def _fused_mat_mul(
    name: str, a: Array, b: Array, expected: Array, **attributes: int | float
) -> ContribCase:
    return ContribCase(f"FusedMatMul {name}", "FusedMatMul", [a, b], [expected], attributes)


_A, _B = drawn(3, 4, 5), drawn(3, 5, 2, seed=1)
_FIRST = np.moveaxis(_A, -2, 0)  # the rows before the batch
CASES = [
    _fused_mat_mul("plain", _A, _B, _A @ _B),
    _fused_mat_mul("alpha", _A, _B, np.float32(0.125) * (_A @ _B), alpha=0.125),
    _fused_mat_mul("transA", _A.swapaxes(1, 2), _B, _A @ _B, transA=1),
    _fused_mat_mul("transB", _A, _B.swapaxes(1, 2), _A @ _B, transB=1),
    _fused_mat_mul("transBatchA", _FIRST, _B, _A @ _B, transBatchA=1),
    _fused_mat_mul("both of A", _FIRST.transpose(2, 1, 0), _B, _A @ _B, transBatchA=1, transA=1),
    _fused_mat_mul("transBatchB", _A, np.moveaxis(_B, -2, 0), _A @ _B, transBatchB=1),
    _fused_mat_mul("vector", _A, _B[0, :, 0], _A @ _B[0, :, 0], transB=1),
]


def _clipped(x: Array) -> Array:
    return np.clip(x, -0.25, 0.5)


_W, _C = drawn(5, 6, seed=2), drawn(6, seed=3)
_GEMM = (np.float32(0.5) * (_A[0] @ _W) + np.float32(2) * _C).astype(np.float32)
_ALPHA = {"alpha": 0.5, "beta": 2.0}
_PRODUCTS = [
    ContribCase(
        "TransposeMatMul", "TransposeMatMul", [_A.swapaxes(1, 2), _B], [_A @ _B], {"transA": 1}
    ),
    ContribCase(
        "GemmFastGelu", "GemmFastGelu", [_A, _W, _C], [tanh_gelu(_A @ _W + _C)], is_numpy_only=True
    ),
    ContribCase(
        "FusedMatMulActivation",
        "FusedMatMulActivation",
        [_A, _B],
        [np.maximum(0.5 * (_A @ _B), 0).astype(np.float32)],
        {"activation": "Relu", "alpha": 0.5},
        is_numpy_only=True,
    ),
    *(
        ContribCase(
            f"FusedGemm {name}",
            "FusedGemm",
            [_A[0], _W, _C],
            [function(_GEMM).astype(np.float32)],
            {**_ALPHA, "activation": name, **attributes},
        )
        for name, attributes, function in (
            ("Relu", {}, lambda x: np.maximum(x, 0)),
            ("Tanh", {}, np.tanh),
            ("Sigmoid", {}, sigmoid),
            ("LeakyRelu", {"activation_alpha": 0.3}, lambda x: np.where(x < 0, 0.3 * x, x)),
            ("Elu", {"activation_alpha": 2.0}, lambda x: np.where(x < 0, 2 * np.expm1(x), x)),
            ("Softsign", {}, lambda x: x / (1 + abs(x))),
            (
                "HardSigmoid",
                {"activation_alpha": 0.4, "activation_beta": 0.3},
                lambda x: np.clip(0.4 * x + 0.3, 0, 1),
            ),
        )
    ),
    ContribCase("CDist", "CDist", [_A[0], _A[1]], [((_A[0][:, None] - _A[1]) ** 2).sum(-1)]),
    ContribCase(
        "CDist euclidean",
        "CDist",
        [_A[0], _A[1]],
        [np.sqrt(((_A[0][:, None] - _A[1]) ** 2).sum(-1))],
        {"metric": "euclidean"},
    ),
]


def _conv(x: Array, w: Array, bias: Array) -> Array:
    """A 3x3 convolution of x[N, C, H, W] with pads of 1."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return f32(np.einsum("nchwyx,ocyx->nohw", windows, w) + bias[:, None, None])


_IMAGE, _FILTER, _FILTER_BIAS = drawn(2, 3, 5, 6), drawn(4, 3, 3, 3, seed=1), drawn(4, seed=1)
_CONV = _conv(_IMAGE, _FILTER, _FILTER_BIAS)
_WIDE, _WIDE_FILTER = drawn(2, 5, 5, 6), drawn(4, 5, 3, 3, seed=1)
_NHWC = _IMAGE.transpose(0, 2, 3, 1)
_PADS = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
_WINDOWS = np.lib.stride_tricks.sliding_window_view(_IMAGE, (2, 2), (2, 3)).max((4, 5))
_CONVOLUTIONS = [
    *(
        ContribCase(
            f"FusedConv {name}",
            "FusedConv",
            [_IMAGE, _FILTER, _FILTER_BIAS],
            [function(_CONV).astype(np.float32)],
            {**_PADS, "activation": name, **({"activation_params": values} if values else {})},
            constant=(1, 2),
        )
        for name, values, function in (
            ("Relu", [], lambda x: np.maximum(x, 0)),
            ("Tanh", [], np.tanh),
            ("Sigmoid", [], sigmoid),
            ("LeakyRelu", [0.2], lambda x: np.where(x < 0, 0.2 * x, x)),
            ("Clip", [-0.25, 0.5], _clipped),
            ("HardSigmoid", [0.4, 0.3], lambda x: np.clip(0.4 * x + 0.3, 0, 1)),
        )
    ),
    ContribCase(
        "FusedConv with a residual",
        "FusedConv",
        [_IMAGE, _FILTER, _FILTER_BIAS, _CONV[::-1].copy()],
        [np.maximum(_CONV + _CONV[::-1], 0)],
        {**_PADS, "activation": "Relu"},
        constant=(1, 2),
    ),
    ContribCase(
        "NhwcConv with channels of weights first",
        "NhwcConv",
        [_WIDE.transpose(0, 2, 3, 1), _WIDE_FILTER, _FILTER_BIAS],
        [_conv(_WIDE, _WIDE_FILTER, _FILTER_BIAS).transpose(0, 2, 3, 1)],
        _PADS,
        constant=(1, 2),
        needs_sizes=True,
        is_numpy_only=True,
    ),
    ContribCase(
        "NhwcConv with channels of weights last",
        "NhwcConv",
        [_NHWC, _FILTER.transpose(0, 2, 3, 1), _FILTER_BIAS],
        [_CONV.transpose(0, 2, 3, 1)],
        _PADS,
        constant=(1, 2),
        is_numpy_only=True,
    ),
    ContribCase(
        "NhwcFusedConv",
        "NhwcFusedConv",
        [_NHWC, _FILTER, _FILTER_BIAS, _CONV.transpose(0, 2, 3, 1)],
        [np.tanh(2 * _CONV).transpose(0, 2, 3, 1)],
        {**_PADS, "activation": "Tanh"},
        constant=(1, 2),
        is_numpy_only=True,
    ),
    ContribCase(
        "NhwcMaxPool",
        "NhwcMaxPool",
        [_NHWC],
        [_WINDOWS.transpose(0, 2, 3, 1)],
        {"kernel_shape": [2, 2]},
        is_numpy_only=True,
    ),
]
CASES += [*_PRODUCTS, *_CONVOLUTIONS]
