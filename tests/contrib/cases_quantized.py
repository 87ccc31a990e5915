"""Quantized ops of com.microsoft, by numpy: what the operands stand for, quantized again.

In: nothing. Out: ``CASES``. Not done here: running them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.contrib.cases_attention import LOWEST, attention, heads_of, scores_of
from tests.contrib.contrib_case import Array, ContribCase, drawn

Numbers = tuple[Array, Array, Array]
"""Integers, their scale, their zero point."""


def _numbers(seed: int, *shape: int, dtype: Any = np.uint8, scale: float = 0.0213) -> Numbers:
    limits = np.iinfo(dtype)
    integers = np.random.RandomState(seed).randint(limits.min, limits.max + 1, shape)
    zero = limits.min + 117 + seed
    return integers.astype(dtype), np.array(scale, np.float32), np.array(zero, dtype)


def _floats(numbers: Numbers) -> Array:
    integers, scale, zero = numbers
    found: Array = (integers.astype(np.float64) - zero) * scale
    return found


def _quantized(y: Array, scale: float, zero: int, dtype: Any = np.uint8) -> Array:
    limits = np.iinfo(dtype)
    found: Array = np.clip(np.rint(y / np.float32(scale)) + zero, limits.min, limits.max)
    return found.astype(dtype)


def _result(scale: float, zero: int, dtype: Any = np.uint8) -> list[Array]:
    return [np.array(scale, np.float32), np.array(zero, dtype)]


def _case(
    name: str, op: str, operands: list[Array | None], y: Array, **attributes: Any
) -> ContribCase:
    present = {at: operand for at, operand in enumerate(operands) if operand is not None}
    constant = [at for at, operand in present.items() if at and operand.ndim == 0]
    tolerance = 0.0 if y.dtype.kind in "iu" else 1e-5
    return ContribCase(f"{op} {name}", op, operands, [y], attributes, constant, tolerance=tolerance)


_A, _B = _numbers(1, 2, 3, 4), _numbers(2, 3, 1, scale=0.0171)
_S = _numbers(3, 2, 3, 4, dtype=np.int8, scale=0.0093)
_IMAGE = _numbers(4, 1, 3, 6, 5)
_X = _floats(_A)
_MEAN = _floats(_IMAGE).mean((2, 3), keepdims=True)
_LAST = (np.moveaxis(_IMAGE[0], 1, -1), *_IMAGE[1:])
_WINDOWS = np.lib.stride_tricks.sliding_window_view(_floats(_IMAGE), (2, 3), (2, 3))
_EXP = np.exp(_X - _X.max(-1, keepdims=True))
_SOFT = _EXP / _EXP.sum(-1, keepdims=True)
_MATRIX = np.exp(_X - _X.max((1, 2), keepdims=True))
_SOFT_MATRIX = _MATRIX / _MATRIX.sum((1, 2), keepdims=True)
_CHOICE = drawn(2, 3, 4) > 0

_ELEMENTWISE = [
    _case("", "QLinearAdd", [*_A, *_B, *_result(0.031, 99)],
          _quantized(_X + _floats(_B), 0.031, 99)),
    _case("i8", "QLinearAdd", [*_S, *_S, *_result(0.017, -5, np.int8)],
          _quantized(2 * _floats(_S), 0.017, -5, np.int8)),
    _case("", "QLinearMul", [*_A, *_B, *_result(0.043, 99)],
          _quantized(_X * _floats(_B), 0.043, 99)),
    _case("", "QLinearSigmoid", [*_A, *_result(1 / 256, 0)],
          _quantized(1 / (1 + np.exp(-_X)), 1 / 256, 0)),
    _case("", "QLinearLeakyRelu", [*_A, *_result(0.019, 40)],
          _quantized(np.where(_X < 0, 0.3 * _X, _X), 0.019, 40), alpha=0.3),
    _case("", "QLinearWhere", [_CHOICE, *_A, *_A[:1], *_B[1:], *_result(0.023, 90)],
          _quantized(np.where(_CHOICE, _X, _floats((_A[0], *_B[1:]))), 0.023, 90)),
    _case("", "QLinearConcat", [*_result(0.021, 100), *_A, *_A[:1], *_B[1:]],
          _quantized(np.concatenate([_X, _floats((_A[0], *_B[1:]))], 1), 0.021, 100), axis=1),
]  # fmt: skip
_WHOLE = [
    _case("", "QLinearSoftmax", [*_A, *_result(1 / 256, 0)],
          _quantized(_SOFT, 1 / 256, 0), opset=13, axis=-1),
    _case("of matrices", "QLinearSoftmax", [*_A, *_result(1 / 256, 0)],
          _quantized(_SOFT_MATRIX, 1 / 256, 0), opset=12, axis=1),
    _case("", "QLinearGlobalAveragePool", [*_IMAGE, *_result(0.011, 120)],
          _quantized(_MEAN, 0.011, 120)),
    _case("channels last", "QLinearGlobalAveragePool", [*_LAST, *_result(0.011, 120)],
          _quantized(np.moveaxis(_MEAN, 1, -1), 0.011, 120), channels_last=1),
    _case("", "QLinearAveragePool", [*_IMAGE, *_result(0.015, 120)],
          _quantized(_WINDOWS.mean((-1, -2)), 0.015, 120), kernel_shape=[2, 3]),
    _case("channels last", "QLinearAveragePool", [*_LAST, *_result(0.015, 120)],
          _quantized(np.moveaxis(_WINDOWS.mean((-1, -2)), 1, -1), 0.015, 120),
          kernel_shape=[2, 3], channels_last=1),
    _case("", "QuantizeLinear", [drawn(3, 4), *_result(0.021, 100)],
          _quantized(drawn(3, 4).astype(np.float64), 0.021, 100)),
    _case("", "DequantizeLinear", [*_A], _X.astype(np.float32)),
]  # fmt: skip

_FILTERS = _numbers(8, 4, 3, 2, 3, dtype=np.int8, scale=0.0131)
_SHIFTS = np.array([-900, 100, 0, 700], np.int32)
_STEP = np.float64(_IMAGE[1]) * np.float64(_FILTERS[1])
_FILTERED = (
    np.einsum("nchwij,ocij->nohw", _WINDOWS, _floats(_FILTERS)) + (_SHIFTS * _STEP)[:, None, None]
)
_CONVOLUTIONS = [
    _case("", "QLinearConv", [*_IMAGE, *_FILTERS, *_result(0.11, 120), _SHIFTS],
          _quantized(_FILTERED, 0.11, 120)),
    _case("channels last", "QLinearConv", [*_LAST, *_FILTERS, *_result(0.11, 120), _SHIFTS],
          _quantized(np.moveaxis(_FILTERED, 1, -1), 0.11, 120), channels_last=1),
]  # fmt: skip
_SHORTS = np.array([[300, -32768, 7], [32767, 1, -1]], np.int16)
_WIDE = [
    ContribCase(
        "MatMulInteger16", "MatMulInteger16", [_SHORTS, _SHORTS.T.copy()],
        [_SHORTS.astype(np.int32) @ _SHORTS.T.astype(np.int32)],
    ),
]  # fmt: skip

_LEFT, _RIGHT = _numbers(5, 7, 9), _numbers(6, 9, 5, dtype=np.int8, scale=0.011)
_ZERO = np.array(0, np.int8)
_COLUMNS = np.linspace(0.004, 0.012, 5).astype(np.float32)
_PER_COLUMN: Numbers = (_RIGHT[0], _COLUMNS, np.zeros(5, np.int8))
_BIAS = np.arange(-200, 300, 100).astype(np.int32)
_PRODUCT = _floats(_LEFT) @ _floats(_RIGHT)
_BY_COLUMN = _floats(_LEFT) @ _floats(_PER_COLUMN)
_FLOAT_BIAS = drawn(5)
_OWN = drawn(7, 9)


def _range(x: Array) -> tuple[Array, float, float]:
    """DynamicQuantizeLinear: integers, scale, zero point."""
    low, high = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
    scale = (high - low) / 255 or 1.0  # a tensor of zeros
    zero = float(np.rint(-low / scale))
    return np.clip(np.rint(x / scale) + zero, 0, 255), scale, zero


def _dynamic(x: Array, w: Array) -> Array:
    integers, scale, zero = _range(x)
    return (((integers - zero) * scale) @ w).astype(np.float32)


_PRODUCTS = [
    _case("", "QGemm", [*_LEFT, *_RIGHT, _BIAS, *_result(0.09, 130)],
          _quantized(_PRODUCT + _BIAS * _LEFT[1] * _RIGHT[1], 0.09, 130)),
    _case("columns, B', floats", "QGemm",
          [*_LEFT, _RIGHT[0].T.copy(), _COLUMNS, np.zeros(5, np.int8), _BIAS],
          (_BY_COLUMN + _BIAS * _LEFT[1] * _COLUMNS).astype(np.float32), transB=1),
    _case("A', alpha, no bias", "QGemm",
          [_LEFT[0].T.copy(), *_LEFT[1:], *_RIGHT, None, *_result(0.05, 130)],
          _quantized(0.5 * _PRODUCT, 0.05, 130), transA=1, alpha=0.5),
    _case("", "MatMulIntegerToFloat",
          [_LEFT[0], _RIGHT[0], _LEFT[1], _RIGHT[1], _LEFT[2], _RIGHT[2], _FLOAT_BIAS],
          (_PRODUCT + _FLOAT_BIAS).astype(np.float32)),
    _case("columns", "MatMulIntegerToFloat",
          [_LEFT[0], _RIGHT[0], _LEFT[1], _COLUMNS, _LEFT[2]], _BY_COLUMN.astype(np.float32)),
    _case("", "DynamicQuantizeMatMul",
          [_OWN, _RIGHT[0], _RIGHT[1], _RIGHT[2], _FLOAT_BIAS],
          _dynamic(_OWN, _floats(_RIGHT)) + _FLOAT_BIAS),
    _case("columns", "DynamicQuantizeMatMul", [_OWN, _RIGHT[0], _COLUMNS],
          _dynamic(_OWN, _floats(_PER_COLUMN))),
]  # fmt: skip


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _by_row(h: Array) -> Array:
    """Each row as what its integers stand for."""
    found = [_range(row) for row in h]
    return np.stack([(integers - zero) * scale for integers, scale, zero in found])


def _lstm(x: Array, w: Array, r: Array, bias: Array, state: Callable[[Array], Array]) -> Array:
    """Y of two directions; gates in ONNX's order: input, output, forget, cell."""
    steps, batch, _ = x.shape
    size = r.shape[1]
    y = np.zeros((steps, 2, batch, size))
    for direction, order in enumerate((range(steps), range(steps)[::-1])):
        h = c = np.zeros((batch, size))
        own = bias[direction].reshape(2, -1).sum(0)
        for step in order:
            gates = x[step] @ w[direction] + state(h) @ r[direction] + own
            i, o, f, g = (gates[:, at : at + size] for at in range(0, 4 * size, size))
            c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
            h = _sigmoid(o) * np.tanh(c)
            y[step, direction] = h
    return y.astype(np.float32)


