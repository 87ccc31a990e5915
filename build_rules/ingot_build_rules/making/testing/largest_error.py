"""How far one output of a test is from the expected values, measured at the worst element.

In: two tensors of one type and shape, tolerances. Out: ``LargestError``. Not done here: running
(``run_and_compare``).

Floats may be off by a share of the largest finite magnitude that is expected: single elements may
be sums that cancel. Infinities, NaN and everything that is no float must be equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ingot_runtime.lazy_dataclass import dataclass

Array = npt.NDArray[Any]
_NUMBERS = "fiu"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What a float may be off by: ``relative`` is multiplied by the largest finite magnitude."""

    relative: float
    absolute: float


@dataclass(frozen=True, slots=True)
class LargestError:
    """``error`` is infinite where one of the two is no finite number; ``magnitude``: the largest
    that is expected; ``beyond`` of ``count`` elements are off by more than ``allowed``."""

    index: tuple[int, ...]
    expected: str
    got: str
    error: float
    allowed: float
    magnitude: float
    beyond: int
    count: int

    @property
    def excess(self) -> float:
        """How many times the allowed error it is; infinite where none is allowed."""
        return self.error / self.allowed if self.allowed else np.inf


def largest_error(expected: Array, got: Array, tolerance: Tolerance) -> LargestError:
    """Compare two tensors of one element type and shape."""
    errors = _errors(expected, got)
    magnitude = _magnitude(expected)
    is_float = expected.dtype.kind == "f"
    allowed = tolerance.absolute + tolerance.relative * magnitude if is_float else 0.0
    at = np.unravel_index(int(np.argmax(errors)), errors.shape) if errors.size else ()
    return LargestError(
        index=tuple(map(int, at)),
        expected=str(expected[at]) if errors.size else "",
        got=str(got[at]) if errors.size else "",
        error=float(errors[at]) if errors.size else 0.0,
        allowed=allowed,
        magnitude=magnitude,
        beyond=int(np.count_nonzero(errors > allowed)),
        count=errors.size,
    )


def error_text(largest: LargestError, tolerance: Tolerance) -> str:
    """Return the largest error, both values and the tolerance in words."""
    text = f"expected {largest.expected}, got {largest.got}"
    if largest.error < np.inf:
        text += f": the largest error, {largest.error:.3g}"
    count = f"{largest.beyond} of {largest.count} elements"
    if not largest.allowed:
        return f"{text}; they must be equal; {count} differ"
    more = f" + {tolerance.absolute:g}" if tolerance.absolute else ""
    share = f"{tolerance.relative:g} of the largest magnitude, {largest.magnitude:.3g}"
    allowed = f"{largest.allowed:.3g} is allowed (tolerance {share}{more})"
    return f"{text}; {allowed}; {count} are off by more"


def _magnitude(expected: Array) -> float:
    if expected.dtype.kind != "f":
        return 0.0
    real = expected.astype(np.float64)
    return float(np.abs(real[np.isfinite(real)]).max(initial=0.0))


def _errors(expected: Array, got: Array) -> npt.NDArray[np.float64]:
    """Return how far each element is off; infinitely far where a difference says nothing."""
    is_nan = (expected != expected) & (got != got)  # noqa: PLR0124
    is_equal = np.asarray((expected == got) | is_nan)
    if expected.dtype.kind not in _NUMBERS:
        return np.where(is_equal, 0.0, np.inf)
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.asarray(_distances(expected, got), np.float64)
    errors[np.isnan(errors)] = np.inf
    errors[is_equal] = 0.0
    return errors


def _distances(expected: Array, got: Array) -> Array:
    if expected.dtype.kind == "f":
        return np.abs(expected.astype(np.float64) - got.astype(np.float64))
    # Exact, also where one is negative and the difference fits no signed integer.
    distance = np.maximum(expected, got) - np.minimum(expected, got)
    return distance.astype(expected.dtype.str.replace("i", "u"))
