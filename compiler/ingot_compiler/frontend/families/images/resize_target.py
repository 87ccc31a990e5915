"""New sizes and scales of Resize and Upsample, known at compile time or computed at run time.

In: the old sizes of the axes, operands with scales or sizes. Out: ``ResizeTarget``. Not done here:
which axes, and how elements are sampled (``ops/resize``).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, inf

from ingot_compiler.frontend.build.compose import binary_scalar, broadcast_to, cast, reduce
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.operand_sizes import with_count
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mul
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.sizes.simplest_fraction import F32_BITS, simplest_fraction
from ingot_runtime.lazy_dataclass import dataclass

_ROUNDING = Fraction(1, 1 << F32_BITS)
_POLICIES = ("stretch", "not_larger", "not_smaller")


@dataclass(frozen=True, slots=True)
class ResizeTarget:
    """New sizes; scales (0.0 = new size / old size), or ``later``: a vector of scales that only a
    run knows."""

    sizes: list[Dim]
    scales: list[float]
    later: int | None = None


def target_of_scales(context: OpContext, x: int, axes: Sequence[int], scales: int) -> ResizeTarget:
    """New sizes floor(size * scale) of ``axes`` of x."""
    old = [context.shape_of(x)[axis] for axis in axes]
    scales = with_count(context, scales, len(old), "scales")
    factors = _known_floats(context, scales)
    if factors is not None:
        return scaled_target(context, x, axes, factors)
    later = cast(context, scales, "f64")
    scaled = context.add("mul", later, _lengths(context, old))
    # What rounding a scale took away; at most a half, so that a whole number stays what it is.
    rounding = binary_scalar(context, "mul", scaled, 2.0**-F32_BITS)
    raised = context.add("add", scaled, binary_scalar(context, "min", rounding, 0.5))
    sizes = cast(context, context.add("floor", raised), "i64")
    return ResizeTarget(list(context.read_dims(sizes)), [0.0] * len(old), later)


def scaled_target(
    context: OpContext, x: int, axes: Sequence[int], scales: Sequence[float]
) -> ResizeTarget:
    """New sizes floor(size * scale) of known scales, by the fractions that were rounded to them;
    the size that the file declares, where another number that rounds to the scale gives it."""
    if not all(0 < scale < inf for scale in scales):
        raise OpTypeError("finite scales > 0", scales)
    factors = [simplest_fraction(scale, F32_BITS) for scale in scales]
    sizes = list[Dim]()
    for axis, scale, factor in zip(axes, scales, factors, strict=True):
        size = context.shape_of(x)[axis]
        declared_size = context.declared[axis] if axis < len(context.declared) else None
        if (
            isinstance(size, int)
            and declared_size is not None
            and _may_become(size, declared_size, scale)
        ):
            sizes.append(declared_size)
        else:
            sizes.append(dim_floordiv(dim_mul(size, factor.numerator), factor.denominator))
    return ResizeTarget(sizes, [float(factor) for factor in factors])


def _may_become(size: int, declared_size: int, scale: float) -> bool:
    """Whether a size is floor(size * number) for a number that rounds to a scale."""
    least, most = (size * Fraction(scale) * (1 + sign * _ROUNDING) for sign in (-1, 1))
    return floor(least) <= declared_size <= floor(most)


def target_of_sizes(context: OpContext, old: Sequence[Dim], sizes: int) -> ResizeTarget:
    """The sizes of an operand, or what ``keep_aspect_ratio_policy`` makes of them."""
    sizes = with_count(context, sizes, len(old), "sizes")
    policy = context.string_attribute("keep_aspect_ratio_policy", "stretch", _POLICIES)
    if policy != "stretch":
        known = context.dims(sizes)
        found = None if known is None else _keep_aspect(policy, old, known)
        return found or _keep_aspect_later(context, policy, old, sizes)
    wanted = list(context.read_dims(sizes))
    if not context.bool_attribute("antialias"):
        return ResizeTarget(wanted, [0.0] * len(old))
    pairs = _known_pairs(wanted, old)
    if pairs is not None:
        return ResizeTarget(wanted, [new / size for new, size in pairs])
    unknown = [0.0] * len(old)
    return ResizeTarget(wanted, unknown, context.float_vector("f64", unknown))


def _known_floats(context: OpContext, value: int) -> tuple[float, ...] | None:
    """All elements of a float tensor that are known at compile time; None when one is not."""
    known_values = context.known_values(value)
    items = () if known_values is None else known_values.ravel().tolist()
    if context.type_of(value).element_count == 0:
        return ()
    floats = tuple(float(item) for item in items if isinstance(item, (int, float)))
    return floats if known_values is not None and len(floats) == len(items) else None


def _known_pairs(new: Sequence[Dim], old: Sequence[Dim]) -> list[tuple[int, int]] | None:
    """(new, old) sizes, when all are numbers and no old one is 0."""
    pairs = [
        (a, b)
        for a, b in zip(new, old, strict=True)
        if isinstance(a, int) and isinstance(b, int) and b
    ]
    return pairs if len(pairs) == len(old) else None


def _lengths(context: OpContext, sizes: Sequence[Dim]) -> int:
    """Sizes as an f64 vector."""
    return cast(context, context.integers(sizes), "f64")


def _keep_aspect(policy: str, old: Sequence[Dim], sizes: Sequence[Dim]) -> ResizeTarget | None:
    """One scale for all axes: the least or the greatest; sizes are rounded, halves up. None: not
    known yet."""
    pairs = _known_pairs(sizes, old)
    if pairs is None:
        return None
    ratios = [Fraction(a, b) for a, b in pairs]
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    rounded: list[Dim] = [int((ratio * b * 2 + 1) // 2) for _, b in pairs]
    return ResizeTarget(rounded, [float(ratio)] * len(pairs))


def _keep_aspect_later(
    context: OpContext, policy: str, old: Sequence[Dim], sizes: int
) -> ResizeTarget:
    """``_keep_aspect`` of sizes that only a run knows."""
    lengths = _lengths(context, old)
    ratios = context.add("div", cast(context, sizes, "f64"), lengths)
    function = "min" if policy == "not_larger" else "max"
    ratio = reduce(context, ratios, function, (0,), keepdims=True)
    raised = binary_scalar(context, "add", context.add("mul", lengths, ratio), 0.5)
    wanted = context.read_dims(cast(context, context.add("floor", raised), "i64"))
    return ResizeTarget(list(wanted), [0.0] * len(old), broadcast_to(context, ratio, (len(old),)))
