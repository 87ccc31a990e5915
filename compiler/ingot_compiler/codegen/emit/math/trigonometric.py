"""Sine, cosine, tangent.

In: ``Number``. Out: ``Number`` in f64 (f32 is computed in f64 and rounded). Not done here:
inverses, the reduction of arguments (``quarter_turns``).

Series of fdlibm's k_sin.c and k_cos.c.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.math.quarter_turns import in_quarter_turns, negated_if
from ingot_compiler.codegen.emit.number import Number
from ingot_compiler.lowering.constants.fdlibm import COS_SERIES, SIN_SERIES

Parts = tuple[Number, Number, Number]
"""The number of the quadrant (i64), and sine and cosine of the rest in [-pi/4, pi/4]."""


def sin(x: Number) -> Number:
    """Sine, f64; NaN for infinities."""
    # Keep -0.0, which the sum of the parts loses.
    return x.equals(0).choose(x, sine_of(_parts(x)))


def cos(x: Number) -> Number:
    """Cosine, f64; NaN for infinities."""
    return cosine_of(_parts(x))


def tan(x: Number) -> Number:
    """Tangent, f64; NaN for infinities."""
    return x.equals(0).choose(x, tangent_of(_parts(x)))


def sine_of(parts: Parts) -> Number:
    """Sine, from parts."""
    quadrant, sine, cosine = parts
    chosen = ((quadrant & 1).equals(0)).choose(sine, cosine)
    return negated_if(chosen, (quadrant & 2).compare("ne", 0))


def cosine_of(parts: Parts) -> Number:
    """Cosine, from parts."""
    quadrant, sine, cosine = parts
    chosen = ((quadrant & 1).equals(0)).choose(cosine, sine)
    return negated_if(chosen, ((quadrant + 1) & 2).compare("ne", 0))


def tangent_of(parts: Parts) -> Number:
    """Tangent, from parts."""
    quadrant, sine, cosine = parts
    even = (quadrant & 1).equals(0)
    return even.choose(sine, -cosine) / even.choose(cosine, sine)


def _parts(x: Number) -> Parts:
    quadrant, high, low = in_quarter_turns(x)
    z = high * high
    cube = z * high
    sine = high - (
        (z * (low * 0.5 - cube * z.polynomial(SIN_SERIES[:-1])) - low) - cube * SIN_SERIES[-1]
    )
    series = z * z.polynomial(COS_SERIES)
    half = z * 0.5
    whole = 1.0 - half
    cosine = whole + (((1.0 - whole) - half) + (z * series - high * low))
    return quadrant, sine, cosine