def _lstm_case(
    name: str,
    scales: Array,
    batch: int = 1,
    dtype: Any = np.int8,
    zero: int = 0,
    state: Callable[[Array], Array] = _by_row,
    **options: Any,
) -> ContribCase:
    """``zero``: the zero point of both weights."""
    random, limits = np.random.RandomState(11), np.iinfo(dtype)
    x = drawn(6, batch, 5)
    w, r = (
        random.randint(limits.min + 1, limits.max + 1, (2, rows, 12)).astype(dtype)
        for rows in (5, 3)
    )
    bias = drawn(2, 24, scale=0.2)
    zeros = np.full(scales.shape, zero, dtype)
    own = scales.reshape(2, 1, -1).astype(np.float64)
    integers, scale, point = _range(x)
    w_floats, r_floats = ((weights.astype(np.float64) - zero) * own for weights in (w, r))
    expected = _lstm((integers - point) * scale, w_floats, r_floats, bias, state)
    operands = [x, w, r, bias, None, None, None, None, scales, zeros, scales, zeros]
    attributes = {"hidden_size": 3, "direction": "bidirectional"}
    stored = (1, 2, 3, 8, 9, 10, 11)
    return ContribCase(
        f"DynamicQuantizeLSTM {name}",
        "DynamicQuantizeLSTM",
        operands,
        [expected],
        attributes,
        stored,
        **options,
    )


