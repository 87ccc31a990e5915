"""The range of a tensor over some calls, and the scale and zero point of its integers.

In: arrays of f32, one call after the other. Out: ``Parameters``. Not done here: which tensors
(``choose_tensors``), running the model.

``minmax`` takes all numbers; ``percentile`` leaves out the outermost 0.001 % on each side; ``mse``
takes the range of the least squared error. The two last need a second look, by a histogram within
the limits of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

import numpy as np
import numpy.typing as npt

from ingot_runtime.lazy_dataclass import dataclass

Floats = npt.NDArray[np.float64]
_BIN_COUNT = 4096
_OUTSIDE = 1e-5
_SHRINKS = tuple(1 - number / 40 for number in range(31))
STEPS = 255
"""Between the least and the greatest integer."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """``integer = round(number / scale) + zero``, of ``uint8``, saturated."""

    scale: float
    zero: int


@dataclass(slots=True)
class Range:
    """What was seen of one tensor: its limits, 0 among them, and how often each of equal parts
    between them."""

    low: float = 0.0
    high: float = 0.0
    count: int = 0
    bins: Floats = field(default_factory=lambda: np.zeros(_BIN_COUNT))

    def widen(self, array: npt.NDArray[np.float32]) -> bool:
        """Take the numbers of one call; False if one of them is NaN or infinite."""
        if not array.size:
            return True
        low, high = float(array.min()), float(array.max())  # NaN if any is
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.count += array.size
        return bool(np.isfinite(low) and np.isfinite(high))

    def count_parts(self, array: npt.NDArray[np.float32]) -> None:
        """Count the numbers of one call, after all calls have widened the range."""
        if self.high > self.low:
            self.bins += np.histogram(array, _BIN_COUNT, (self.low, self.high))[0]

    def middles(self) -> Floats:
        """The number in the middle of each part."""
        return self.low + (np.arange(_BIN_COUNT) + 0.5) * (self.high - self.low) / _BIN_COUNT


def _all(seen: Range) -> tuple[float, float]:
    return seen.low, seen.high


def _percentile(seen: Range) -> tuple[float, float]:
    below = np.cumsum(seen.bins) / max(seen.bins.sum(), 1)
    inside = np.nonzero(
        (below > _OUTSIDE) & (below - seen.bins / max(seen.bins.sum(), 1) < 1 - _OUTSIDE)
    )[0]
    if not inside.size:
        return seen.low, seen.high
    width = (seen.high - seen.low) / _BIN_COUNT
    low, high = seen.low + inside[0] * width, seen.low + (inside[-1] + 1) * width
    return min(low, 0.0), max(high, 0.0)


def _least_error(seen: Range) -> tuple[float, float]:
    """Both limits are drawn in, one after the other."""
    low, high = seen.low, seen.high
    numbers = seen.middles()
    for is_low in (False, True, False):
        pairs = [(low * s, high) if is_low else (low, high * s) for s in _SHRINKS]
        errors = [_error(seen.bins, numbers, pair) for pair in pairs]
        low, high = pairs[int(np.argmin(errors))]
    return low, high


def _error(bins: Floats, numbers: Floats, limits: tuple[float, float]) -> float:
    found = parameters(*limits)
    integers = np.clip(np.rint(numbers / found.scale) + found.zero, 0, STEPS)
    return float((((integers - found.zero) * found.scale - numbers) ** 2 * bins).sum())


METHODS: Mapping[str, Callable[[Range], tuple[float, float]]] = {
    "minmax": _all,
    "percentile": _percentile,
    "mse": _least_error,
}
"""By the value of ``--ranges``."""


def parameters(low: float, high: float) -> Parameters:
    """The scale and zero point of integers that hold ``low <= 0 <= high``; a tensor that is always
    0 has a scale of 1."""
    scale = float(np.float32((high - low) / STEPS))
    if not scale > 0:
        return Parameters(1.0, 0)
    return Parameters(scale, int(np.clip(np.rint(-low / scale), 0, STEPS)))
