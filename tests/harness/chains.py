"""What one chain of multiply-adds in f32 gives, the error of which is promised not to be exceeded.

In: factors. Out: results of products and convolutions. Not done here: sums in blocks, which kernels
compute (``test_sum_blocks``).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]


def chain_of_steps(a: Array, b: Array, steps: Iterable[int]) -> Array:
    """Sums from 0 of ``a[row, k] * b[k, column]`` over some k: each step is computed in f64, where a
    product of f32 is exact, and rounded to f32."""
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for k in steps:
        total = (total + np.multiply.outer(a[:, k], b[k], dtype=np.float64)).astype(np.float32)
    return total


def chain_product(a: Array, b: Array) -> Array:
    """``a @ b``, each element one chain."""
    return chain_of_steps(a, b, range(a.shape[1]))


def chain_conv(x: Array, weights: Array) -> Array:
    """A convolution that keeps the size, with zeros around the image, each element one chain over
    taps, then channels."""
    taps = weights.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), *((size // 2, size // 2) for size in taps)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, taps, (2, 3))
    rows = windows.transpose(0, 2, 3, 4, 5, 1).reshape(x[:, 0].size, -1)
    columns = weights.transpose(2, 3, 1, 0).reshape(-1, len(weights))
    found = chain_product(rows, columns).reshape(len(x), *x.shape[2:], -1)
    return np.ascontiguousarray(found.transpose(0, 3, 1, 2))
