"""Pixels at computed places by composition: bilinear and cubic sums over neighbours.

In: an image [N, spatial.., C], coordinates per axis. Out: samples. Not done here: what coordinates
mean (the ops).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce

from ingot_compiler.frontend.build.compose import binary_scalar, clamp, concat, reshape, size_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.ir.dims import Dim
from ingot_runtime.lazy_dataclass import dataclass

PixelIndex = Callable[[int, int], tuple[int, int | None]]
"""(axis, i64 index that may be outside) -> (index inside, None or whether it counts)."""


def clamp_index(context: OpContext, index: int, size: Dim) -> int:
    """An i64 index limited to [0, size)."""
    last = context.add("sub", size_scalar(context, size), context.scalar("i64", 1))
    return clamp(context, index, context.scalar("i64", 0), last)


def pixels(context: OpContext, image: int, indices: Sequence[int]) -> int:
    """image[n, indices.., :] for indices [N, points..]: [N, points.., C]."""
    parts = [reshape(context, index, (*context.shape_of(index), 1)) for index in indices]
    joined = concat(context, parts, context.rank_of(parts[0]) - 1)
    return context.add("gather_nd", image, joined, batch_dims=1)


def linear_weights(context: OpContext, fraction: int) -> list[int]:
    """Weights of the two neighbours."""
    one = context.scalar(context.dtype_of(fraction), 1)
    return [context.add("sub", one, fraction), fraction]


def cubic_weights(context: OpContext, fraction: int, a: float) -> list[int]:
    """Weights of the four neighbours by Keys' kernel."""

    def polynomial(x: int, *coefficients: float) -> int:
        total = context.scalar(context.dtype_of(x), coefficients[0])
        for coefficient in coefficients[1:]:
            total = binary_scalar(context, "add", context.add("mul", total, x), coefficient)
        return total

    one = context.scalar(context.dtype_of(fraction), 1)
    rest = context.add("sub", one, fraction)
    outer = [
        polynomial(context.add("add", x, one), a, -5 * a, 8 * a, -4 * a) for x in (fraction, rest)
    ]
    inner = [polynomial(x, a + 2, -(a + 3), 0.0, 1.0) for x in (fraction, rest)]
    return [outer[0], inner[0], inner[1], outer[1]]


@dataclass(frozen=True, slots=True)
class _Neighbours:
    """The neighbours of all points of an image: tap t of axis a lies at bases[a] + t and weighs
    weights[a][t]."""

    context: OpContext
    image: int
    bases: Sequence[int]
    weights: Sequence[Sequence[int]]
    place: PixelIndex

    def total(self, indices: tuple[int, ...] = (), weight: int | None = None) -> int:
        """The sum over those whose places along the first axes are ``indices``, which weigh
        ``weight`` together."""
        context, axis = self.context, len(indices)
        if axis == len(self.bases):
            assert weight is not None
            value = pixels(context, self.image, indices)
            wide = reshape(context, weight, (*context.shape_of(weight), 1))
            return context.add("mul", value, wide)
        taps = range(len(self.weights[axis]))
        return reduce(
            partial(context.add, "add"), (self.of_tap(tap, indices, weight) for tap in taps)
        )

    def of_tap(self, tap: int, indices: tuple[int, ...], weight: int | None) -> int:
        """The part of ``total`` that one tap of the next axis gives."""
        context, axis = self.context, len(indices)
        own = self.weights[axis][tap]
        index, counts = self.place(axis, binary_scalar(context, "add", self.bases[axis], tap))
        if counts is not None:
            own = context.add("select", counts, own, context.scalar(context.dtype_of(own), 0))
        joined = own if weight is None else context.add("mul", weight, own)
        return self.total((*indices, index), joined)


def weighted(
    context: OpContext,
    image: int,
    bases: Sequence[int],
    weights: Sequence[Sequence[int]],
    place: PixelIndex,
) -> int:
    """The sum over all neighbours: tap t of axis a lies at bases[a] + t and weighs
    weights[a][t]."""
    return _Neighbours(context, image, bases, weights, place).total()
