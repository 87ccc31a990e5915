"""Sine, cosine, tangent of f32, in f64: rounded right but for a hundredth of a unit.

In: ``Number`` of f32. Out: ``Number`` of f32. Not done here: f64 (``trigonometric``), the reduction
of arguments (``quarter_turns``).

Half as many terms as f64 needs, interpolated at Chebyshev's points: the sine is within 2**-35, the
cosine within 2**-32.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.math.quarter_turns import f32_in_quarter_turns
from ingot_compiler.codegen.emit.math.trigonometric import (
    Parts,
    cosine_of,
    sine_of,
    tangent_of,
)
from ingot_compiler.codegen.emit.number import Number

# (sin(r) - r) / r**3 and (cos(r) - 1) / r**2 in r*r, for r up to pi/4.
_SIN = (
    2.724992580305979e-06, -1.9840086735384846e-04, 8.333331874710208e-03, -1.666666666385529e-01,
)  # fmt: skip
_COS = (
    2.4463788293265746e-05, -1.3887589155600576e-03, 4.166665064451703e-02, -4.9999999969119313e-01,
)  # fmt: skip


def sin(x: Number) -> Number:
    """Sine; NaN for infinities."""
    # Keep -0.0, which the sum of the parts loses.
    return x.equals(0).choose(x, sine_of(_parts(x)).to("float"))


def cos(x: Number) -> Number:
    """Cosine; NaN for infinities."""
    return cosine_of(_parts(x)).to("float")


def tan(x: Number) -> Number:
    """Tangent; NaN for infinities."""
    return x.equals(0).choose(x, tangent_of(_parts(x)).to("float"))


def _parts(x: Number) -> Parts:
    quadrant, rest = f32_in_quarter_turns(x.to("double"))
    square = rest * rest
    sine = (rest * square).fma(square.polynomial(_SIN), rest)
    return quadrant, sine, square.fma(square.polynomial(_COS), 1.0)
