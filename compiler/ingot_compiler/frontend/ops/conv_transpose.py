"""ONNX ConvTranspose: the transpose of a convolution; ``output_shape`` and ``auto_pad`` resolved
into pads.

In: x[N, C, spatial..], w[C, O/group, kernel..], perhaps bias[O]. Out: core ``conv_transpose``. Not
done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.images.windows import (
    AUTO_PADS,
    given_pads,
    halved,
    span_of,
    spatial,
    spatial_count,
    strides_and_dilations,
)
from ingot_compiler.ir.dims import Dim, dim_add, dim_mul
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.sizes.ranges import maximum


def _translate(context: OpContext) -> Sequence[int]:
    x, w = context.operand(0), context.operand(1)
    count = spatial_count(context, x)
    strides, dilations = strides_and_dilations(context, count)
    added: tuple[Dim, ...] = spatial(context, "output_padding", count, 0)
    sizes, kernel = context.shape_of(x)[2:], context.shape_of(w)[2:]
    if len(kernel) != count:
        raise OpTypeError(f"w of rank {count + 2}", context.type_of(w))
    spans = [span_of(*entry) for entry in zip(kernel, dilations, strict=True)]
    full = [
        dim_add(dim_mul(dim_add(size, -1), stride), dim_add(span, more))
        for size, stride, span, more in zip(sizes, strides, spans, added, strict=True)
    ]
    before, after, lacking = _pads(context, sizes, full, strides)
    added = tuple(dim_add(more, missing) for more, missing in zip(added, lacking, strict=True))
    return (
        context.add(
            "conv_transpose", *context.given(), strides=strides, dilations=dilations,
            pads_before=before, pads_after=after, output_padding=added,
            groups=context.int_attribute("group", 1),
        ),
    )  # fmt: skip


_Pads = tuple[tuple[Dim, ...], tuple[Dim, ...], tuple[Dim, ...]]
"""(cut off before, cut off after, added after), per spatial axis, all >= 0."""


def _pads(
    context: OpContext, sizes: Sequence[Dim], full: Sequence[Dim], strides: Sequence[int]
) -> _Pads:
    """What to cut; ``full`` are the sizes without any cut (ONNX ConvTranspose-22,
    "output_shape")."""
    auto_pad = context.string_attribute("auto_pad", "NOTSET", AUTO_PADS)
    wanted = _wanted_sizes(context, sizes, strides, auto_pad)
    if wanted is None:
        return _given_pads(context, len(sizes), auto_pad)
    totals = [dim_add(size, dim_mul(to, -1)) for size, to in zip(full, wanted, strict=True)]
    cut = [maximum(total, 0) for total in totals]
    # A wanted size above the full one is filled up behind, as output_padding does.
    lacking = tuple(maximum(dim_mul(total, -1), 0) for total in totals)
    return (*halved(cut, more_after=auto_pad == "SAME_UPPER"), lacking)


def _wanted_sizes(
    context: OpContext, sizes: Sequence[Dim], strides: Sequence[int], auto_pad: str
) -> tuple[Dim, ...] | None:
    """Spatial sizes of the result that the node states; None where its pads decide."""
    stated = context.ints_attribute("output_shape")
    if stated is not None:
        if len(stated) not in (len(sizes), len(sizes) + 2):
            raise OpTypeError(f"an output_shape of {len(sizes)} sizes", stated)
        return stated[-len(sizes) :]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        return tuple(dim_mul(size, stride) for size, stride in zip(sizes, strides, strict=True))
    return None


def _given_pads(context: OpContext, count: int, auto_pad: str) -> _Pads:
    """The attribute ``pads``; one below 0 adds behind, before an axis it is not done."""
    none = (0,) * count
    before, after = given_pads(context, count) if auto_pad == "NOTSET" else (none, none)
    if any(pad < 0 for pad in before):
        raise Unsupported("negative pads before an axis")
    return before, tuple(max(pad, 0) for pad in after), tuple(max(-pad, 0) for pad in after)


OPS = (OnnxOp("ConvTranspose", _translate),)
