"""Quantized chains as quantizers write them: the passes over integers must keep what they mean.

In: a ``Drawing``. Out: it, with the chain. Not done here: chains of floats (``patterns``).

Where rounding decides between two integers the drawing takes the chain back (``reference.JUMPS``):
steps are coarse enough that many chains are left.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.fuzz.drawing import Drawing, NotNowError
from tests.fuzz.program import Array
from tests.fuzz.single_ops import image

_BYTES = ("uint8", "int8")
_STEPS = (9, 24, 60)  # between 0 and the largest number


def _zero(d: Drawing, dtype: str) -> Array:
    """A zero point: often 0, the least, the greatest or beside the middle."""
    limits = np.iinfo(dtype)
    edges = (0, limits.min, limits.max, (limits.min + limits.max) // 2)
    number = d.one_of(edges) if d.chance(0.5) else d.integer(limits.min, limits.max)
    return np.array(number, dtype)


def _integers(d: Drawing, x: str) -> tuple[str, str, str]:
    """x quantized, with the names of its scale and zero point."""
    array = d.array(x)
    if array.dtype != np.float32 or not 0 < array.size <= 256 or not np.isfinite(array).all():
        raise NotNowError
    largest = float(np.abs(array).max(initial=0.0)) or 1.0
    step = np.float32(largest / d.one_of(_STEPS) * d.random.uniform(0.8, 1.2))
    middle = (
        np.array(d.integer(100, 150), np.uint8) if d.chance(0.6) else _zero(d, d.one_of(_BYTES))
    )
    scale, zero = d.constant(step), d.constant(middle)
    return d.add("QuantizeLinear", x, scale, zero), scale, zero


def _again(d: Drawing, x: str) -> str:
    """x through integers and back."""
    return d.add("DequantizeLinear", *_integers(d, x))


def _weights(d: Drawing, shape: tuple[int, ...], axis: int) -> str:
    """Stored integers behind DequantizeLinear, with a scale for each output or one."""
    dtype: str = d.one_of(_BYTES)
    limits = np.iinfo(dtype)
    integers = d.random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    count = (shape[axis],) if d.chance(0.6) else ()
    scale = d.random.uniform(0.002, 0.01, count).astype(np.float32)
    middle: Any = 0 if dtype == "int8" else 128
    zero = np.full(count, middle if d.chance(0.7) else d.integer(limits.min, limits.max), dtype)
    operands = (d.constant(integers), d.constant(scale), d.constant(zero))
    return d.add("DequantizeLinear", *operands, axis=axis)


def product(d: Drawing) -> None:
    """A product of quantized operands, perhaps a bias and a limit, quantized."""
    x = d.pick(lambda array: array.dtype == np.float32 and array.ndim >= 2)
    rows, columns = d.shape(x)[-1], d.integer(1, 9)
    transposed = d.array(x).ndim == 2 and d.chance(0.4)
    if transposed:
        y = d.add("Gemm", _again(d, x), _weights(d, (columns, rows), 0), transB=1)
    else:
        y = d.add("MatMul", _again(d, x), _weights(d, (rows, columns), 1))
    if d.chance(0.4):
        y = d.add("Add", y, d.weights((columns,), np.float32))
    if d.chance(0.4):
        y = d.add("Relu", y)
    _again(d, y)


def convolution(d: Drawing) -> None:
    """A convolution of a quantized image, quantized; perhaps added to the image. Whatever stands
    around the image stands for its zero point: each side has pads of its own."""
    x = image(d)
    n, rank = d.shape(x)[1], d.array(x).ndim - 2
    groups = n if d.chance(0.3) else 2 if n % 2 == 0 and d.chance(0.3) else 1
    kernel = [d.one_of((1, 2, 3)) for _ in range(rank)]
    window: dict[str, Any] = {
        "pads": [d.integer(0, 2) for _ in range(2 * rank)],
        "strides": [d.one_of((1, 1, 2)) for _ in range(rank)],
        "dilations": [d.one_of((1, 1, 2)) for _ in range(rank)],
    }
    if d.chance(0.4):  # the size stays
        kernel, window = [d.one_of((1, 3))] * rank, {"pads": [0] * (2 * rank)}
        window["pads"] = [kernel[0] // 2] * (2 * rank)
    own = _again(d, x)
    w = _weights(d, (n, n // groups, *kernel), 0)
    bias = (d.weights((n,), np.float32),) if d.chance(0.5) else ()
    y = d.add("Conv", own, w, *bias, group=groups, **window)
    y = _again(d, d.add("Relu", y) if d.chance(0.4) else y)
    if d.chance(0.5) and d.shape(y) == d.shape(x):
        _again(d, d.add("Add", own, y))


def window(d: Drawing) -> None:
    """A transposed convolution or a pool of a quantized image."""
    x = image(d)
    n, rank = d.shape(x)[1], d.array(x).ndim - 2
    own, kernel = _again(d, x), [d.one_of((2, 3)) for _ in range(rank)]
    told: dict[str, Any] = {
        "pads": [d.integer(0, 1) for _ in range(2 * rank)],
        "strides": [d.one_of((1, 2)) for _ in range(rank)],
    }
    kind = d.integer(0, 2)
    if kind == 0:
        y = d.add("ConvTranspose", own, _weights(d, (n, 3, *kernel), 1), **told)
    else:
        op = "MaxPool" if kind == 1 else "AveragePool"
        if op == "MaxPool":  # onnx.reference mixes up the axes and sides of its pads
            told["pads"] = [d.integer(0, 1)] * (2 * rank)
        y = d.add(op, own, kernel_shape=kernel, **told)
    _again(d, y)


def scores(d: Drawing) -> None:
    """A product of two quantized values that are made when the model runs."""
    x = d.pick(lambda array: array.dtype == np.float32 and array.ndim >= 2)
    order = [*range(d.array(x).ndim - 2), d.array(x).ndim - 1, d.array(x).ndim - 2]
    left, right = _again(d, x), _again(d, d.add("Transpose", x, perm=order))
    y = _again(d, d.add("MatMul", left, right))
    if d.chance(0.5):
        _again(d, d.add("Softmax", y, axis=-1))


def movement(d: Drawing) -> None:
    """Quantized values moved, joined, padded and quantized again."""
    x = _again(d, d.pick(lambda array: array.dtype == np.float32 and array.ndim >= 1))
    rank = d.array(x).ndim
    kind = d.integer(0, 4)
    if kind == 0:
        y = d.add("Transpose", x, perm=list(d.random.permutation(rank)))
    elif kind == 1:
        y = d.add("Concat", x, _again(d, x) if d.chance(0.5) else x, axis=d.integer(0, rank - 1))
    elif kind == 2:
        y = d.add("Reshape", x, d.ints(-1))
    elif kind == 3:
        y = d.add("Pad", x, d.ints(*(d.integer(0, 2) for _ in range(2 * rank))))
    else:
        y = d.add("Slice", x, d.ints(0), d.ints(2), d.ints(rank - 1))
    _again(d, y)


def integer_ops(d: Drawing) -> None:
    """MatMulInteger or QLinearMatMul of a quantized operand."""
    x = d.pick(lambda array: array.dtype == np.float32 and array.ndim == 2)
    q, scale, zero = _integers(d, x)
    dtype: str = d.one_of(_BYTES)
    limits = np.iinfo(dtype)
    shape = (d.shape(x)[1], d.integer(1, 9))
    w = d.constant(d.random.integers(limits.min, limits.max, shape, dtype, endpoint=True))
    w_zero = d.constant(_zero(d, dtype))
    if d.chance(0.5):
        d.add("MatMulInteger", q, w, zero, w_zero)
        return
    step = float(d.array(scale)) * 40
    parameters = (d.constant(np.float32(0.01)), w_zero, d.constant(np.float32(step)))
    d.add("QLinearMatMul", q, scale, zero, w, *parameters, d.constant(_zero(d, d.one_of(_BYTES))))


QUANTIZED = (product, product, convolution, convolution, window, scores, movement, integer_ops)
