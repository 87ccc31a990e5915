"""ONNX DeformConv: a convolution whose taps lie where an operand says, between pixels.

In: x[N, C, h, w], weights, offsets, perhaps a bias and a factor for each tap. Out: samples by
``sampling``, then core ``matmul``. Not done here: other than two spatial axes (unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    cast,
    concat,
    range_mask,
    reshape,
    slice_axis,
    transpose,
    unsqueeze,
    wide_float,
)
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.images.sampling import clamp_index, linear_weights, weighted
from ingot_compiler.ir.dims import Dim, dim_mul
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_runtime.lazy_dataclass import dataclass

_SPATIAL = 2


@dataclass(frozen=True, slots=True)
class _Shape:
    """``channels``: (of the image, of the result); ``groups``: (of weights, of offsets)."""

    channels: tuple[int, int]
    kernel: tuple[int, int]
    groups: tuple[int, int]
    batch: Dim
    result: tuple[Dim, Dim]

    @property
    def taps(self) -> int:
        """The number of taps."""
        return self.kernel[0] * self.kernel[1]


def _translate(context: OpContext) -> Sequence[int]:
    x, w, offset = (context.operand(position) for position in range(3))
    if context.rank_of(x) != 2 + _SPATIAL:
        raise Unsupported(f"{context.rank_of(x) - 2} spatial axes: 2 have a translation")
    for name, operand in (("w", w), ("offset", offset)):
        if context.rank_of(operand) != 2 + _SPATIAL:
            raise OpTypeError(f"{name} of rank {2 + _SPATIAL}", context.type_of(operand))
    shape = _shape(context, x, w, offset)
    dtype = wide_float(context.dtype_of(x))
    image = transpose(context, cast(context, x, dtype), (0, 2, 3, 1))
    offset = cast(context, offset, dtype)
    each = shape.channels[0] // shape.groups[1]
    parts = [
        _samples(context, slice_axis(context, image, 3, group * each, each), offset, shape, group)
        for group in range(shape.groups[1])
    ]
    found = _products(context, concat(context, parts, 4), cast(context, w, dtype), shape)
    bias = context.optional(3)
    if bias is not None:
        found = context.add("add", found, cast(context, bias, dtype))
    found = reshape(context, found, (shape.batch, *shape.result, shape.channels[1]))
    return (cast(context, transpose(context, found, (0, 3, 1, 2)), context.dtype_of(x)),)


def _shape(context: OpContext, x: int, w: int, offset: int) -> _Shape:
    """ModelError where sizes contradict each other."""
    batch, channels, *_ = context.shape_of(x)
    sizes = (channels, *context.shape_of(w))
    whole = [size for size in sizes if isinstance(size, int)]
    if len(whole) < len(sizes):
        raise Unsupported("channels or a kernel whose sizes are known at run time only")
    count, of_result, of_group, *kernel = whole
    group, offset_group = (
        context.int_attribute("group", 1),
        context.int_attribute("offset_group", 1),
    )
    require(
        count == of_group * group and of_result % group == 0, f"{of_group * group} channels", count
    )
    require(
        offset_group > 0 and count % offset_group == 0,
        "groups that divide the channels",
        offset_group,
    )
    given = context.shape_of(offset)
    expected = offset_group * kernel[0] * kernel[1] * _SPATIAL
    require(
        len(given) == 4 and given[1] == expected, f"{expected} offsets", context.type_of(offset)
    )
    return _Shape(
        (count, of_result),
        (kernel[0], kernel[1]),
        (group, offset_group),
        batch,
        (given[2], given[3]),
    )


def _samples(context: OpContext, image: int, offset: int, shape: _Shape, group: int) -> int:
    """[N, taps, oh, ow, channels of a group]."""
    sizes = context.shape_of(image)[1:3]
    own = slice_axis(context, offset, 1, group * shape.taps * 2, shape.taps * 2)
    own = reshape(context, own, (shape.batch, shape.taps, 2, *shape.result))
    bases: list[int] = []
    weights: list[list[int]] = []
    for axis in range(_SPATIAL):
        shift = reshape(
            context, slice_axis(context, own, 2, axis, 1), (shape.batch, shape.taps, *shape.result)
        )
        place = context.add("add", _places(context, shape, axis, context.dtype_of(image)), shift)
        whole = context.add("floor", place)
        bases.append(cast(context, whole, "i64"))
        weights.append(linear_weights(context, context.add("sub", place, whole)))

    def inside(axis: int, index: int) -> tuple[int, int | None]:
        clamped = clamp_index(context, index, sizes[axis])
        return clamped, context.add("equal", clamped, index)

    found = weighted(context, image, bases, weights, inside)
    mask = context.optional(4)
    if mask is None:
        return found
    factor = slice_axis(context, mask, 1, group * shape.taps, shape.taps)
    return context.add(
        "mul", found, unsqueeze(context, cast(context, factor, context.dtype_of(image)), (4,))
    )


def _places(context: OpContext, shape: _Shape, axis: int, dtype: str) -> int:
    """Where taps lie without offsets: [1, taps, oh, 1] or [1, taps, 1, ow]."""
    stride, dilation = (context.ints_or(name, (1, 1))[axis] for name in ("strides", "dilations"))
    pad = context.ints_or("pads", (0,) * 4)[axis]
    rows, columns = shape.kernel
    taps = [
        ((number // columns, number % columns)[axis]) * dilation - pad
        for number in range(rows * columns)
    ]
    start = reshape(context, context.integers(taps), (1, shape.taps, 1, 1))
    sizes: list[Dim] = [1, 1, 1, 1]
    sizes[2 + axis] = shape.result[axis]
    steps = context.add("mul", range_mask(context, sizes, 2 + axis), context.scalar("i64", stride))
    return cast(context, context.add("add", start, steps), "f64" if dtype == "f64" else "f32")


def _products(context: OpContext, samples: int, w: int, shape: _Shape) -> int:
    """[N, oh * ow, channels of the result]: the taps of each group times its weights."""
    group, rows = shape.groups[0], dim_mul(*shape.result)
    count, each = shape.channels[0] // group, shape.channels[1] // group
    parts: list[int] = []
    for number in range(group):
        own = slice_axis(context, samples, 4, number * count, count)
        own = transpose(context, own, (0, 2, 3, 1, 4))
        own = reshape(context, own, (shape.batch, rows, shape.taps * count))
        table = transpose(context, slice_axis(context, w, 0, number * each, each), (2, 3, 1, 0))
        parts.append(
            context.add("matmul", own, reshape(context, table, (shape.taps * count, each)))
        )
    return concat(context, parts, 2)


OPS = (OnnxOp("DeformConv", _translate),)
