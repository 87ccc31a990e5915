"""``resize(x[, scales, roi]){axes, sizes, scales, mode, coordinates, ..}``: resample along some
axes (ONNX Resize-19).

In: any tensor for ``nearest``, floats otherwise. ``sizes`` are the new sizes of ``axes``;
``scales`` the factors, 0.0 where the factor is new size / old size. f64 vectors as operands take
the place of the attributes ``scales`` and ``roi`` (starts, then ends, for ``tf_crop_and_resize``).
Out: x's element type. Not done here: ``keep_aspect_ratio_policy`` (the frontend), lowering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_axes,
    attribute_bool,
    attribute_dims,
    attribute_float,
    attribute_floats,
    attribute_ints,
    attribute_str,
    require_attributes,
)
from ingot_compiler.ir.make_shape_constraints import elements_along
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.reference_rules import narrow, widen
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, TensorType
from ingot_compiler.ir.typing_rules import require_dtype, require_sizes

COORDINATES = (
    "align_corners",
    "asymmetric",
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "tf_crop_and_resize",
)
NEAREST_MODES = ("ceil", "floor", "round_prefer_ceil", "round_prefer_floor")


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(
        attributes, "antialias", "axes", "coordinates", "cubic_coefficient", "exclude_outside", "extrapolation_value",
        "mode", "nearest_mode", "roi", "scales", "sizes",
    )  # fmt: skip
    require(len(types) in (1, 3), "one or three operands", len(types))
    mode = attribute_str(attributes, "mode", ("nearest", "linear", "cubic"))
    attribute_str(attributes, "coordinates", COORDINATES)
    attribute_str(attributes, "nearest_mode", NEAREST_MODES)
    antialias = attribute_bool(attributes, "antialias")
    attribute_bool(attributes, "exclude_outside")
    attribute_float(attributes, "cubic_coefficient")
    attribute_float(attributes, "extrapolation_value")
    if mode != "nearest":
        require_dtype(types[0], FLOATS)
    axes, sizes = attribute_axes(attributes, types[0].rank), attribute_dims(attributes, "sizes")
    scales, roi = attribute_floats(attributes, "scales"), attribute_floats(attributes, "roi")
    require(
        len(sizes) == len(scales) == len(axes), "one size and one scale per axis", (sizes, scales)
    )
    require(len(roi) == 2 * len(axes), "a start and an end per axis", roi)
    known = len(types) > 1 or all(scale > 0 for scale in scales)
    require(not antialias or known, "known scales for antialias", scales)
    for vector, count in zip(types[1:], (len(axes), 2 * len(axes)), strict=False):
        require(vector == TensorType("f64", (count,)), f"f64[{count}]", vector)
    require_sizes(sizes, "sizes")
    shape = list(types[0].shape)
    for axis, size in zip(axes, sizes, strict=True):
        require(size == 0 or shape[axis] != 0, "elements along the axis", types[0])
        shape[axis] = size
    result = TensorType(types[0].dtype, tuple(shape))
    constraints = (
        bound
        for axis in axes
        for bound in elements_along(types[0].shape[axis], result.element_count)
    )
    return Inferred((result,), tuple(constraints))


def _coordinates(attributes: Attributes, position: int, size: int) -> tuple[Array, float]:
    """The source coordinate of every new position along one axis, and the scale."""
    new = attribute_ints(attributes, "sizes")[position]
    scale = attribute_floats(attributes, "scales")[position]
    length = scale * size if scale else float(new)
    scale = scale or new / size
    where = np.arange(new, dtype=np.float64)
    mode = attribute_str(attributes, "coordinates")
    if mode == "asymmetric":
        return where / scale, scale
    if mode == "align_corners":
        return where * (size - 1) / (length - 1) if length != 1 else where * 0, scale
    if mode == "tf_crop_and_resize":
        roi = attribute_floats(attributes, "roi")
        start, end = roi[position], roi[position + len(roi) // 2]
        if length == 1:
            return np.full(new, 0.5 * (start + end) * (size - 1)), scale
        return where * (end - start) * (size - 1) / (length - 1) + start * (size - 1), scale
    if mode == "pytorch_half_pixel" and length == 1:
        return where * 0, scale
    offset = size / 2 * (1 - new / length) if mode == "half_pixel_symmetric" else 0.0
    return offset + (where + 0.5) / scale - 0.5, scale


def tap_count(mode: str, scale: float, antialias: bool) -> tuple[int, int]:
    """(first tap relative to the floor of the coordinate, number of taps)."""
    reach = {"nearest": 0, "linear": 1, "cubic": 2}[mode]
    shrink = min(scale, 1.0) if antialias else 1.0
    first = int(np.floor(-reach / shrink) + 1)
    return (0, 1) if mode == "nearest" else (first, 2 - 2 * first)


def _kernel(mode: str, distance: Array, a: float) -> Array:
    d = np.abs(distance)
    if mode == "linear":
        return np.asarray(np.clip(1 - d, 0, 1))
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    return np.where(d <= 1, near, np.where(d < 2, a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a, 0.0))


def _nearest(where: Array, mode: str) -> Array:
    rounding = {
        "ceil": np.ceil(where),
        "floor": np.floor(where),
        "round_prefer_ceil": np.floor(where + 0.5),
        "round_prefer_floor": np.ceil(where - 0.5),
    }
    return rounding[mode].astype(np.int64)


def _taps(attributes: Attributes, where: Array, scale: float, size: int) -> tuple[Array, Array]:
    """(source index, weight) of every tap of every new position, clamped to the edge."""
    mode, antialias = attribute_str(attributes, "mode"), attribute_bool(attributes, "antialias")
    if mode == "nearest":
        nearest = np.clip(_nearest(where, attribute_str(attributes, "nearest_mode")), 0, size - 1)[
            :, None
        ]
        return nearest, np.ones(nearest.shape)
    first, count = tap_count(mode, scale, antialias)
    index = np.floor(where).astype(np.int64)[:, None] + np.arange(first, first + count)
    shrink = min(scale, 1.0) if antialias else 1.0
    weight = _kernel(
        mode, (index - where[:, None]) * shrink, attribute_float(attributes, "cubic_coefficient")
    )
    if attribute_bool(attributes, "exclude_outside"):
        weight = np.where((index >= 0) & (index < size), weight, 0.0)
    if attribute_bool(attributes, "exclude_outside") or antialias:
        weight = weight / weight.sum(1, keepdims=True)
    return np.clip(index, 0, size - 1), weight


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x = operands[0]
    if len(operands) > 1:
        given = {
            name: tuple(map(float, values))
            for name, values in zip(("scales", "roi"), operands[1:], strict=True)
        }
        attributes = {**attributes, **given}
    nearest = attribute_str(attributes, "mode") == "nearest"
    result = x if nearest else widen(x)
    outside: Array = np.zeros((1,) * x.ndim, np.bool_)
    for position, axis in enumerate(attribute_ints(attributes, "axes")):
        size = x.shape[axis]
        where, scale = _coordinates(attributes, position, size)
        index, weight = _taps(attributes, where, scale, size)
        along = [-1 if other == axis else 1 for other in range(x.ndim)]
        parts = [np.take(result, index[:, tap], axis) for tap in range(index.shape[1])]
        result = (
            parts[0]
            if nearest
            else np.asarray(
                sum(part * weight[:, tap].reshape(along) for tap, part in enumerate(parts))
            )
        )
        outside = outside | ((where < 0) | (where > size - 1)).reshape(along)
    if attribute_str(attributes, "coordinates") == "tf_crop_and_resize":
        result = np.where(outside, attribute_float(attributes, "extrapolation_value"), result)
    return (narrow(result, x),)


OP = CoreOp("resize", _infer, _reference, traits=Trait.STEP)
