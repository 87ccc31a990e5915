"""Pixels at computed places by composition: bilinear and cubic sums over neighbours.

In: an image [N, spatial.., C], coordinates per axis. Out: samples. Not done here: what coordinates
mean (the ops).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.frontend.compose import binary_scalar, clamp, concat, reshape, size_scalar
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.ir.dims import Dim

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


def weighted(
    context: OpContext,
    image: int,
    bases: Sequence[int],
    weights: Sequence[Sequence[int]],
    place: PixelIndex,
) -> int:
    """The sum over all neighbours: tap t of axis a lies at bases[a] + t and weighs
    weights[a][t]."""

    def visit(axis: int, indices: list[int], weight: int | None) -> int:
        if axis == len(bases):
            value = pixels(context, image, indices)
            assert weight is not None
            return context.add(
                "mul", value, reshape(context, weight, (*context.shape_of(weight), 1))
            )
        total: int | None = None
        for tap, own in enumerate(weights[axis]):
            index, counts = place(axis, binary_scalar(context, "add", bases[axis], tap))
            factor = (
                own
                if counts is None
                else context.add("select", counts, own, context.scalar(context.dtype_of(own), 0))
            )
            joined = factor if weight is None else context.add("mul", weight, factor)
            term = visit(axis + 1, [*indices, index], joined)
            total = term if total is None else context.add("add", total, term)
        assert total is not None
        return total

    return visit(0, [], None)
