"""ONNX Resize: resample along some axes; opsets 10 to newest.

In: a tensor; scales or sizes, known at compile time or (sizes) computed at run time. Out: core ``resize``. Not done
here: scales computed at run time, ``antialias`` and ``keep_aspect_ratio_policy`` of sizes that are not known: reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ingot_compiler.frontend.compose import cast, in_dtype
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mul
from ingot_compiler.ir.op import OpTypeError
from ingot_compiler.ir.ops.resize import COORDINATES, NEAREST_MODES
from ingot_compiler.ir.types import FLOATS


def known_floats(context: OpContext, value: int) -> tuple[float, ...] | None:
    """All elements of a float tensor that are known at compile time; None when one is not."""
    contents = context.contents(value)
    items = () if contents is None else contents.ravel().tolist()
    if context.type_of(value).element_count == 0:
        return ()
    floats = tuple(float(item) for item in items if isinstance(item, (int, float)))
    return floats if contents is not None and len(floats) == len(items) else None


def scaled_size(size: Dim, scale: float) -> Dim:
    """floor(size * scale), exactly."""
    factor = Fraction(scale)
    return dim_floordiv(dim_mul(size, factor.numerator), factor.denominator)


def _given(context: OpContext, position: int) -> int | None:
    """An operand that is there and not empty."""
    value = context.optional(position)
    return None if value is None or context.type_of(value).element_count == 0 else value


def _axes(context: OpContext, rank: int) -> tuple[int, ...]:
    axes = context.ints_attribute("axes", range(rank))
    assert axes is not None
    return tuple(context.axis(axis, rank) for axis in axes)


def _keep_aspect(
    context: OpContext, policy: str, old: Sequence[Dim], sizes: Sequence[Dim]
) -> tuple[list[Dim], list[float]]:
    """One scale for all axes: the least or the greatest; sizes are rounded, halves up."""
    pairs = [(a, b) for a, b in zip(sizes, old, strict=True) if isinstance(a, int) and isinstance(b, int) and b]
    if len(pairs) < len(old):
        raise Unsupported(f"keep_aspect_ratio_policy {policy} of sizes that are not known at compile time")
    ratios = [Fraction(a, b) for a, b in pairs]
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    rounded: list[Dim] = [int((ratio * b * 2 + 1) // 2) for _, b in pairs]
    return rounded, [float(ratio)] * len(pairs)


def _sizes_and_scales(context: OpContext, x: int, axes: Sequence[int]) -> tuple[list[Dim], list[float]]:
    """New sizes, and scales (0.0 = new size / old size) of ``axes``."""
    old = [context.shape_of(x)[axis] for axis in axes]
    scales_at, sizes_at = (1, 3) if context.opset == 10 else (2, 3)
    scales, sizes = _given(context, scales_at), _given(context, sizes_at)
    if sizes is not None and scales is None:
        wanted = list(context.read_dims(sizes))
        if len(wanted) != len(axes):
            raise OpTypeError(f"{len(axes)} sizes", str(len(wanted)))
        policy = context.string_attribute(
            "keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller")
        )
        return (wanted, [0.0] * len(axes)) if policy == "stretch" else _keep_aspect(context, policy, old, wanted)
    if scales is None:
        raise OpTypeError("scales or sizes", "none")
    factors = known_floats(context, scales)
    if factors is None:
        raise Unsupported("scales that are computed at run time")
    if len(factors) != len(axes) or not all(factor > 0 for factor in factors):
        raise OpTypeError(f"{len(axes)} scales > 0", str(factors))
    return [scaled_size(size, factor) for size, factor in zip(old, factors, strict=True)], list(factors)


def _roi(context: OpContext, count: int) -> tuple[float, ...]:
    operand = _given(context, 1) if context.opset > 10 else None
    if operand is None:
        raise OpTypeError("roi for tf_crop_and_resize", "none")
    values = known_floats(context, operand)
    if values is None:
        raise Unsupported("a region of interest that is computed at run time")
    if len(values) != 2 * count:
        raise OpTypeError(f"{2 * count} numbers in roi", str(len(values)))
    return values


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    axes = _axes(context, context.rank_of(x))
    sizes, scales = _sizes_and_scales(context, x, axes)
    old_form = context.opset == 10
    coordinates = "asymmetric" if old_form else context.string_attribute(
        "coordinate_transformation_mode", "half_pixel", (*COORDINATES, "tf_half_pixel_for_nn")
    )
    if coordinates == "tf_half_pixel_for_nn":
        raise Unsupported("coordinate_transformation_mode tf_half_pixel_for_nn")
    roi = _roi(context, len(axes)) if coordinates == "tf_crop_and_resize" else (0.0,) * (2 * len(axes))
    nearest = context.string_attribute("nearest_mode", "floor" if old_form else "round_prefer_floor", NEAREST_MODES)
    return (
        resample(
            context, x, axes, sizes, scales, roi=roi, coordinates=coordinates, nearest_mode=nearest,
            exclude_outside=bool(context.int_attribute("exclude_outside", 0)),
            antialias=bool(context.int_attribute("antialias", 0)),
            cubic_coefficient=context.float_attribute("cubic_coeff_a", -0.75),
            extrapolation_value=context.float_attribute("extrapolation_value", 0.0),
        ),
    )  # fmt: skip


def resample(
    context: OpContext,
    x: int,
    axes: Sequence[int],
    sizes: Sequence[Dim],
    scales: Sequence[float],
    *,
    roi: Sequence[float],
    coordinates: str,
    nearest_mode: str = "floor",
    exclude_outside: bool = False,
    antialias: bool = False,
    cubic_coefficient: float = -0.75,
    extrapolation_value: float = 0.0,
) -> int:
    """Core ``resize`` over the axes that change; integers are interpolated in f32."""
    mode = context.string_attribute("mode", "nearest", ("nearest", "linear", "bilinear", "trilinear", "cubic"))
    mode = "linear" if mode.endswith("linear") else mode
    antialias = antialias and mode != "nearest"
    shape = context.shape_of(x)
    crop = coordinates == "tf_crop_and_resize"
    order = sorted(
        (axis, position)
        for position, axis in enumerate(axes)
        if crop or sizes[position] != shape[axis] or scales[position] not in (0.0, 1.0)
    )
    if not order:
        return x
    kept = [position for _, position in order]
    factors = [scales[position] for position in kept]
    if antialias:
        factors = [_known_scale(sizes[position], shape[axes[position]], scales[position]) for position in kept]
    dtype = context.dtype_of(x)
    source = x if mode == "nearest" or dtype in FLOATS else cast(context, x, "f32")
    result = context.add(
        "resize", source, axes=tuple(axis for axis, _ in order), sizes=tuple(sizes[position] for position in kept),
        scales=tuple(factors), mode=mode, coordinates=coordinates, nearest_mode=nearest_mode,
        roi=(*(roi[position] for position in kept), *(roi[position + len(axes)] for position in kept)),
        exclude_outside=exclude_outside, antialias=antialias, cubic_coefficient=cubic_coefficient,
        extrapolation_value=extrapolation_value,
    )  # fmt: skip
    return in_dtype(context, [result], dtype)[0]


def _known_scale(size: Dim, old: Dim, scale: float) -> float:
    if scale:
        return scale
    if isinstance(size, int) and isinstance(old, int) and old:
        return size / old
    raise Unsupported("antialias of sizes that are not known at compile time")


OP = OnnxOp("Resize", _translate, 10)
