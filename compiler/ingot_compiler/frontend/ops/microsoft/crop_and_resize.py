"""ONNX Runtime CropAndResize: regions of images, sampled on a grid whose corners are theirs.

In: x[N, C, H, W], regions [R, 4] as shares of an image's height and width (y, x, y, x), the image
of each, how many rows and columns a crop has. Out: [R, C, rows, columns]. Not done here: types
(``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    broadcast_to,
    cast,
    concat,
    iota,
    reshape,
    size_scalar,
    slice_axis,
    transpose,
    unsqueeze,
)
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.index_checks import checked_indices
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_of, with_size
from ingot_compiler.frontend.families.images.sampling import clamp_index
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _Axis:
    """``places``: f32 [R, 1, 1] with the samples along one axis of two; ``size``: of the image."""

    context: OpContext
    places: int
    size: Dim

    def inside(self) -> int:
        """Whether each place lies in the image."""
        context = self.context
        last = size_scalar(context, self.size - 1, "f32")
        above = context.add("less_equal", context.scalar("f32", 0), self.places)
        return context.add("logical_and", above, context.add("less_equal", self.places, last))

    def pixel(self, places: int) -> int:
        """The number of a pixel, in i64."""
        return clamp_index(self.context, cast(self.context, places, "i64"), self.size)

    def below(self) -> int:
        """The last whole place that is not behind each place."""
        return self.context.add("floor", self.places)

    def behind(self) -> int:
        """The first whole place that is not before each place."""
        return self.context.add("ceil", self.places)

    def nearest(self) -> int:
        """The nearest whole place, the farther from 0 of two."""
        return self.context.add("floor", binary_scalar(self.context, "add", self.places, 0.5))


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    count, _, height, width = sizes_of(context, x, 4)
    regions = with_size(context, cast(context, context.operand(1), "f32"), 1, 4, "regions [R, 4]")
    crop = context.known_ints(context.operand(3))
    if crop is None:
        raise Unsupported("a crop_size that is known at run time only")
    if len(crop) != 2 or min(crop) < 1:
        raise OpTypeError("two sizes above 0", str(crop))
    owners = checked_indices(context, context.operand(2), count, what="image")
    image = transpose(context, x, (0, 2, 3, 1))
    y, x_axis = (
        _axis(context, regions, number, size, samples)
        for number, (size, samples) in enumerate(zip((height, width), crop, strict=True))
    )
    shape = (context.shape_of(regions)[0], *crop)
    owner = broadcast_to(
        context, reshape(context, cast(context, owners, "i64"), (shape[0], 1, 1)), shape
    )

    def pixels(row: int, column: int) -> int:
        numbers = [owner, *(broadcast_to(context, at, shape) for at in (row, column))]
        parts = [unsqueeze(context, number, (3,)) for number in numbers]
        found = as_onnx(context, "GatherND", image, concat(context, parts, 3))
        return cast(context, found, "f32")

    if context.string_attribute("mode", "bilinear", ("bilinear", "nearest")) == "nearest":
        found = pixels(y.pixel(y.nearest()), x_axis.pixel(x_axis.nearest()))
    else:
        found = _bilinear(context, y, x_axis, pixels)
    inside = context.add("logical_and", y.inside(), x_axis.inside())
    outside = context.scalar("f32", context.float_attribute("extrapolation_value", 0.0))
    found = context.add("select", unsqueeze(context, inside, (3,)), found, outside)
    return (cast(context, transpose(context, found, (0, 3, 1, 2)), context.dtype_of(x)),)


def _axis(context: OpContext, regions: int, number: int, size: Dim, samples: int) -> _Axis:
    """Samples of all regions along axis ``number``: [R, samples, 1] or [R, 1, samples]."""
    count = context.shape_of(regions)[0]
    first, last = (
        reshape(context, slice_axis(context, regions, 1, number + more, 1), (count, 1, 1))
        for more in (0, 2)
    )
    reach = size_scalar(context, size - 1, "f32")
    if samples == 1:
        middle = binary_scalar(context, "mul", context.add("add", first, last), 0.5)
        return _Axis(context, context.add("mul", middle, reach), size)
    span = context.add("mul", context.add("sub", last, first), reach)
    step = binary_scalar(context, "div", span, samples - 1)
    shape = (1, samples, 1) if number == 0 else (1, 1, samples)
    turns = reshape(context, cast(context, iota(context, samples), "f32"), shape)
    start = context.add("mul", first, reach)
    return _Axis(context, context.add("add", start, context.add("mul", turns, step)), size)


def _bilinear(context: OpContext, y: _Axis, x: _Axis, pixels: Callable[[int, int], int]) -> int:
    """Between the four pixels around each place."""

    def between(ends: Sequence[int], axis: _Axis) -> int:
        first, second = ends
        share = unsqueeze(context, context.add("sub", axis.places, axis.below()), (3,))
        part = context.add("mul", context.add("sub", second, first), share)
        return context.add("add", first, part)

    def row(place: int) -> int:
        return between(
            [pixels(y.pixel(place), x.pixel(column)) for column in (x.below(), x.behind())], x
        )

    return between([row(y.below()), row(y.behind())], y)


OPS = (
    OnnxOp(
        "CropAndResize",
        _translate,
        signature="X rois batch_indices crop_size -> Y; extrapolation_value:float mode:string",
    ),
)