_DIRECTIONS = np.array([0.007, 0.005], np.float32)
_GATES = np.linspace(0.004, 0.008, 24).reshape(2, 12).astype(np.float32)
# ONNX Runtime quantizes the rows of a state together: 5e-4 here.
_LAYERS = [
    _lstm_case("directions", _DIRECTIONS),
    _lstm_case("columns", _GATES),
    _lstm_case("rows", _GATES, batch=2, tolerance=1e-3),
    _lstm_case("unsigned", _DIRECTIONS, dtype=np.uint8, zero=128),
    _lstm_case(
        "in floats", _DIRECTIONS, dtype=np.uint8, zero=126, state=np.asarray, tolerance=1e-3
    ),
]
_WORDS = _numbers(7, 2, 5, 12)
_PROJECTION = _numbers(8, 12, 24, dtype=np.int8, scale=0.009)
_WIDTHS = np.linspace(0.004, 0.012, 24).astype(np.float32)
_OFFSETS = drawn(24, scale=0.1)
_KEPT = np.array([5, 3], np.int32)


def _attended(weights: Array, added: Array | float = 0.0) -> Array:
    """Two heads of four numbers."""
    projected = _floats(_WORDS) @ weights + _OFFSETS
    q, k, v = (heads_of(part, 2) for part in np.split(projected, 3, -1))
    return attention(scores_of(q, k), v, added)


_LENGTHS = np.where(np.arange(5) < _KEPT[:, None], 0.0, LOWEST)[:, None, None]
_HEADS = [
    ContribCase("QAttention", "QAttention",
          [_WORDS[0], _PROJECTION[0], _OFFSETS, _WORDS[1], _PROJECTION[1], _KEPT, _WORDS[2],
           _PROJECTION[2]],
          [_attended(_floats(_PROJECTION), _LENGTHS)], {"num_heads": 2}, (1, 2, 3, 4, 6, 7)),
    ContribCase("QAttention columns", "QAttention",
          [_WORDS[0], _PROJECTION[0], _OFFSETS, _WORDS[1], _WIDTHS, None, _WORDS[2]],
          [_attended(_PROJECTION[0] * _WIDTHS)], {"num_heads": 2}, (1, 2, 3, 4, 6)),
]  # fmt: skip
CASES = [*_HEADS, *_LAYERS, *_ELEMENTWISE, *_WHOLE, *_CONVOLUTIONS, *_WIDE, *_PRODUCTS]
