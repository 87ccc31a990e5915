"""ONNX Resize: resample along some axes; opsets 10 to newest.

In: a tensor; scales, sizes, a region of interest, known at compile time or computed at run time.
Out: core ``resize``.
Not done here: ``tf_half_pixel_for_nn`` of opset 11 (reported as unsupported).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ingot_compiler.frontend.compose import binary_scalar, broadcast_to, cast
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mul
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ops.resize import COORDINATES, NEAREST_MODES
from ingot_compiler.ir.types import FLOATS


@dataclass(frozen=True, slots=True)
class ResizeTarget:
    """New sizes; scales (0.0 = new size / old size), or ``later``: a vector of scales that only a
    run knows."""

    sizes: list[Dim]
    scales: list[float]
    later: int | None = None


def known_floats(context: OpContext, value: int) -> tuple[float, ...] | None:
    """All elements of a float tensor that are known at compile time; None when one is not."""
    known_values = context.known_values(value)
    items = () if known_values is None else known_values.ravel().tolist()
    if context.type_of(value).element_count == 0:
        return ()
    floats = tuple(float(item) for item in items if isinstance(item, (int, float)))
    return floats if known_values is not None and len(floats) == len(items) else None


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


def _keep_aspect(policy: str, old: Sequence[Dim], sizes: Sequence[Dim]) -> ResizeTarget | None:
    """One scale for all axes: the least or the greatest; sizes are rounded, halves up. None: not
    known yet."""
    pairs = [
        (a, b)
        for a, b in zip(sizes, old, strict=True)
        if isinstance(a, int) and isinstance(b, int) and b
    ]
    if len(pairs) < len(old):
        return None
    ratios = [Fraction(a, b) for a, b in pairs]
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    return ResizeTarget(
        [int((ratio * b * 2 + 1) // 2) for _, b in pairs], [float(ratio)] * len(pairs)
    )


def _keep_aspect_later(
    context: OpContext, policy: str, old: Sequence[Dim], sizes: int
) -> ResizeTarget:
    """``_keep_aspect`` of sizes that only a run knows."""
    lengths = cast(context, context.integers(old), "f64")
    ratios = context.add("div", cast(context, sizes, "f64"), lengths)
    function = "min" if policy == "not_larger" else "max"
    ratio = context.add("reduce", ratios, function=function, axes=(0,), keepdims=True)
    rounded = context.add(
        "floor", binary_scalar(context, "add", context.add("mul", lengths, ratio), 0.5)
    )
    wanted = context.read_dims(cast(context, rounded, "i64"))
    return ResizeTarget(list(wanted), [0.0] * len(old), broadcast_to(context, ratio, (len(old),)))


def _target(context: OpContext, x: int, axes: Sequence[int]) -> ResizeTarget:
    """New sizes and scales of ``axes``."""
    old = [context.shape_of(x)[axis] for axis in axes]
    scales = _given(context, 1 if context.opset == 10 else 2)
    sizes = _given(context, 3)
    if sizes is not None and scales is None:
        return _target_of_sizes(context, old, sizes)
    if scales is None:
        raise OpTypeError("scales or sizes", "none")
    return target_of_scales(context, old, scales)


def _target_of_sizes(context: OpContext, old: Sequence[Dim], sizes: int) -> ResizeTarget:
    count = context.type_of(sizes).element_count
    if count != len(old):
        raise OpTypeError(f"{len(old)} sizes", count)
    policy = context.string_attribute(
        "keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller")
    )
    if policy != "stretch":
        known = context.dims(sizes)
        found = None if known is None else _keep_aspect(policy, old, known)
        return found or _keep_aspect_later(context, policy, old, sizes)
    wanted = list(context.read_dims(sizes))
    if not context.int_attribute("antialias", 0):
        return ResizeTarget(wanted, [0.0] * len(old))
    exact = [
        a / b
        for a, b in zip(wanted, old, strict=True)
        if isinstance(a, int) and isinstance(b, int) and b
    ]
    if len(exact) == len(old):
        return ResizeTarget(wanted, exact)
    ratios = context.add(
        "div",
        cast(context, context.integers(wanted), "f64"),
        cast(context, context.integers(old), "f64"),
    )
    return ResizeTarget(wanted, [0.0] * len(old), ratios)


def target_of_scales(context: OpContext, old: Sequence[Dim], scales: int) -> ResizeTarget:
    """New sizes floor(size * scale)."""
    if context.type_of(scales).element_count != len(old):
        raise OpTypeError(f"{len(old)} scales", context.type_of(scales))
    factors = known_floats(context, scales)
    if factors is not None:
        if not all(factor > 0 for factor in factors):
            raise OpTypeError("scales > 0", factors)
        return ResizeTarget(
            [scaled_size(size, factor) for size, factor in zip(old, factors, strict=True)],
            list(factors),
        )
    later = cast(context, scales, "f64")
    sizes = context.add(
        "floor", context.add("mul", later, cast(context, context.integers(old), "f64"))
    )
    return ResizeTarget(
        list(context.read_dims(cast(context, sizes, "i64"))), [0.0] * len(old), later
    )


def _roi(context: OpContext, count: int) -> int:
    operand = _given(context, 1) if context.opset > 10 else None
    if operand is None or context.type_of(operand).element_count != 2 * count:
        raise OpTypeError(f"roi of {2 * count} numbers for tf_crop_and_resize", "none")
    return cast(context, operand, "f64")


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    axes = _axes(context, context.rank_of(x))
    target = _target(context, x, axes)
    old_form = context.opset == 10
    coordinates = (
        "asymmetric"
        if old_form
        else context.string_attribute(
            "coordinate_transformation_mode", "half_pixel", (*COORDINATES, "tf_half_pixel_for_nn")
        )
    )
    if coordinates == "tf_half_pixel_for_nn":
        raise Unsupported("coordinate_transformation_mode tf_half_pixel_for_nn")
    roi = _roi(context, len(axes)) if coordinates == "tf_crop_and_resize" else None
    nearest = context.string_attribute(
        "nearest_mode", "floor" if old_form else "round_prefer_floor", NEAREST_MODES
    )
    return (
        resample(
            context, x, axes, target, roi=roi, coordinates=coordinates, nearest_mode=nearest,
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
    target: ResizeTarget,
    *,
    roi: int | None,
    coordinates: str,
    nearest_mode: str = "floor",
    exclude_outside: bool = False,
    antialias: bool = False,
    cubic_coefficient: float = -0.75,
    extrapolation_value: float = 0.0,
) -> int:
    """Core ``resize`` over the axes that change; integers are interpolated in f32. ``roi``: f64
    starts, then ends."""
    mode = context.string_attribute(
        "mode", "nearest", ("nearest", "linear", "bilinear", "trilinear", "cubic")
    )
    mode = "linear" if mode.endswith("linear") else mode
    shape = context.shape_of(x)
    order = sorted((axis, position) for position, axis in enumerate(axes))
    if roi is None:
        order = [
            (axis, position)
            for axis, position in order
            if target.sizes[position] != shape[axis] or target.scales[position] not in (0.0, 1.0)
        ]
    if not order:
        return x
    kept = [position for _, position in order]
    dtype = context.dtype_of(x)
    operands = [x if mode == "nearest" or dtype in FLOATS else cast(context, x, "f32")]
    if target.later is not None or roi is not None:
        operands += _vectors(context, target, roi, kept, [shape[axis] for axis in axes])
    result = context.add(
        "resize", *operands, axes=tuple(axis for axis, _ in order),
        sizes=tuple(target.sizes[position] for position in kept),
        scales=tuple(target.scales[position] for position in kept), mode=mode, coordinates=coordinates,
        nearest_mode=nearest_mode, roi=(0.0,) * (2 * len(kept)), exclude_outside=exclude_outside,
        antialias=antialias and mode != "nearest", cubic_coefficient=cubic_coefficient,
        extrapolation_value=extrapolation_value,
    )  # fmt: skip
    return cast(context, result, dtype)


def _vectors(
    context: OpContext,
    target: ResizeTarget,
    roi: int | None,
    kept: Sequence[int],
    old: Sequence[Dim],
) -> tuple[int, int]:
    """Scales and region of the kept axes as f64 vectors."""
    count = len(old)
    scales = target.later
    if scales is None:
        known = context.float_vector("f64", [scale or 1.0 for scale in target.scales])
        wide = (cast(context, context.integers(dims), "f64") for dims in (target.sizes, old))
        from_sizes = context.integers([0 if scale else 1 for scale in target.scales])
        chosen = cast(context, from_sizes, "bool")
        scales = context.add("select", chosen, context.add("div", *wide), known)
    region = (
        roi
        if roi is not None
        else context.add("broadcast_to", context.scalar("f64", 0.0), shape=(2 * count,))
    )
    ends = [position + count for position in kept]
    return (
        context.add("gather", scales, context.integers(kept), axis=0),
        context.add("gather", region, context.integers([*kept, *ends]), axis=0),
    )


OP = OnnxOp("Resize", _translate, 10)
