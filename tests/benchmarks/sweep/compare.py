"""Whether two engines computed the same.

In: the arrays of both. Out: the first difference in words, or nothing. Not done here: running them
(``engine``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tests.benchmarks.single_node import Array

TOLERANCES = {"f2": 8e-3, "f4": 2e-4, "f8": 1e-9}
"""Of the greatest of the other's numbers, and at least of 1. Both engines sum in orders of their
own, and take functions of f32 within some units of the last place."""
_STEPS = 1  # of a quantized byte: roundings of quotients near the middle differ


def difference(ours: Sequence[Array], theirs: Sequence[Array], scale: float = 1.0) -> str:
    """Return the first difference, or an empty text; ``scale``: of the tolerances."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results, of {len(theirs)}"
    for at, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if mine.shape != other.shape or mine.dtype.kind != other.dtype.kind:
            return f"result {at} is {_said(mine)}, not {_said(other)}"
        if (said := _numbers_differ(mine, other, scale)) is not None:
            return f"result {at} {said}"
    return ""


def _numbers_differ(mine: Array, other: Array, scale: float) -> str | None:
    """Where the numbers differ most."""
    if mine.dtype.kind in "Ub":
        return None if np.array_equal(mine, other) else "differs"
    if not mine.size:
        return None
    if mine.dtype.kind == "f":
        known = np.isfinite(other)
        if not np.array_equal(mine[~known], other[~known], equal_nan=True):
            return "differs in what is not finite"
        mine, other = mine[known], other[known]
        if not mine.size:
            return None
        narrow = min(mine.dtype, other.dtype, key=lambda dtype: dtype.itemsize)
        most = float(np.abs(other.astype(np.float64)).max())
        allowed = scale * TOLERANCES[narrow.str[1:]] * max(1.0, most)
    else:
        allowed = _STEPS if mine.dtype.itemsize == 1 else 0
    apart = np.abs(mine.astype(np.float64) - other.astype(np.float64))
    worst = int(np.argmax(apart))
    if apart.flat[worst] <= allowed:
        return None
    return f"is {mine.flat[worst]} at {worst}, not {other.flat[worst]}"


def _said(array: Array) -> str:
    return f"{array.dtype} {list(array.shape)}"
