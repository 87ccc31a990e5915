"""Where the samples of regions lie along one axis of an image (ONNX RoiAlign-16).

In: a context, the ends of regions, cells, samples per cell. Out: ``SamplePlaces``. Not done here: what is
read there (``ops/roi_align``).

Without a number of samples, a region has as many per cell as a cell has pixels, rounded up. All have
the room of the one with the most, and what is beyond a region's own number is not ``kept``.
"""

from __future__ import annotations

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    broadcast_to,
    cast,
    concat,
    full,
    iota,
    reduce,
    reshape,
    size_scalar,
    unsqueeze,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.families.images.sampling import clamp_index
from ingot_compiler.ir.dims import Dim, dim_mul
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RegionAxis:
    """Regions between ``ends`` [R] in ``cells`` along an axis of ``size`` pixels."""

    ends: tuple[int, int]
    cells: int
    size: Dim


@dataclass(frozen=True, slots=True)
class SamplePlaces:
    """Where samples lie along one axis, each [R, cells * samples]: between the pixels ``first`` and
    ``second``, which has ``weight``; whether the sample ``counts``. Where each region has its
    ``own`` number of samples, i64[R]: whether a sample is ``kept``."""

    first: int
    second: int
    weight: int
    counts: int
    samples: Dim
    own: int | None = None
    kept: int | None = None


def places_along(
    context: OpContext, axis: RegionAxis, ratio: int, *, may_be_empty: bool
) -> SamplePlaces:
    """``ratio``: samples per cell; each region decides where it is not above 0. Regions of less than
    a pixel have one, unless they ``may_be_empty``."""
    length = context.add("sub", axis.ends[1], axis.ends[0])
    if not may_be_empty:
        length = binary_scalar(context, "max", length, 1.0)
    if ratio <= 0:
        return _decided_places(context, axis, length)
    step = binary_scalar(context, "div", length, float(axis.cells * ratio))
    centre = cast(context, iota(context, axis.cells * ratio), "f32")
    centre = binary_scalar(context, "add", centre, 0.5)
    moved = context.add("mul", unsqueeze(context, step, (1,)), centre)
    return _read_at(context, axis, moved, ratio)


def _decided_places(context: OpContext, axis: RegionAxis, length: int) -> SamplePlaces:
    """The places of samples, where each region decides how many samples a cell has."""
    count = context.shape_of(length)[0]
    cell = binary_scalar(context, "div", length, float(axis.cells))
    own = binary_scalar(context, "max", cast(context, context.add("ceil", cell), "i64"), 0)
    one = full(context, "i64", 1, (1,))
    (samples,) = context.read_dims(reduce(context, concat(context, [own, one], 0), "max", (0,)))
    cell, wide_own = (reshape(context, each, (count, 1, 1)) for each in (cell, own))
    first = cast(context, reshape(context, iota(context, axis.cells), (axis.cells, 1)), "f32")
    index = iota(context, samples)
    centre = binary_scalar(context, "add", cast(context, index, "f32"), 0.5)
    number = cast(context, binary_scalar(context, "max", wide_own, 1), "f32")
    inside = context.add("div", context.add("mul", centre, cell), number)
    moved = context.add("add", context.add("mul", first, cell), inside)
    flat = (count, dim_mul(axis.cells, samples))
    kept = context.add("less", index, wide_own)
    kept = broadcast_to(context, kept, (count, axis.cells, samples))
    kept = reshape(context, kept, flat)
    return _read_at(context, axis, reshape(context, moved, flat), samples, own, kept)


def _read_at(
    context: OpContext,
    axis: RegionAxis,
    moved: int,
    samples: Dim,
    own: int | None = None,
    kept: int | None = None,
) -> SamplePlaces:
    """SamplePlaces so far behind the begin of their region, f32[R, cells * samples]."""
    where = context.add("add", unsqueeze(context, axis.ends[0], (1,)), moved)
    length = size_scalar(context, axis.size, "f32")
    before = binary_scalar(context, "less", where, -1.0)
    beyond = context.add("logical_or", before, context.add("less", length, where))
    last = binary_scalar(context, "sub", length, 1.0)
    where = context.add("min", binary_scalar(context, "max", where, 0.0), last)
    floor = context.add("floor", where)
    first = cast(context, floor, "i64")
    second = clamp_index(context, binary_scalar(context, "add", first, 1), axis.size)
    first, weight = clamp_index(context, first, axis.size), context.add("sub", where, floor)
    counts = context.add("logical_not", beyond)
    return SamplePlaces(first, second, weight, counts, samples, own, kept)
