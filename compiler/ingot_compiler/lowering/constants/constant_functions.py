"""Functions of constants that give the same bits on every machine.

In: arrays of f32 or f64 and a buffer for the result. Out: the buffer. Not done here: arithmetic
(``constant_arithmetic``), the formulas of exponentials and logarithms, functions of values that only a run knows (``codegen.emit.math``).

Everything is computed in f64 by operations that IEEE 754 rounds correctly, one numpy call each, and
rounded once: no library's own functions, whose last bits differ. Sine and cosine by the series of
fdlibm's k_sin.c and k_cos.c.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from ingot_compiler.ir.op import Array
from ingot_compiler.lowering.constants.constant_exponentials import (
    Floats,
    error_function,
    exponential,
    hyperbolic_tangent,
    logistic,
    polynomial,
    weighted,
)
from ingot_compiler.lowering.constants.constant_powers import logarithm, power
from ingot_compiler.lowering.constants.fdlibm import (
    COS_SERIES,
    HALF_PI_PARTS,
    SIN_SERIES,
    SMALL_ANGLE_MAX,
    TWO_OVER_PI,
)

_PI_BITS = 1200  # more than the exponents of f64 take away, and 100 to spare
_CHUNK_ELEMENTS = 1 << 16


def _quarter_turns(x: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
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
    """Split one number into quarter turns modulo 4 and the rest, exactly, in long integers."""
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


def _sine(x: Floats, shift: int) -> Floats:
    """The sine of x and ``shift`` quarter turns."""
    numbers, rest = _quarter_turns(x)
    square = rest * rest
    sine = rest + rest * square * polynomial(square, SIN_SERIES)
    cosine = 1.0 - (square * 0.5 - square * square * polynomial(square, COS_SERIES))
    numbers = (numbers + shift) & 3
    chosen = np.where((numbers & 1) == 0, sine, cosine)
    result = np.where((numbers & 2) != 0, -chosen, chosen)
    if shift == 0:
        result = np.where(x == 0, x, result)  # -0 stays
    return np.where(np.isfinite(x), result, np.nan)


def _sine_of(x: Floats) -> Floats:
    return _sine(x, 0)


def _cosine_of(x: Floats) -> Floats:
    return _sine(x, 1)


def _in_f64(function: Callable[..., Floats]) -> Callable[[Sequence[Array], Array], Array]:
    def compute(operands: Sequence[Array], out: Array) -> Array:
        sources = [np.broadcast_to(operand, out.shape).reshape(-1) for operand in operands]
        target = out.reshape(-1)
        with np.errstate(all="ignore"):
            for start in range(0, target.size, _CHUNK_ELEMENTS):
                chunk = slice(start, start + _CHUNK_ELEMENTS)
                target[chunk] = function(*(source[chunk].astype(np.float64) for source in sources))
        return out

    return compute


FUNCTIONS: Mapping[str, Callable[[Sequence[Array], Array], Array]] = {
    "cos": _in_f64(_cosine_of),
    "erf": _in_f64(error_function),
    "exp": _in_f64(exponential),
    "log": _in_f64(logarithm),
    "pow": _in_f64(power),
    "sigmoid": _in_f64(logistic),
    "silu": _in_f64(weighted),
    "sin": _in_f64(_sine_of),
    "tanh": _in_f64(hyperbolic_tangent),
}
