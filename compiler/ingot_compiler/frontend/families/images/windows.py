"""Sliding windows of convolutions and pools: attributes, ``auto_pad`` and ``ceil_mode`` resolved
into pads.

In: a context and sizes of spatial axes. Out: attributes of core window ops; pools. Not done here:
other ops (``ops/conv`` and others). ONNX Conv-22, MaxPool-22, AveragePool-22.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_compiler.frontend.build.compose import reduce
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.ir.attributes import Attribute, Attributes, attribute_dims, attribute_ints
from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_mul
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.sizes.ranges import maximum, minimum

_REDUCTIONS: Mapping[OpName, str] = {"average_pool": "mean", "max_pool": "max"}
AUTO_PADS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


def spatial(context: OpContext, name: str, count: int, default: int) -> tuple[int, ...]:
    """An attribute with one integer per spatial axis."""
    values = context.ints_or(name, [default] * count)
    if len(values) != count:
        raise OpTypeError(f"{count} {name}", values)
    return values


def spatial_count(context: OpContext, x: int) -> int:
    """The number of spatial axes of x[N, C, spatial..]."""
    if context.rank_of(x) < 3:
        raise OpTypeError("x[N, C, spatial..] of rank >= 3", context.type_of(x))
    return context.rank_of(x) - 2


def strides_and_dilations(
    context: OpContext, count: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The attributes ``strides`` and ``dilations``, one integer per spatial axis."""
    return spatial(context, "strides", count, 1), spatial(context, "dilations", count, 1)


def given_pads(context: OpContext, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The attribute ``pads``: those before and those after each of ``count`` axes."""
    pads = context.ints_or("pads", [0] * 2 * count)
    if len(pads) != 2 * count:
        raise OpTypeError(f"{2 * count} pads", pads)
    return pads[:count], pads[count:]


def resolve_pads(
    context: OpContext, sizes: Sequence[Dim], spans: Sequence[Dim], strides: Sequence[int]
) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
    """Pads before and after each spatial axis; ``spans`` are the elements that a dilated kernel
    covers."""
    count = len(sizes)
    auto_pad = context.string_attribute("auto_pad", "NOTSET", AUTO_PADS)
    if auto_pad == "NOTSET":
        return given_pads(context, count)
    if auto_pad == "VALID":
        return (0,) * count, (0,) * count
    totals = [_same_pads(*entry) for entry in zip(sizes, spans, strides, strict=True)]
    return halved(totals, more_after=auto_pad == "SAME_UPPER")


def halved(totals: Sequence[Dim], *, more_after: bool) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
    """What goes before and what after each axis; of an odd number one more after, or before."""
    # What is compared with 0 stays one term, where a quotient alone is multiplied out.
    less = tuple(maximum(dim_floordiv(total, 2), 0) for total in totals)
    more = tuple(
        dim_add(total, dim_mul(half, -1)) for total, half in zip(totals, less, strict=True)
    )
    return (less, more) if more_after else (more, less)


def _same_pads(size: Dim, span: Dim, stride: int) -> Dim:
    """Pads that give ceil(size / stride) windows."""
    count = dim_floordiv(dim_add(size, stride - 1), stride)
    covered = dim_add(dim_mul(dim_add(count, -1), stride), span)
    total = dim_add(covered, dim_mul(size, -1))
    # Windows that touch reach to the end: a comparison with 0 would only hide from the sizes of
    # later windows that this many of them are ceil(size / stride).
    touching = isinstance(span, int) and span >= stride
    return total if touching else maximum(total, 0)


def span_of(size: Dim, dilation: int) -> Dim:
    """KnownSequence that a kernel of ``size`` covers."""
    return dim_add(dim_mul(dim_add(size, -1), dilation), 1)


def pool_attributes(context: OpContext, x: int) -> tuple[dict[str, Attribute], tuple[Dim, ...]]:
    """Attributes that all pools share, and the pads after each axis that count for
    ``count_include_pad``."""
    count = spatial_count(context, x)
    kernel = spatial(context, "kernel_shape", count, 1)
    strides, dilations = strides_and_dilations(context, count)
    if any(entry < 1 for entry in (*kernel, *strides, *dilations)):
        raise OpTypeError("kernel_shape, strides and dilations >= 1", (kernel, strides, dilations))
    sizes = context.shape_of(x)[2:]
    spans = [span_of(*entry) for entry in zip(kernel, dilations, strict=True)]
    before, counted = resolve_pads(context, sizes, spans, strides)
    after = counted
    if context.bool_attribute("ceil_mode"):
        entries = zip(sizes, spans, strides, before, counted, strict=True)
        after = tuple(_ceil_pads(*entry) for entry in entries)
        counted = tuple(minimum(*pair) for pair in zip(counted, after, strict=True))
    window: dict[str, Attribute] = {"kernel": kernel, "strides": strides, "dilations": dilations}
    return window | {"pads_before": before, "pads_after": after}, counted


def pool(context: OpContext, op: OpName, x: int, attributes: Attributes, **more: Attribute) -> int:
    """A pool of maxima or averages; of one window that is the whole image, the reduction."""
    unpadded = not any(
        pad != 0
        for name in ("pads_before", "pads_after")
        for pad in attribute_dims(attributes, name)
    )
    is_near = set(attribute_ints(attributes, "dilations")) == {1}
    sizes = context.shape_of(x)[2:]
    if unpadded and is_near and attribute_ints(attributes, "kernel") == sizes:
        axes = tuple(range(2, 2 + len(sizes)))
        return reduce(context, x, _REDUCTIONS[op], axes, keepdims=True)
    return context.add(op, x, **attributes, **more)


def _ceil_pads(size: Dim, span: Dim, stride: int, before: Dim, after: Dim) -> Dim:
    """Pads after an axis that give ceil instead of floor; a window must start inside the axis or
    its first pads."""
    start_end = dim_add(size, before)
    last_start = dim_add(dim_add(start_end, after), dim_mul(span, -1))
    count = dim_add(dim_floordiv(dim_add(last_start, stride - 1), stride), 1)
    starts = dim_add(dim_floordiv(dim_add(start_end, -1), stride), 1)
    covered = dim_add(dim_mul(dim_add(minimum(count, starts), -1), stride), span)
    return maximum(dim_add(covered, dim_mul(start_end, -1)), 0)
