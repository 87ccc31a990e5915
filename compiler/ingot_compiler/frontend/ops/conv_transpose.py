"""ONNX ConvTranspose: the transpose of a convolution; ``output_shape`` and ``auto_pad`` resolved
into pads.

In: x[N, C, spatial..], w[C, O/group, kernel..], perhaps bias[O]. Out: core ``conv_transpose``. Not
done here: types.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.windows import span_of, spatial, spatial_count
from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_mul
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.ranges import at_least

_AUTO_PADS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


def _translate(context: OpContext) -> Sequence[int]:
    x, w = context.operand(0), context.operand(1)
    count = spatial_count(context, x)
    strides, dilations = (
        spatial(context, "strides", count, 1),
        spatial(context, "dilations", count, 1),
    )
    extra: tuple[Dim, ...] = spatial(context, "output_padding", count, 0)
    kernel = context.shape_of(w)[2:]
    if len(kernel) != count:
        raise OpTypeError(f"w of rank {count + 2}", context.type_of(w))
    sizes = context.shape_of(x)[2:]
    full = [
        dim_add(dim_mul(dim_add(size, -1), stride), dim_add(span_of(k, dilation), more))
        for size, stride, k, dilation, more in zip(
            sizes, strides, kernel, dilations, extra, strict=True
        )
    ]
    before, after, lacking = _pads(context, sizes, full, strides)
    extra = tuple(dim_add(more, missing) for more, missing in zip(extra, lacking, strict=True))
    return (
        context.add(
            "conv_transpose", *context.given(), strides=strides, dilations=dilations, pads_before=before,
            pads_after=after, output_padding=extra,
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
    auto_pad = context.string_attribute("auto_pad", "NOTSET", _AUTO_PADS)
    wanted: tuple[Dim, ...] | None = context.ints_attribute("output_shape")
    if wanted is not None and len(wanted) not in (len(sizes), len(sizes) + 2):
        raise OpTypeError(f"an output_shape of {len(sizes)} sizes", wanted)
    if wanted is None and auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        wanted = tuple(dim_mul(size, stride) for size, stride in zip(sizes, strides, strict=True))
    if wanted is None:
        return _given_pads(context, len(sizes), auto_pad)
    totals = [
        dim_add(size, dim_mul(target, -1))
        for size, target in zip(full, wanted[-len(sizes) :], strict=True)
    ]
    cut = [at_least(total, 0) for total in totals]
    halves = tuple(dim_floordiv(total, 2) for total in cut)
    others = tuple(
        dim_add(total, dim_mul(half, -1)) for total, half in zip(cut, halves, strict=True)
    )
    # A wanted size above the full one is filled up behind, as output_padding does.
    lacking = tuple(at_least(dim_mul(total, -1), 0) for total in totals)
    return (halves, others, lacking) if auto_pad == "SAME_UPPER" else (others, halves, lacking)


def _given_pads(context: OpContext, count: int, auto_pad: str) -> _Pads:
    """The attribute ``pads``; one below 0 adds behind, before an axis it is not done."""
    pads = (
        context.ints_attribute("pads", [0] * 2 * count)
        if auto_pad == "NOTSET"
        else (0,) * 2 * count
    )
    if pads is None or len(pads) != 2 * count:
        raise OpTypeError(f"{2 * count} pads", pads)
    before, after = pads[:count], pads[count:]
    if any(pad < 0 for pad in before):
        raise Unsupported("negative pads before an axis")
    return before, tuple(max(pad, 0) for pad in after), tuple(max(-pad, 0) for pad in after)


OP = OnnxOp("ConvTranspose", _translate)
