"""Weights as integers of 8 bits, with one scale for each output, and a bias in their steps.

In: arrays of a layer, the scale of what it multiplies. Out: ``ChannelWeights``. Not done here: the
nodes that read them (``write_integers``).

The zero point is 0 and the largest magnitude 127, so that the other signs are there, too. A bias
has the step of the sums, scale of the activation times scale of the weights; where it would not fit
into 32 bits, the scale of the weights is larger than they need.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ingot_runtime.lazy_dataclass import dataclass

_WEIGHT_MAX = 127
_BIAS_MAX = 1 << 30
_SCALE_MIN = np.float32(1e-30)


@dataclass(frozen=True, slots=True)
class ChannelWeights:
    """``integers`` in the shape of the weights, ``scales`` [outputs], ``bias`` [outputs] and its
    scales, or none."""

    integers: npt.NDArray[np.int8]
    scales: npt.NDArray[np.float32]
    bias: npt.NDArray[np.int32] | None
    bias_scales: npt.NDArray[np.float32]


def channel_weights(
    weights: npt.NDArray[np.float32],
    axis: int,
    activation_scale: float,
    bias: npt.NDArray[np.float32] | None,
) -> ChannelWeights:
    """Round finite weights whose outputs lie along ``axis``."""
    others = tuple(other for other in range(weights.ndim) if other != axis)
    needed = np.abs(weights).max(others).astype(np.float64) / _WEIGHT_MAX
    if bias is not None:
        needed = np.maximum(needed, np.abs(bias) / (activation_scale * _BIAS_MAX))
    scales = np.maximum(needed.astype(np.float32), _SCALE_MIN)
    wide = scales.astype(np.float64).reshape(
        [-1 if at == axis else 1 for at in range(weights.ndim)]
    )
    integers = np.clip(np.rint(weights / wide), -_WEIGHT_MAX, _WEIGHT_MAX).astype(np.int8)
    steps = np.maximum(np.float32(activation_scale) * scales, _SCALE_MIN)
    rounded = None
    if bias is not None:
        limit = float(np.iinfo(np.int32).max)
        rounded = np.clip(np.rint(bias / steps.astype(np.float64)), -limit, limit).astype(np.int32)
    return ChannelWeights(integers, scales, rounded, steps)
