"""ONNX RoiAlign: averages or maxima of samples in the cells of regions.

In: x[N, C, H, W], regions [R, 4], batch indices [R]. Out: [R, C, rows, columns]. Not done here:
types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from functools import reduce as fold
from itertools import product

from ingot_compiler.frontend.compose import (
    binary_scalar,
    cast,
    iota,
    reduce,
    reshape,
    size_scalar,
    slice_axis,
    transpose,
    unsqueeze,
)
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.index_checks import checked_indices
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.operand_sizes import sizes_of
from ingot_compiler.frontend.sampling import clamp_index
from ingot_compiler.ir.dims import Dim
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _Places:
    """Where samples lie along one axis, each [R, cells * samples]: between the pixels ``first`` and
    ``second``, which has ``weight``; whether the sample ``counts``."""

    first: int
    second: int
    weight: int
    counts: int


def _is_half_pixel(context: OpContext) -> bool:
    """Whether corners of regions lie between pixels (ONNX RoiAlign-16)."""
    name = "coordinate_transformation_mode"
    return context.opset >= 16 and context.string_attribute(name, "half_pixel") == "half_pixel"


def _places(
    context: OpContext, ends: tuple[int, int], cells: int, samples: int, size: Dim
) -> _Places:
    """Samples of regions between ``ends`` [R] along an axis of ``size`` pixels."""
    low, high = ends
    own = context.add("sub", high, low)
    if not _is_half_pixel(context):
        own = binary_scalar(context, "max", own, 1.0)
    step = binary_scalar(context, "div", own, float(cells * samples))
    centre = binary_scalar(
        context, "add", cast(context, iota(context, cells * samples), "f32"), 0.5
    )
    start = unsqueeze(context, low, (1,))
    where = context.add("add", start, context.add("mul", unsqueeze(context, step, (1,)), centre))
    length = size_scalar(context, size, "f32")
    before = binary_scalar(context, "less", where, -1.0)
    beyond = context.add("logical_or", before, context.add("less", length, where))
    last = binary_scalar(context, "sub", length, 1.0)
    where = context.add("min", binary_scalar(context, "max", where, 0.0), last)
    floor = context.add("floor", where)
    first = cast(context, floor, "i64")
    second = clamp_index(context, binary_scalar(context, "add", first, 1), size)
    first, weight = clamp_index(context, first, size), context.add("sub", where, floor)
    return _Places(first, second, weight, context.add("logical_not", beyond))


@dataclass(frozen=True, slots=True)
class _Samples:
    """Samples of all regions. ``shape``: [R, rows * samples, columns * samples]; ``owner``: the
    image of each sample, in that shape; ``one``: 1.0."""

    context: OpContext
    image: int
    owner: int
    one: int
    places: tuple[_Places, _Places]
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

    def counts(self) -> int:
        """[*shape, 1]: whether a sample lies in the image."""
        counted = [self.wide(at.counts, axis) for axis, at in enumerate(self.places, 1)]
        return unsqueeze(self.context, self.context.add("logical_and", *counted), (3,))


def _translate(context: OpContext) -> Sequence[int]:
    x, rois = context.operand(0), cast(context, context.operand(1), "f32")
    rows, columns = (context.int_attribute(f"output_{name}", 1) for name in ("height", "width"))
    samples = context.int_attribute("sampling_ratio", 0)
    if samples <= 0:
        raise Unsupported("sampling_ratio 0: a number of samples that every region decides")
    is_max = context.string_attribute("mode", "avg", ("avg", "max")) == "max"
    count, (channels, height, width) = sizes_of(context, rois, 2)[0], sizes_of(context, x, 4)[1:]
    left, top, right, bottom = _edges(context, rois, count)
    y = _places(context, (top, bottom), rows, samples, height)
    x_places = _places(context, (left, right), columns, samples, width)
    image = transpose(context, cast(context, x, "f32"), (0, 2, 3, 1))
    shape = (count, rows * samples, columns * samples)
    owner, one = _owner(context, shape), context.scalar("f32", 1)
    places = _Samples(context, image, owner, one, (y, x_places), shape)
    terms = [places.corner(far) for far in product((False, True), repeat=2)]
    counts = places.counts()
    joined = fold(partial(context.add, "max" if is_max else "add"), terms)
    joined = context.add("select", counts, joined, context.scalar("f32", 0))
    cells = reshape(context, joined, (count, rows, samples, columns, samples, channels))
    reduced = reduce(context, cells, "max" if is_max else "mean", (2, 4))
    return (cast(context, transpose(context, reduced, (0, 3, 1, 2)), context.dtype_of(x)),)


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


OP = OnnxOp("RoiAlign", _translate, 10)
