"""ONNX Conv: convolution over any number of spatial axes.

In: x[N, C, spatial..], w[O, C/group, kernel..], perhaps bias[O]. Out: core ``conv``. Not done here:
types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import reshape, slice_axis
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.images.windows import (
    resolve_pads,
    span_of,
    spatial_count,
    strides_and_dilations,
)
from ingot_compiler.ir.dims import Dim, dim_add, dim_mul
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.sizes.ranges import maximum, minimum


def _translate(context: OpContext) -> Sequence[int]:
    x, w = context.operand(0), context.operand(1)
    count = spatial_count(context, x)
    strides, dilations = strides_and_dilations(context, count)
    if context.rank_of(w) != count + 2:
        raise OpTypeError(f"w of rank {count + 2}", context.type_of(w))
    w, kernel = _with_kernel(context, w)
    if min((*strides, *dilations)) < 1:
        raise OpTypeError("strides and dilations >= 1", (strides, dilations))
    spans = [span_of(*entry) for entry in zip(kernel, dilations, strict=True)]
    before, after = resolve_pads(context, context.shape_of(x)[2:], spans, strides)
    operands = (_crop(context, x, before, after), w, *context.given()[2:])
    before, after = (tuple(maximum(pad, 0) for pad in pads) for pads in (before, after))
    return (
        context.add(
            "conv", *operands, strides=strides, dilations=dilations, pads_before=before,
            pads_after=after, groups=context.int_attribute("group", 1),
        ),
    )  # fmt: skip


def _with_kernel(context: OpContext, w: int) -> tuple[int, tuple[Dim, ...]]:
    """The weights under the sizes that ``kernel_shape`` promises, where their own are known at run
    time only."""
    own = context.shape_of(w)[2:]
    given = context.ints_attribute("kernel_shape")
    if given is None:
        return w, own
    pairs = zip(given, own, strict=False)
    if len(given) != len(own) or any(
        isinstance(size, int) and size != promised for promised, size in pairs
    ):
        raise OpTypeError(message("kernel_shape ", list(own), " as w has"), list(given))
    return reshape(context, w, (*context.shape_of(w)[:2], *given)), given


def _crop(context: OpContext, x: int, before: Sequence[Dim], after: Sequence[Dim]) -> int:
    """Negative pads take elements away."""
    for axis, (low, high) in enumerate(zip(before, after, strict=True), 2):
        first, last = minimum(low, 0), minimum(high, 0)
        size = dim_add(context.shape_of(x)[axis], dim_add(first, last))
        x = slice_axis(context, x, axis, dim_mul(first, -1), size)
    return x


CONV = OnnxOp("Conv", _translate)
OPS = (CONV,)
