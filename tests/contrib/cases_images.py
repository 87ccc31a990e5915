"""Ops of com.microsoft on images and signals.

In: nothing. Out: ``CASES``. Not done here: running them.
"""

from __future__ import annotations

from math import ceil, floor

import numpy as np
from tests.contrib.contrib_case import Array, ContribCase, drawn, f32

_IMAGES = drawn(2, 3, 5, 7)
_REGIONS = f32([[0.1, 0.2, 0.9, 0.7], [0, 0, 1, 1], [-0.3, 0.5, 0.6, 1.2], [0.8, 0.9, 0.2, 0.1]])
_OWNERS = np.array([1, 0, 1, 0], np.int32)


def _place(first: float, last: float, size: int, samples: int, number: int) -> float:
    if samples == 1:
        return (first + last) / 2 * (size - 1)
    return first * (size - 1) + number * (last - first) * (size - 1) / (samples - 1)


def _crops(rows: int, columns: int, *, is_nearest: bool, outside: float) -> Array:
    """Sample by sample, in f64."""
    height, width = _IMAGES.shape[2:]
    result = np.full((len(_REGIONS), 3, rows, columns), outside)
    for r, (top, left, bottom, right) in enumerate(_REGIONS.astype(np.float64)):
        image = _IMAGES[_OWNERS[r]].astype(np.float64)
        for i in range(rows):
            for j in range(columns):
                y = _place(top, bottom, height, rows, i)
                x = _place(left, right, width, columns, j)
                if not (0 <= y <= height - 1 and 0 <= x <= width - 1):
                    continue
                if is_nearest:
                    result[r, :, i, j] = image[:, floor(y + 0.5), floor(x + 0.5)]
                    continue
                pixels = image[:, [floor(y), ceil(y)]][:, :, [floor(x), ceil(x)]]
                line = pixels[:, :, 0] + (pixels[:, :, 1] - pixels[:, :, 0]) * (x - floor(x))
                result[r, :, i, j] = line[:, 0] + (line[:, 1] - line[:, 0]) * (y - floor(y))
    return f32(result)


def _cropped(name: str, rows: int, columns: int, mode: str, outside: float) -> ContribCase:
    return ContribCase(
        f"CropAndResize {name}",
        "CropAndResize",
        [_IMAGES, _REGIONS, _OWNERS, np.array([rows, columns], np.int32)],
        [_crops(rows, columns, is_nearest=mode == "nearest", outside=outside)],
        {"mode": mode, "extrapolation_value": outside},
        constant=(3,),
    )


_SIGNAL, _TAPS, _SHIFT = drawn(1, 2, 4), drawn(2, 1, 3, seed=1), drawn(1, seed=2)


def _transposed(before: int, after: int) -> Array:
    """A transposed convolution of one channel by two steps."""
    result: Array = np.zeros((1, 1, 9))
    for channel in range(2):
        for place in range(4):
            own = _SIGNAL[0, channel, place] * _TAPS[channel, 0]
            result[0, 0, 2 * place : 2 * place + 3] += own
    return f32(result[..., before : 9 - after] + _SHIFT)


_ROWS = drawn(2, 7)
_SLICES = np.stack([_ROWS[:, at : at + 3] for at in (0, 2, 4)], 1)
CASES = [
    _cropped("bilinear", 3, 4, "bilinear", 0.5),
    _cropped("of one sample", 1, 2, "bilinear", 0.0),
    _cropped("nearest", 4, 3, "nearest", -1.0),
    ContribCase(
        "ConvTransposeWithDynamicPads",
        "ConvTransposeWithDynamicPads",
        [_SIGNAL, _TAPS, np.array([1, 2]), _SHIFT],
        [_transposed(1, 2)],
        {"strides": [2], "kernel_shape": [3]},
        constant=(2,),
    ),
    ContribCase("UnfoldTensor", "UnfoldTensor", [_ROWS], [_SLICES], {"size": 3, "step": 2}),
    ContribCase(
        "UnfoldTensor of the first axis",
        "UnfoldTensor",
        [_ROWS.T.copy()],
        [np.stack([_ROWS.T[at : at + 2] for at in range(6)]).swapaxes(1, 2)],
        {"size": 2, "dim": 0},
    ),
]
