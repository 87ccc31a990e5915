"""ONNX GridSample: samples of an image at the places of a grid.

In: x[N, C, spatial..], grid[N, points.., axes], coordinates in [-1, 1], last axis of x first. Out:
[N, C, points..]. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    cast,
    clamp,
    less_scalar,
    reshape,
    size_scalar,
    slice_axis,
    transpose,
    wide_float,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_from, with_size
from ingot_compiler.frontend.families.images.sampling import (
    clamp_index,
    cubic_weights,
    linear_weights,
    pixels,
    weighted,
)
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_runtime.lazy_dataclass import dataclass

_CUBIC = -0.75
_FAR = 8.0  # pixels outside of the image: no sample there touches it
_MODES = ("linear", "bilinear", "nearest", "cubic", "bicubic")


@dataclass(frozen=True, slots=True)
class _Sampler:
    """What a node asks for, and the spatial sizes of its image."""

    context: OpContext
    sizes: tuple[Dim, ...]
    mode: str
    padding: str
    align: bool

    def pixel(self, axis: int, index: int) -> tuple[int, int | None]:
        """The ``PixelIndex`` of the padding."""
        context, size = self.context, self.sizes[axis]
        if self.padding == "reflection":
            position = cast(context, index, "f32")
            index = cast(context, _reflected(context, position, size, align=self.align), "i64")
        inside = clamp_index(context, index, size)
        return inside, context.add("equal", inside, index) if self.padding == "zeros" else None

    def positions(self, grid: int, axis: int) -> int:
        """Positions along one axis, in pixels; moved inside where the padding says so.

        Not for cubic samples within a border: PyTorch and ONNX Runtime leave these where they are
        and hold each neighbour at the border, where ONNX's reference moves the position first.
        """
        context, size = self.context, self.sizes[axis]
        count = len(self.sizes)
        column = slice_axis(context, grid, count + 1, count - 1 - axis, 1)
        coordinate = reshape(context, column, context.shape_of(grid)[:-1])
        length = size_scalar(context, size, "f32")
        position = _in_pixels(context, coordinate, length, align=self.align)
        position = context.add("round", position) if self.mode == "nearest" else position
        if self.padding == "reflection":
            return _reflected(context, position, size, align=self.align)
        if self.padding == "border" and not self.mode.endswith("cubic"):
            return _held_at_border(context, position, length, align=self.align)
        return _near(context, position, length)

    def nearest(self, image: int, positions: Sequence[int]) -> int:
        """The pixels at whole positions."""
        context = self.context
        places = [
            self.pixel(axis, cast(context, position, "i64"))
            for axis, position in enumerate(positions)
        ]
        result = pixels(context, image, [index for index, _ in places])
        for _, counts in places:
            if counts is not None:
                wide = reshape(context, counts, (*context.shape_of(counts), 1))
                zero = context.scalar(context.dtype_of(image), 0)
                result = context.add("select", wide, result, zero)
        return result

    def interpolated(self, image: int, positions: Sequence[int]) -> int:
        """Sums over the neighbours of each position, by linear or cubic weights."""
        context, cubic = self.context, self.mode.endswith("cubic")
        floors = [context.add("floor", position) for position in positions]
        fractions = [context.add("sub", *pair) for pair in zip(positions, floors, strict=True)]
        weights = [
            cubic_weights(context, fraction, _CUBIC) if cubic else linear_weights(context, fraction)
            for fraction in fractions
        ]
        wide = context.dtype_of(image)
        weights = [[cast(context, weight, wide) for weight in own] for own in weights]
        bases = [
            binary_scalar(context, "sub", cast(context, floor, "i64"), 1 if cubic else 0)
            for floor in floors
        ]
        return weighted(context, image, bases, weights, self.pixel)


def _translate(context: OpContext) -> Sequence[int]:
    x, grid = context.operand(0), cast(context, context.operand(1), "f32")
    rank, dtype = len(sizes_from(context, x, 3)), context.dtype_of(x)
    sizes = context.shape_of(x)[2:]
    wanted = f"a grid of rank {rank} with {len(sizes)} coordinates"
    if context.rank_of(grid) != rank:
        raise OpTypeError(wanted, context.type_of(grid))
    grid = with_size(context, grid, -1, len(sizes), wanted)
    mode = context.string_attribute("mode", "linear", _MODES)
    padding = context.string_attribute("padding_mode", "zeros", ("zeros", "border", "reflection"))
    sampler = _Sampler(context, sizes, mode, padding, context.bool_attribute("align_corners"))
    exact = x if mode == "nearest" else cast(context, x, wide_float(dtype))
    image = transpose(context, exact, (0, *range(2, rank), 1))
    positions = [sampler.positions(grid, axis) for axis in range(len(sizes))]
    sample = sampler.nearest if mode == "nearest" else sampler.interpolated
    result = cast(context, sample(image, positions), dtype)
    return (transpose(context, result, (0, rank - 1, *range(1, rank - 1))),)


def _in_pixels(context: OpContext, coordinate: int, length: int, *, align: bool) -> int:
    """A coordinate in [-1, 1] as a position in an axis of ``length`` pixels; f32."""
    raised = binary_scalar(context, "add", coordinate, 1.0)
    if align:
        half = binary_scalar(context, "mul", raised, 0.5)
        return context.add("mul", half, binary_scalar(context, "sub", length, 1.0))
    stretched = binary_scalar(context, "sub", context.add("mul", raised, length), 1.0)
    return binary_scalar(context, "mul", stretched, 0.5)


def _reflected(context: OpContext, x: int, size: Dim, *, align: bool) -> int:
    """X mirrored at the borders until it is inside; f32."""
    length = size_scalar(context, size, "f32")
    low = context.scalar("f32", 0.0 if align else -0.5)
    high = binary_scalar(context, "sub", length, 1.0 if align else 0.5)
    span = binary_scalar(context, "max", context.add("sub", high, low), 1e-6)
    zero = context.scalar("f32", 0)
    below, above = context.add("sub", low, x), context.add("sub", x, high)
    beyond = context.add("max", context.add("max", below, above), zero)
    turns = context.add("floor", context.add("div", beyond, span))
    rest = context.add("sub", beyond, context.add("mul", turns, span))
    odd = binary_scalar(context, "fmod", turns, 2.0)
    is_below, is_even = context.add("less", zero, below), binary_scalar(context, "equal", odd, 0.0)
    from_low = context.add("equal", is_below, is_even)
    from_ends = context.add("add", low, rest), context.add("sub", high, rest)
    mirrored = context.add("select", from_low, *from_ends)
    return context.add("select", context.add("less", zero, beyond), mirrored, x)


def _held_at_border(context: OpContext, position: int, length: int, *, align: bool) -> int:
    """A position moved to the border where it lies outside; half a pixel around the centres is inside
    (ONNX GridSample)."""
    edge = 0.0 if align else 0.5
    high = binary_scalar(context, "sub", length, 1.0 - edge)
    below = less_scalar(context, position, -edge)
    outside = context.add("logical_or", below, context.add("less", high, position))
    ends = context.scalar("f32", 0), binary_scalar(context, "sub", length, 1.0)
    return context.add("select", outside, clamp(context, position, *ends), position)


def _near(context: OpContext, position: int, length: int) -> int:
    """Far places and NaN are outside as well, but fit an index."""
    limit = binary_scalar(context, "add", length, _FAR)
    kept = clamp(context, position, context.scalar("f32", -_FAR), limit)
    return context.add("select", context.add("isnan", position), context.scalar("f32", -_FAR), kept)


OPS = (OnnxOp("GridSample", _translate, 16),)
