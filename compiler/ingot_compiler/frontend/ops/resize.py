"""ONNX's Resize and Upsample.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import with_count
from ingot_compiler.frontend.families.images.resize_target import (
    ResizeTarget,
    scaled_target,
    target_of_scales,
    target_of_sizes,
)
from ingot_compiler.frontend.model.onnx_node import counted_axis
from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops.resize import COORDINATES, NEAREST_MODES
from ingot_runtime.lazy_dataclass import dataclass

_FOR_NEAREST = "tf_half_pixel_for_nn"
_MODES = ("nearest", "linear", "bilinear", "trilinear", "cubic")


@dataclass(frozen=True, slots=True)
class Sampling:
    """How elements of the result are found: attributes of core ``resize``."""

    coordinates: str
    nearest_mode: str = "floor"
    exclude_outside: bool = False
    antialias: bool = False
    cubic_coefficient: float = -0.75
    extrapolation_value: float = 0.0

    def attributes(self, mode: str) -> dict[str, Attribute]:
        """All of them, for one of the core op's modes."""
        return {
            "mode": mode,
            "coordinates": self.coordinates,
            "nearest_mode": self.nearest_mode,
            "exclude_outside": self.exclude_outside,
            "antialias": self.antialias and mode != "nearest",
            "cubic_coefficient": self.cubic_coefficient,
            "extrapolation_value": self.extrapolation_value,
        }


def _resize(context: OpContext) -> Sequence[int]:
    """Resample along some axes; opsets 10 to newest.

    In: a tensor; scales, sizes, a region of interest, known at compile time or computed at run
    time. Out: core ``resize``.
    """
    x = context.operand(0)
    rank = context.rank_of(x)
    axes = [counted_axis(axis, rank) for axis in context.ints_or("axes", range(rank))]
    target = _target_resize(context, x, axes)
    sampling = _sampling(context)
    is_cropped = sampling.coordinates == "tf_crop_and_resize"
    roi = _roi(context, len(axes)) if is_cropped else None
    return (resample(context, x, axes, target, sampling, roi),)


def _given(context: OpContext, position: int) -> int | None:
    """An operand that is there and not empty."""
    value = context.optional(position)
    return None if value is None or context.type_of(value).element_count == 0 else value


def _target_resize(context: OpContext, x: int, axes: Sequence[int]) -> ResizeTarget:
    """New sizes and scales of ``axes``."""
    old = [context.shape_of(x)[axis] for axis in axes]
    scales = _given(context, 1 if context.opset == 10 else 2)
    sizes = _given(context, 3)
    if sizes is not None and scales is None:
        return target_of_sizes(context, old, sizes)
    if scales is None:
        raise OpTypeError("scales or sizes", "none")
    return target_of_scales(context, x, axes, scales)


def _sampling(context: OpContext) -> Sampling:
    """What the attributes say; opset 10 has none of them."""
    is_old = context.opset == 10
    name, known = "coordinate_transformation_mode", (*COORDINATES, _FOR_NEAREST)
    coordinates = "asymmetric" if is_old else context.string_attribute(name, "half_pixel", known)
    if coordinates == _FOR_NEAREST:
        raise Unsupported(f"{name} {_FOR_NEAREST}")
    rounding = "floor" if is_old else "round_prefer_floor"
    return Sampling(
        coordinates,
        nearest_mode=context.string_attribute("nearest_mode", rounding, NEAREST_MODES),
        exclude_outside=context.bool_attribute("exclude_outside"),
        antialias=context.bool_attribute("antialias"),
        cubic_coefficient=context.float_attribute("cubic_coeff_a", -0.75),
        extrapolation_value=context.float_attribute("extrapolation_value", 0.0),
    )


def _roi(context: OpContext, count: int) -> int:
    operand = _given(context, 1) if context.opset > 10 else None
    if operand is None:
        raise OpTypeError(f"roi of {2 * count} numbers for tf_crop_and_resize", "none")
    return cast(context, with_count(context, operand, 2 * count, "numbers in roi"), "f64")


def resample(
    context: OpContext,
    x: int,
    axes: Sequence[int],
    target: ResizeTarget,
    sampling: Sampling,
    roi: int | None = None,
) -> int:
    """Core ``resize`` over the axes that change; integers and halves are interpolated in f32.
    ``roi``: f64 starts, then ends."""
    mode = context.string_attribute("mode", "nearest", _MODES)
    mode = "linear" if mode.endswith("linear") else mode
    kept = _changing(context.shape_of(x), axes, target, every=roi is not None)
    if not kept:
        return x
    dtype = context.dtype_of(x)
    operands = [x if mode == "nearest" or dtype in ("f32", "f64") else cast(context, x, "f32")]
    if target.later is not None or roi is not None:
        operands += _vectors(context, target, roi, kept, len(axes))
    result = context.add(
        "resize", *operands, axes=tuple(axes[position] for position in kept),
        sizes=tuple(target.sizes[position] for position in kept),
        scales=tuple(target.scales[position] for position in kept),
        roi=(0.0,) * (2 * len(kept)), **sampling.attributes(mode),
    )  # fmt: skip
    return cast(context, result, dtype)


def _changing(
    shape: Sequence[Dim], axes: Sequence[int], target: ResizeTarget, *, every: bool
) -> list[int]:
    """Positions in ``axes`` of those that change, or of ``every`` one, by ascending axis."""
    return [
        position
        for axis, position in sorted((axis, position) for position, axis in enumerate(axes))
        if every
        or target.sizes[position] != shape[axis]
        or target.scales[position] not in (0.0, 1.0)
    ]


def _vectors(
    context: OpContext,
    target: ResizeTarget,
    roi: int | None,
    kept: Sequence[int],
    count: int,
) -> tuple[int, int]:
    """Scales and region of the kept ones of ``count`` axes, as f64 vectors."""
    scales = target.later
    if scales is None:
        scales = context.float_vector("f64", target.scales)
    if roi is None:
        roi = context.add("broadcast_to", context.scalar("f64", 0.0), shape=(2 * count,))
    ends = [position + count for position in kept]
    return (
        context.add("gather", scales, context.integers(kept), axis=0),
        context.add("gather", roi, context.integers([*kept, *ends]), axis=0),
    )


def _target_upsample(context: OpContext, x: int) -> ResizeTarget:
    axes = range(context.rank_of(x))
    if context.opset >= 9:
        return target_of_scales(context, x, axes, context.operand(1))
    value = context.attributes.get("scales")
    scales = [item for item in value if isinstance(item, float)] if isinstance(value, tuple) else []
    if len(scales) != len(axes):
        raise OpTypeError(f"{len(axes)} scales", scales)
    return scaled_target(context, x, axes, scales)


def _upsample(context: OpContext) -> Sequence[int]:
    """Enlarge along every axis; opsets 7 to 9 (later ones have Resize).

    In: a tensor; scales, an attribute (opset 7) or an operand (opset 9). Out: core ``resize``.
    """
    x = context.operand(0)
    axes = range(context.rank_of(x))
    return (resample(context, x, axes, _target_upsample(context, x), Sampling("asymmetric")),)


OPS = (
    OnnxOp("Resize", _resize, 10),
    OnnxOp("Upsample", _upsample, 7),
)
