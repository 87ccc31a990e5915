"""Weights rounded to 4 or 8 bits, with a scale for each block along the depth.

In: a matrix [K, N] of f32, perhaps how large the numbers are that meet each row. Out: codes and
scales. Not done here: which matrices (``weight_layers``), the file (``quantize_model``).

A block of a column is divided by its number of largest magnitude, which becomes the least integer:
no number is beyond the range. With known activations the scale is the best of some smaller ones,
by the squared error of the product.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ingot_runtime.lazy_dataclass import dataclass

Matrix = npt.NDArray[np.float32]
_SHRINKS = tuple(1 - number / 32 for number in range(11))
_COLUMNS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class RoundedWeights:
    """``codes`` u8 [N, K / block, block], unsigned, the middle is 0; ``scales`` f32 [N, K / block];
    ``error``: rms of what rounding changed, by the rms of the weights; of the product's terms,
    where activations are known."""

    codes: npt.NDArray[np.uint8]
    scales: Matrix
    error: float


def round_weights(
    weights: Matrix, bits: int, block: int, squares: npt.NDArray[np.float64] | None = None
) -> RoundedWeights:
    """Round; ``squares`` [K]: the mean square of the activations that meet each row."""
    depth, columns = weights.shape
    importance = np.ones(depth) if squares is None else squares
    shrinks = (1.0,) if squares is None else _SHRINKS
    shaped = importance.reshape(1, -1, block)
    codes = np.empty((columns, depth // block, block), np.uint8)
    scales = np.empty((columns, depth // block), np.float32)
    lost = total = 0.0
    for start in range(0, columns, _COLUMNS_AT_ONCE):
        part = slice(start, start + _COLUMNS_AT_ONCE)
        own = weights[:, part].T.reshape(-1, depth // block, block).astype(np.float64)
        codes[part], scales[part], errors = _best(own, bits, shaped, shrinks)
        lost += float(errors.sum())
        total += float((own * own * shaped).sum())
    return RoundedWeights(codes, scales, (lost / total) ** 0.5 if total else 0.0)


def _best(
    own: npt.NDArray[np.float64],
    bits: int,
    importance: npt.NDArray[np.float64],
    shrinks: tuple[float, ...],
) -> tuple[npt.NDArray[np.uint8], Matrix, npt.NDArray[np.float64]]:
    """Codes and scales of the least error in each block, and that error."""
    half = 1 << (bits - 1)
    at = np.abs(own).argmax(-1, keepdims=True)
    whole = np.take_along_axis(own, at, -1)[..., 0] / -half
    found: list[tuple[npt.NDArray[np.float64], Matrix, npt.NDArray[np.float64]]] = []
    for shrink in shrinks:
        scale = (whole * shrink).astype(np.float32)
        divisor = np.where(scale == 0, 1, scale).astype(np.float64)[..., None]
        numbers = np.clip(np.rint(own / divisor), -half, half - 1)
        apart = own - numbers * scale[..., None].astype(np.float64)
        found.append((numbers, scale, (apart * apart * importance).sum(-1)))
    numbers, scales, errors = found[0]
    for other, scale, error in found[1:]:
        better = error < errors
        numbers = np.where(better[..., None], other, numbers)
        scales, errors = np.where(better, scale, scales), np.minimum(error, errors)
    return (numbers + half).astype(np.uint8), scales, errors
