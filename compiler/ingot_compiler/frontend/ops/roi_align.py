"""ONNX RoiAlign: averages or maxima of samples in the cells of regions.

In: x[N, C, H, W], regions [R, 4], batch indices [R]. Out: [R, C, rows, columns]. Not done here:
where samples lie (``region_places``), types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from functools import reduce as fold
from itertools import product
from math import inf

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    cast,
    reduce,
    reshape,
    slice_axis,
    transpose,
    unsqueeze,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import checked_indices
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_of
from ingot_compiler.frontend.families.images.region_places import (
    RegionAxis,
    SamplePlaces,
    places_along,
)
from ingot_compiler.ir.dims import Dim
from ingot_runtime.lazy_dataclass import dataclass


def _is_half_pixel(context: OpContext) -> bool:
    """Whether corners of regions lie between pixels (ONNX RoiAlign-16)."""
    name = "coordinate_transformation_mode"
    return context.opset >= 16 and context.string_attribute(name, "half_pixel") == "half_pixel"


@dataclass(frozen=True, slots=True)
class _Samples:
    """Samples of all regions. ``shape``: [R, rows * samples, columns * samples]; ``owner``: the
    image of each sample, in that shape; ``one``: 1.0."""

    context: OpContext
    image: int
    owner: int
    one: int
    places: tuple[SamplePlaces, SamplePlaces]
    shape: tuple[Dim, ...]

    def wide(self, value: int, axis: int) -> int:
        """What belongs to the places along one axis, in ``shape``."""
        column = unsqueeze(self.context, value, (3 - axis,))
        return self.context.add("broadcast_to", column, shape=self.shape)

    def corner(self, far: Sequence[bool]) -> int:
        """[*shape, C]: one of the four pixels around each sample, the second one along the axes
        that are ``far``, times its weight."""
        context = self.context
        own = list(zip(self.places, far, (1, 2), strict=True))
        corner = [self.wide(at.second if beyond else at.first, axis) for at, beyond, axis in own]
        parts = [unsqueeze(context, part, (3,)) for part in (self.owner, *corner)]
        index = context.add("concat", *parts, axis=3)
        weights = [
            self.wide(at.weight if beyond else context.add("sub", self.one, at.weight), axis)
            for at, beyond, axis in own
        ]
        weight = unsqueeze(context, context.add("mul", *weights), (3,))
        return context.add("mul", context.add("gather_nd", self.image, index, batch_dims=0), weight)

    def both(self, flags: Sequence[int]) -> int:
        """[*shape, 1]: what is true of a sample along both axes."""
        counted = [self.wide(each, axis) for axis, each in enumerate(flags, 1)]
        return unsqueeze(self.context, self.context.add("logical_and", *counted), (3,))

    def values(self, *, is_max: bool) -> int:
        """[*shape, C]: the samples; 0 outside of the image."""
        terms = [self.corner(far) for far in product((False, True), repeat=2)]
        joined = fold(partial(self.context.add, "max" if is_max else "add"), terms)
        counts = self.both([at.counts for at in self.places])
        return self.context.add("select", counts, joined, self.context.scalar("f32", 0))


def _translate(context: OpContext) -> Sequence[int]:
    x, rois = context.operand(0), cast(context, context.operand(1), "f32")
    rows, columns = (context.int_attribute(f"output_{name}", 1) for name in ("height", "width"))
    ratio = context.int_attribute("sampling_ratio", 0)
    is_max = context.string_attribute("mode", "avg", ("avg", "max")) == "max"
    count, (channels, height, width) = sizes_of(context, rois, 2)[0], sizes_of(context, x, 4)[1:]
    left, top, right, bottom = _edges(context, rois, count)
    is_free = _is_half_pixel(context)
    y, x_places = (
        places_along(context, RegionAxis(ends, cells, size), ratio, may_be_empty=is_free)
        for ends, cells, size in (((top, bottom), rows, height), ((left, right), columns, width))
    )
    image = transpose(context, cast(context, x, "f32"), (0, 2, 3, 1))
    shape = (count, rows * y.samples, columns * x_places.samples)
    owner, one = _owner(context, shape), context.scalar("f32", 1)
    samples = _Samples(context, image, owner, one, (y, x_places), shape)
    cells = (count, rows, y.samples, columns, x_places.samples)
    reduced = _reduced(samples, (*cells, channels), is_max=is_max)
    return (cast(context, transpose(context, reduced, (0, 3, 1, 2)), context.dtype_of(x)),)


def _reduced(samples: _Samples, cells: tuple[Dim, ...], *, is_max: bool) -> int:
    """[R, rows, columns, C]: the mean or the greatest of each cell's samples; 0 of none."""
    context, (y, x) = samples.context, samples.places
    found = samples.values(is_max=is_max)
    if y.own is None or x.own is None:
        found = reshape(context, found, cells)
        return reduce(context, found, "max" if is_max else "mean", (2, 4))
    counts = [cast(context, places.own, "f32") for places in (y, x) if places.own is not None]
    number = reshape(context, context.add("mul", *counts), (cells[0], 1, 1, 1))
    kept = samples.both([places.kept for places in (y, x) if places.kept is not None])
    neutral = context.scalar("f32", -inf if is_max else 0.0)
    found = reshape(context, context.add("select", kept, found, neutral), cells)
    found = reduce(context, found, "max" if is_max else "sum", (2, 4))
    if not is_max:
        return context.add("div", found, binary_scalar(context, "max", number, 1.0))
    is_none = binary_scalar(context, "equal", number, 0.0)
    return context.add("select", is_none, context.scalar("f32", 0), found)


def _owner(context: OpContext, shape: tuple[Dim, ...]) -> int:
    """The image of each sample, i64 in ``shape``."""
    batch = checked_indices(context, context.operand(2), context.shape_of(context.operand(0))[0])
    column = reshape(context, cast(context, batch, "i64"), (shape[0], 1, 1))
    return context.add("broadcast_to", column, shape=shape)


def _edges(context: OpContext, rois: int, count: Dim) -> list[int]:
    """Left, top, right and bottom of each region, in pixels."""
    scaled = binary_scalar(context, "mul", rois, context.float_attribute("spatial_scale", 1.0))
    scaled = binary_scalar(context, "sub", scaled, 0.5) if _is_half_pixel(context) else scaled
    return [
        reshape(context, slice_axis(context, scaled, 1, index, 1), (count,)) for index in range(4)
    ]


OPS = (OnnxOp("RoiAlign", _translate, 10),)
