"""ONNX RoiAlign: averages or maxima of samples in the cells of regions.

In: x[N, C, H, W], regions [R, 4], batch indices [R]. Out: [R, C, rows, columns]. Not done here:
types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import (
    binary_scalar,
    cast,
    reshape,
    sizes_of,
    slice_axis,
    transpose,
    unsqueeze,
)
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.index_checks import checked_indices
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.sampling import clamp_index, dim_value
from ingot_compiler.ir.dims import Dim


def _places(
    context: OpContext, low: int, high: int, cells: int, samples: int, size: Dim
) -> tuple[int, int, int, int]:
    """(first index, second index, weight of the second, whether the sample counts) of [R, cells *
    samples] samples."""
    own = context.add("sub", high, low)
    if (
        context.opset < 16
        or context.string_attribute("coordinate_transformation_mode", "half_pixel") != "half_pixel"
    ):
        own = binary_scalar(context, "max", own, 1.0)
    step = binary_scalar(context, "div", own, float(cells * samples))
    iota = cast(context, context.add("iota", dtype="i64", length=cells * samples), "f32")
    centre = binary_scalar(context, "add", iota, 0.5)
    where = context.add(
        "add",
        unsqueeze(context, low, (1,)),
        context.add("mul", unsqueeze(context, step, (1,)), centre),
    )
    length = dim_value(context, size, "f32")
    beyond = context.add(
        "logical_or",
        binary_scalar(context, "less", where, -1.0),
        context.add("less", length, where),
    )
    last = binary_scalar(context, "sub", length, 1.0)
    where = context.add("min", binary_scalar(context, "max", where, 0.0), last)
    floor = context.add("floor", where)
    first = cast(context, floor, "i64")
    second = clamp_index(context, binary_scalar(context, "add", first, 1), size)
    return (
        clamp_index(context, first, size),
        second,
        context.add("sub", where, floor),
        context.add("logical_not", beyond),
    )


def _translate(context: OpContext) -> Sequence[int]:
    x, rois, batch = (
        context.operand(0),
        cast(context, context.operand(1), "f32"),
        context.operand(2),
    )
    rows, columns = (
        context.int_attribute("output_height", 1),
        context.int_attribute("output_width", 1),
    )
    samples = context.int_attribute("sampling_ratio", 0)
    if samples <= 0:
        raise Unsupported("sampling_ratio 0: a number of samples that every region decides")
    dtype = context.dtype_of(x)
    mode = context.string_attribute("mode", "avg", ("avg", "max"))
    half = (
        context.opset >= 16
        and context.string_attribute("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    )
    count, (channels, height, width) = sizes_of(context, rois, 2)[0], sizes_of(context, x, 4)[1:]
    scaled = binary_scalar(context, "mul", rois, context.float_attribute("spatial_scale", 1.0))
    scaled = binary_scalar(context, "sub", scaled, 0.5) if half else scaled
    left, top, right, bottom = (
        reshape(context, slice_axis(context, scaled, 1, index, 1), (count,)) for index in range(4)
    )
    y = _places(context, top, bottom, rows, samples, height)
    x_places = _places(context, left, right, columns, samples, width)
    image = transpose(context, cast(context, x, "f32"), (0, 2, 3, 1))
    shape = (count, rows * samples, columns * samples)

    def wide(value: int, axis: int) -> int:
        return context.add(
            "broadcast_to", unsqueeze(context, value, (2 if axis == 1 else 1,)), shape=shape
        )

    batch = cast(context, checked_indices(context, batch, context.shape_of(x)[0]), "i64")
    owner = context.add("broadcast_to", reshape(context, batch, (count, 1, 1)), shape=shape)
    terms: list[int] = []
    one = context.scalar("f32", 1)
    for upper in (False, True):
        for near in (False, True):
            parts = [owner, wide(y[1 if upper else 0], 1), wide(x_places[1 if near else 0], 2)]
            index = context.add(
                "concat", *(unsqueeze(context, part, (3,)) for part in parts), axis=3
            )
            weights = [
                wide(place[2] if far else context.add("sub", one, place[2]), axis)
                for place, far, axis in ((y, upper, 1), (x_places, near, 2))
            ]
            weight = unsqueeze(context, context.add("mul", *weights), (3,))
            terms.append(
                context.add("mul", context.add("gather_nd", image, index, batch_dims=0), weight)
            )
    counts = unsqueeze(
        context, context.add("logical_and", wide(y[3], 1), wide(x_places[3], 2)), (3,)
    )
    joined = terms[0]
    for term in terms[1:]:
        joined = context.add("max" if mode == "max" else "add", joined, term)
    joined = context.add("select", counts, joined, context.scalar("f32", 0))
    cells = reshape(context, joined, (count, rows, samples, columns, samples, channels))
    function = "max" if mode == "max" else "mean"
    reduced = context.add("reduce", cells, function=function, axes=(2, 4), keepdims=False)
    return (cast(context, transpose(context, reduced, (0, 3, 1, 2)), dtype),)


OP = OnnxOp("RoiAlign", _translate, 10)
