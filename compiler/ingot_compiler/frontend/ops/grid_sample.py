"""ONNX GridSample: samples of an image at the places of a grid.

In: x[N, C, spatial..], grid[N, points.., axes], coordinates in [-1, 1], last axis of x first. Out:
[N, C, points..]. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import (
    binary_scalar,
    cast,
    less_scalar,
    reshape,
    sizes_from,
    slice_axis,
    transpose,
)
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.sampling import (
    clamp,
    clamp_index,
    cubic_weights,
    dim_value,
    linear_weights,
    pixels,
    weighted,
)
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.op_type_error import OpTypeError

_CUBIC = -0.75


def _reflected(context: OpContext, x: int, size: Dim, *, align: bool) -> int:
    """X mirrored at the borders until it is inside; f32."""
    length = dim_value(context, size, "f32")
    low = context.scalar("f32", 0.0 if align else -0.5)
    high = binary_scalar(context, "sub", length, 1.0 if align else 0.5)
    span = binary_scalar(context, "max", context.add("sub", high, low), 1e-6)
    zero = context.scalar("f32", 0)
    below, above = context.add("sub", low, x), context.add("sub", x, high)
    beyond = context.add("max", context.add("max", below, above), zero)
    turns = context.add("floor", context.add("div", beyond, span))
    rest = context.add("sub", beyond, context.add("mul", turns, span))
    odd = binary_scalar(context, "fmod", turns, 2.0)
    from_low = context.add(
        "equal", context.add("less", zero, below), binary_scalar(context, "equal", odd, 0.0)
    )
    mirrored = context.add(
        "select", from_low, context.add("add", low, rest), context.add("sub", high, rest)
    )
    return context.add("select", context.add("less", zero, beyond), mirrored, x)


def _translate(context: OpContext) -> Sequence[int]:
    x, grid = context.operand(0), cast(context, context.operand(1), "f32")
    rank = len(sizes_from(context, x, 3))
    sizes = context.shape_of(x)[2:]
    if context.rank_of(grid) != rank or context.shape_of(grid)[-1] != len(sizes):
        raise OpTypeError(
            f"a grid of rank {rank} with {len(sizes)} coordinates", context.type_of(grid)
        )
    mode = context.string_attribute(
        "mode", "linear", ("linear", "bilinear", "nearest", "cubic", "bicubic")
    )
    padding = context.string_attribute("padding_mode", "zeros", ("zeros", "border", "reflection"))
    align = bool(context.int_attribute("align_corners", 0))
    dtype = context.dtype_of(x)
    image = transpose(context, x if mode == "nearest" else cast(context, x, "f64" if dtype == "f64" else "f32"),
                      (0, *range(2, rank), 1))  # fmt: skip

    def place(axis: int, index: int) -> tuple[int, int | None]:
        if padding == "reflection":
            index = cast(
                context,
                _reflected(context, cast(context, index, "f32"), sizes[axis], align=align),
                "i64",
            )
        inside = clamp_index(context, index, sizes[axis])
        return inside, context.add("equal", inside, index) if padding == "zeros" else None

    where = [
        _where(context, grid, axis, size, mode, padding, align) for axis, size in enumerate(sizes)
    ]
    if mode == "nearest":
        places = [
            place(axis, cast(context, position, "i64")) for axis, position in enumerate(where)
        ]
        result = pixels(context, image, [index for index, _ in places])
        for _, counts in places:
            if counts is not None:
                result = context.add(
                    "select",
                    reshape(context, counts, (*context.shape_of(counts), 1)),
                    result,
                    context.scalar(dtype, 0),
                )
    else:
        floors = [context.add("floor", position) for position in where]
        fractions = [
            context.add("sub", position, floor)
            for position, floor in zip(where, floors, strict=True)
        ]
        cubic = mode.endswith("cubic")
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
        result = cast(context, weighted(context, image, bases, weights, place), dtype)
    return (transpose(context, result, (0, rank - 1, *range(1, rank - 1))),)


def _where(
    context: OpContext, grid: int, axis: int, size: Dim, mode: str, padding: str, align: bool
) -> int:
    """Positions along one axis, in pixels; moved inside where the padding says so."""
    count = context.rank_of(grid) - 2
    shape = context.shape_of(grid)[:-1]
    own = reshape(context, slice_axis(context, grid, count + 1, count - 1 - axis, 1), shape)
    length = dim_value(context, size, "f32")
    raised = binary_scalar(context, "add", own, 1.0)
    if align:
        position = context.add(
            "mul",
            binary_scalar(context, "mul", raised, 0.5),
            binary_scalar(context, "sub", length, 1.0),
        )
    else:
        stretched = binary_scalar(context, "sub", context.add("mul", raised, length), 1.0)
        position = binary_scalar(context, "mul", stretched, 0.5)
    position = context.add("round", position) if mode == "nearest" else position
    if padding == "reflection":
        return _reflected(context, position, size, align=align)
    if padding == "border":
        # As ONNX says: what is within the border, half a pixel around the centres, stays.
        edge = 0.0 if align else 0.5
        high = binary_scalar(context, "sub", length, 1.0 - edge)
        outside = context.add(
            "logical_or", less_scalar(context, position, -edge), context.add("less", high, position)
        )
        inside = clamp(
            context, position, context.scalar("f32", 0), binary_scalar(context, "sub", length, 1.0)
        )
        return context.add("select", outside, inside, position)
    # Far places and NaN are outside as well, and fit an index.
    limit = binary_scalar(context, "add", length, 8.0)
    kept = clamp(context, position, context.scalar("f32", -8.0), limit)
    return context.add("select", context.add("isnan", position), context.scalar("f32", -8.0), kept)


OP = OnnxOp("GridSample", _translate, 16)
