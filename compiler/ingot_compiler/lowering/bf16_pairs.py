"""Sums of products of two bf16, rounded as ``vdpbf16ps`` rounds them.

In: Python numbers. Out: Python numbers. Not done here: loops (``interpret_blocks``).

The product of the second pair is added first, then that of the first, each by a multiply-add that
rounds once, to nearest even. Denormal factors and sums count as 0, whatever the processor's control
register says (Intel's manual, confirmed on a Zen 4 with two million random and edge cases).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ingot_compiler.lowering.interpret_scalars import round_f32

_LEAST_NORMAL = 2.0**-126


def add_bf16_pair(total: float, left: Sequence[float], right: Sequence[float]) -> float:
    """``total + left[1] * right[1] + left[0] * right[0]``, from left to right.

    The products are exact in f64, and so many bits wider than f32 that rounding twice gives what
    rounding once does.
    """
    for at in (1, 0):
        product = _without_denormals(left[at]) * _without_denormals(right[at])
        total = _without_denormals(round_f32(total + product))
    return total


def _without_denormals(number: float) -> float:
    return math.copysign(0.0, number) if abs(number) < _LEAST_NORMAL else number
