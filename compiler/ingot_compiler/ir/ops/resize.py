"""``resize(x[, scales, roi]){axes, sizes, scales, mode, coordinates, ..}``: resample along some
axes (ONNX Resize-19).

In: any tensor for ``nearest``, floats otherwise. ``sizes`` are the new sizes of ``axes``;
``scales`` the factors, each the simplest fraction that rounds to its f64, 0.0 where the factor is
new size / old size. f64 vectors as operands take the place of the attributes ``scales``, here
fractions that round to f32, and ``roi`` (starts, then ends, for ``tf_crop_and_resize``).
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
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.make_shape_constraints import elements_along
from ingot_compiler.ir.rules.reference_rules import narrow, widen
from ingot_compiler.ir.rules.resample_rules import coordinates, taps
from ingot_compiler.ir.rules.typing_rules import require_dtype, require_sizes
from ingot_compiler.ir.sizes.simplest_fraction import F32_BITS, simplest_fraction
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import FLOATS, TensorType

COORDINATES = (
    "align_corners",
    "asymmetric",
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "tf_crop_and_resize",
)
_ATTRIBUTES = (
    "antialias",
    "axes",
    "coordinates",
    "cubic_coefficient",
    "exclude_outside",
    "extrapolation_value",
    "mode",
    "nearest_mode",
    "roi",
    "scales",
    "sizes",
)
NEAREST_MODES = ("ceil", "floor", "round_prefer_ceil", "round_prefer_floor")


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, *_ATTRIBUTES)
    require(len(types) in (1, 3), "one or three operands", len(types))
    x, vectors = types[0], types[1:]
    _check_attributes(attributes, x, scales_given=bool(vectors))
    axes, sizes = attribute_axes(attributes, x.rank), attribute_dims(attributes, "sizes")
    for vector, count in zip(vectors, (len(axes), 2 * len(axes)), strict=False):
        require(vector == TensorType("f64", (count,)), f"f64[{count}]", vector)
    require_sizes(sizes, "sizes")
    shape = list(x.shape)
    for axis, size in zip(axes, sizes, strict=True):
        require(size == 0 or shape[axis] != 0, "elements along the axis", x)
        shape[axis] = size
    result = TensorType(x.dtype, tuple(shape))
    constraints = (bound for axis in axes for bound in elements_along(x.shape[axis], result.shape))
    return Inferred((result,), tuple(constraints))


def _check_attributes(attributes: Attributes, x: TensorType, scales_given: bool) -> None:
    """``scales_given``: an operand says them when the model runs."""
    mode = attribute_str(attributes, "mode", ("nearest", "linear", "cubic"))
    attribute_str(attributes, "coordinates", COORDINATES)
    attribute_str(attributes, "nearest_mode", NEAREST_MODES)
    antialias = attribute_bool(attributes, "antialias")
    attribute_bool(attributes, "exclude_outside")
    attribute_float(attributes, "cubic_coefficient")
    attribute_float(attributes, "extrapolation_value")
    if mode != "nearest":
        require_dtype(x, FLOATS)
    axes, sizes = attribute_axes(attributes, x.rank), attribute_dims(attributes, "sizes")
    scales, roi = attribute_floats(attributes, "scales"), attribute_floats(attributes, "roi")
    one_per_axis = len(sizes) == len(scales) == len(axes)
    require(one_per_axis, "one size and one scale per axis", (sizes, scales))
    require(len(roi) == 2 * len(axes), "a start and an end per axis", roi)
    known = scales_given or all(scale > 0 for scale in scales)
    require(not antialias or known, "known scales for antialias", scales)


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, *vectors = operands
    if vectors:
        scales, roi = (tuple(map(float, vector)) for vector in vectors)
        exact = tuple(float(simplest_fraction(each, F32_BITS)) if each else 0.0 for each in scales)
        attributes = {**attributes, "scales": exact, "roi": roi}
    nearest = attribute_str(attributes, "mode") == "nearest"
    result = x if nearest else widen(x)
    outside: Array = np.zeros((1,) * x.ndim, np.bool_)
    for position, axis in enumerate(attribute_ints(attributes, "axes")):
        size = x.shape[axis]
        where, scale = coordinates(attributes, position, size)
        index, weight = taps(attributes, where, scale, size)
        along = [-1 if other == axis else 1 for other in range(x.ndim)]
        parts = [np.take(result, index[:, tap], axis) for tap in range(index.shape[1])]
        weighted = (part * weight[:, tap].reshape(along) for tap, part in enumerate(parts))
        result = parts[0] if nearest else np.asarray(sum(weighted))
        outside = outside | ((where < 0) | (where > size - 1)).reshape(along)
    if attribute_str(attributes, "coordinates") == "tf_crop_and_resize":
        result = np.where(outside, attribute_float(attributes, "extrapolation_value"), result)
    return (narrow(result, x),)


OPS = (CoreOp("resize", _infer, _reference, traits=Trait.STEP | Trait.DENSE_OF_ALL),)
