"""The transforms of Winograd's algorithm along one axis, for kernels of three taps.

In: vectors of pixels, or of products. Out: frequencies, or results. Not done here: the points
(``winograd_points``), the transform of weights (``winograd_weights``), the second axis.

The frequency of a point is the product of all other points' ``x - point``, applied to the pixels:
that of ``x * x - point * point`` for each other pair, times ``x + point`` and, where zero is a
point, ``x``. Result number i is the sum of all points' products times ``point ** i`` (Lavin and
Gray 2015). All factors are exact: only the operations round.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ingot_compiler.codegen.emit.operands import Operands
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.kernels.packing.winograd_points import Points, points_of_frequencies

Term = tuple[Fraction, LlvmValue]


def to_frequencies(w: Writer, pixels: Sequence[LlvmValue]) -> Operands:
    """Transform 1 or 4 to 6 pixels of an axis into as many frequencies."""
    if len(pixels) == 1:
        return tuple(pixels)
    points = points_of_frequencies(len(pixels))
    first = int(points.has_zero)  # x is a factor of all frequencies but that of zero
    squares = [pair * pair for pair in points.pairs]
    found = [_of_squares(w, squares, pixels)] if points.has_zero else []
    for pair, square in zip(points.pairs, squares, strict=True):
        others = [each for each in squares if each != square]
        even = _of_squares(w, others, pixels[first + 1 :])
        odd = _of_squares(w, others, pixels[first:])
        found += [_sum(w, [(Fraction(1), even), (sign * pair, odd)]) for sign in (1, -1)]
    return (*found, _of_squares(w, squares, pixels[first:]))


def to_results(w: Writer, products: Sequence[LlvmValue]) -> Operands:
    """Transform 1 or 4 to 6 frequencies of an axis into 1 or 2 to 4 results."""
    if len(products) == 1:
        return tuple(products)
    points = points_of_frequencies(len(products))
    folded = _folded(w, points, products[int(points.has_zero) :])
    count = len(products) - 2
    return tuple(_result(w, points, products, folded, number) for number in range(count))


def _folded(
    w: Writer, points: Points, products: Sequence[LlvmValue]
) -> tuple[Sequence[LlvmValue], Sequence[LlvmValue]]:
    """The sums of each pair's products, and their differences."""
    plus, minus = (products[start : 2 * len(points.pairs) : 2] for start in (0, 1))
    pairs = list(zip(plus, minus, strict=True))
    sums, differences = ([w.binary(op, *pair) for pair in pairs] for op in ("fadd", "fsub"))
    return sums, differences


def _result(
    w: Writer,
    points: Points,
    products: Sequence[LlvmValue],
    folded: tuple[Sequence[LlvmValue], Sequence[LlvmValue]],
    number: int,
) -> LlvmValue:
    terms: list[Term] = []
    if number == 0 and points.has_zero:
        terms.append((Fraction(1), products[0]))
    if number == len(products) - 3:
        terms.append((Fraction(1), products[-1]))
    factors = [pair**number for pair in points.pairs]
    return _sum(w, [*terms, *zip(factors, folded[number % 2], strict=True)])


def _of_squares(w: Writer, squares: Sequence[Fraction], pixels: Sequence[LlvmValue]) -> LlvmValue:
    """The product of ``x * x - square`` for each square, applied to every second pixel."""
    factors = [Fraction(1)]
    for square in squares:
        shifted, scaled = [Fraction(0), *factors], [*factors, Fraction(0)]
        factors = [above - square * here for above, here in zip(shifted, scaled, strict=True)]
    terms = list(zip(factors, pixels[::2], strict=False))
    return _sum(w, terms[::-1])


def _sum(w: Writer, terms: Sequence[Term]) -> LlvmValue:
    """The sum of values by their factors, in this order."""
    (factor, value), *rest = terms
    total = value if factor == 1 else w.binary("fmul", value, _constant(factor, value))
    for factor, value in rest:
        if abs(factor) == 1:
            total = w.binary("fadd" if factor > 0 else "fsub", total, value)
        else:
            total = w.fma(value, _constant(factor, value), total)
    return total


def _constant(factor: Fraction, value: LlvmValue) -> LlvmValue:
    return constant(float(factor), value.element, value.lanes)
