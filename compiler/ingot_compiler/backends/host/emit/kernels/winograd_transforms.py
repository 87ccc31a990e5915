"""The transforms of Winograd's algorithm along one axis, for kernels of three taps.

In: vectors of pixels, or of products. Out: frequencies, or results. Not done here: the transform of
weights (``winograd_weights``), the second axis.

Points 0, 1, -1, infinity for two results; and 1/2, -2 for four (Lavin and Gray 2015; the weights
have the scale). All factors are exact: only the operations round. Each result depends on the pixels
that it covers alone where there are two; where there are four, on all of the tile.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.backends.host.emit.operands import Operands
from ingot_compiler.backends.host.llvm_value import LlvmValue, constant
from ingot_compiler.backends.host.writer import Writer


def to_frequencies(w: Writer, pixels: Sequence[LlvmValue]) -> Operands:
    """Of 1, 4 or 6 pixels of an axis: as many frequencies."""
    if len(pixels) == 1:
        return tuple(pixels)
    return _four_frequencies(w, *pixels) if len(pixels) == 4 else _six_frequencies(w, *pixels)


def to_results(w: Writer, products: Sequence[LlvmValue]) -> Operands:
    """Of 1, 4 or 6 frequencies of an axis: 1, 2 or 4 results."""
    if len(products) == 1:
        return tuple(products)
    return _two_results(w, *products) if len(products) == 4 else _four_results(w, *products)


def _four_frequencies(
    w: Writer, d0: LlvmValue, d1: LlvmValue, d2: LlvmValue, d3: LlvmValue
) -> Operands:
    return _less(w, d0, d2), _sum(w, d1, d2), _less(w, d2, d1), _less(w, d3, d1)


def _two_results(w: Writer, m0: LlvmValue, m1: LlvmValue, m2: LlvmValue, m3: LlvmValue) -> Operands:
    return _sum(w, m0, _sum(w, m1, m2)), _sum(w, _less(w, m1, m2), m3)


def _six_frequencies(
    w: Writer,
    d0: LlvmValue,
    d1: LlvmValue,
    d2: LlvmValue,
    d3: LlvmValue,
    d4: LlvmValue,
    d5: LlvmValue,
) -> Operands:
    s, r = _less(w, d4, d2), _less(w, d3, d1)
    return (
        _scaled(w, r, 1.5, _sum(w, s, _less(w, d0, d2))),
        _scaled(w, d3, 2.5, _scaled(w, d2, 0.5, _less(w, d4, d1))),
        _scaled(w, d2, -2.5, _scaled(w, d3, 0.5, _sum(w, d4, d1))),
        _scaled(w, r, 2.0, s),
        _scaled(w, r, -0.5, s),
        _scaled(w, s, 1.5, _less(w, _less(w, d5, d3), r)),
    )


def _four_results(
    w: Writer,
    m0: LlvmValue,
    m1: LlvmValue,
    m2: LlvmValue,
    m3: LlvmValue,
    m4: LlvmValue,
    m5: LlvmValue,
) -> Operands:
    a, b = _sum(w, m1, m2), _less(w, m1, m2)
    return (
        _sum(w, _sum(w, m0, a), _sum(w, m3, m4)),
        _scaled(w, m4, -2.0, _scaled(w, m3, 0.5, b)),
        _scaled(w, m4, 4.0, _scaled(w, m3, 0.25, a)),
        _scaled(w, m4, -8.0, _scaled(w, m3, 0.125, _sum(w, b, m5))),
    )


def _sum(w: Writer, left: LlvmValue, right: LlvmValue) -> LlvmValue:
    return w.binary("fadd", left, right)


def _less(w: Writer, left: LlvmValue, right: LlvmValue) -> LlvmValue:
    return w.binary("fsub", left, right)


def _scaled(w: Writer, value: LlvmValue, factor: float, addend: LlvmValue) -> LlvmValue:
    return w.fma(value, constant(factor, value.element, value.lanes), addend)
