"""Functions of constants that give the same bits on every machine: sine, cosine, exponential.

In: an array of f32 or f64 and a buffer for the result. Out: the buffer. Not done here: arithmetic
(``constant_arithmetic``), functions of values that only a run knows (``backends.host.emit.math``).

Everything is computed in f64 by operations that IEEE 754 rounds correctly, one numpy call each, and
rounded once: no library's own functions, whose last bits differ. Series of fdlibm's k_sin.c and
k_cos.c, Taylor's for the exponential.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from ingot_compiler.ir.op import Array
from ingot_compiler.lowering.fdlibm import (
    COS_SERIES,
    HALF_PI_PARTS,
    LN2_HIGH,
    LN2_LOW,
    LOG2E,
    SIN_SERIES,
    SMALL_ANGLE_MAX,
    TWO_OVER_PI,
)

_Floats = npt.NDArray[np.float64]
_PI_BITS = 1200  # more than the exponents of f64 take away, and 100 to spare
_EXP_LIMIT = 800.0  # beyond it, every result is 0 or infinite
_EXP_TERMS = 14
_CHUNK_ELEMENTS = 1 << 16


def _polynomial(x: _Floats, coefficients: Sequence[float]) -> _Floats:
    total: _Floats = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


def _quarter_turns(x: _Floats) -> tuple[npt.NDArray[np.int64], _Floats]:
    """The number of quarter turns modulo 4, and the rest in about [-pi/4, pi/4]."""
    finite = np.where(np.isfinite(x), x, 0.0)
    small = np.abs(finite) <= SMALL_ANGLE_MAX
    near = np.where(small, finite, 0.0)
    turns = np.rint(near * TWO_OVER_PI)
    rest = near
    for part in HALF_PI_PARTS:
        rest = rest - turns * part
    numbers = turns.astype(np.int64) & 3
    for place in np.flatnonzero(~small):
        numbers.flat[place], rest.flat[place] = _quarter_turns_of(float(finite.flat[place]))
    return numbers, rest


def _quarter_turns_of(x: float) -> tuple[int, float]:
    """The same of one number, in integers as long as it takes."""
    numerator, denominator = x.as_integer_ratio()
    half_pi = _pi() // 2
    scaled = (numerator << _PI_BITS) // denominator
    turns = (2 * scaled + half_pi) // (2 * half_pi)
    rest = scaled - turns * half_pi
    return turns & 3, math.ldexp(float(rest >> (_PI_BITS - 200)), -200)


@cache
def _pi() -> int:
    """Pi * 2**_PI_BITS, by Machin's formula."""
    spare = 32

    def arctan_of_inverse(number: int) -> int:
        term = (1 << (_PI_BITS + spare)) // number
        total, divisor = term, 3
        while term:
            term //= -number * number
            total += term // divisor
            divisor += 2
        return total

    return 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239)) >> spare


def _sine(x: _Floats, shift: int) -> _Floats:
    """The sine of x and ``shift`` quarter turns."""
    numbers, rest = _quarter_turns(x)
    square = rest * rest
    sine = rest + rest * square * _polynomial(square, SIN_SERIES)
    cosine = 1.0 - (square * 0.5 - square * square * _polynomial(square, COS_SERIES))
    numbers = (numbers + shift) & 3
    chosen = np.where((numbers & 1) == 0, sine, cosine)
    result = np.where((numbers & 2) != 0, -chosen, chosen)
    if shift == 0:
        result = np.where(x == 0, x, result)  # -0 stays
    return np.where(np.isfinite(x), result, np.nan)


def _exponential(x: _Floats) -> _Floats:
    bounded = np.where(np.isnan(x), 0.0, np.minimum(np.maximum(x, -_EXP_LIMIT), _EXP_LIMIT))
    powers = np.rint(bounded * LOG2E)
    rest = bounded
    for part in (LN2_HIGH, LN2_LOW):
        rest = rest - powers * part
    terms = [1 / math.factorial(number) for number in reversed(range(_EXP_TERMS))]
    result = np.ldexp(_polynomial(rest, terms), powers.astype(np.int64))
    return np.where(np.isnan(x), np.nan, result)


def _in_f64(function: Callable[[_Floats], _Floats]) -> Callable[[Sequence[Array], Array], Array]:
    def compute(operands: Sequence[Array], out: Array) -> Array:
        source, target = operands[0].reshape(-1), out.reshape(-1)
        with np.errstate(all="ignore"):
            for start in range(0, source.size, _CHUNK_ELEMENTS):
                chunk = slice(start, start + _CHUNK_ELEMENTS)
                target[chunk] = function(source[chunk].astype(np.float64))
        return out

    return compute


FUNCTIONS: Mapping[str, Callable[[Sequence[Array], Array], Array]] = {
    "cos": _in_f64(lambda x: _sine(x, 1)),
    "exp": _in_f64(_exponential),
    "sin": _in_f64(lambda x: _sine(x, 0)),
}
