"""ONNX MaxUnpool: values put back where MaxPool found them, 0 elsewhere.

In: x, i64 indices into the whole result, perhaps its shape. Out: core ``scatter_elements``. Not
done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import as_vector, full, reshape, size_scalar
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.index_checks import checked_indices
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.images.windows import given_pads, spatial, spatial_count
from ingot_compiler.frontend.families.tensors.selection import split_index
from ingot_compiler.ir.dims import Dim, dim_product
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x, indices = context.operand(0), as_vector(context, context.operand(1))
    own, given = _unpooled_shape(context, x), context.optional(2)
    indices = checked_indices(context, indices, dim_product(own))
    wanted = own if given is None else context.read_dims(given)
    if len(wanted) != len(own):
        raise OpTypeError(f"an output_shape of {len(own)} sizes", wanted)
    if wanted != own:
        indices = _in_other_shape(context, indices, own, wanted)
    base = full(context, context.dtype_of(x), 0, (dim_product(wanted),))
    placed = context.add(
        "scatter_elements", base, indices, as_vector(context, x), axis=0, reduction="none"
    )
    return (reshape(context, placed, wanted),)


def _unpooled_shape(context: OpContext, x: int) -> tuple[Dim, ...]:
    """The shape of the image that was pooled."""
    count = spatial_count(context, x)
    kernel, strides = (spatial(context, name, count, 1) for name in ("kernel_shape", "strides"))
    before, after = given_pads(context, count)
    shape = context.shape_of(x)
    entries = zip(shape[2:], strides, kernel, before, after, strict=True)
    pooled = [(size - 1) * stride + span - low - high for size, stride, span, low, high in entries]
    return (*shape[:2], *pooled)


def _in_other_shape(
    context: OpContext, indices: int, own: tuple[Dim, ...], wanted: Sequence[Dim]
) -> int:
    """The indices belong to the image that was pooled, which may be smaller than the one wanted."""
    flat = context.scalar("i64", 0)
    for part, size in zip(split_index(context, indices, own, is_inside=False), wanted, strict=True):
        row = context.add("mul", flat, size_scalar(context, size))
        flat = context.add("add", row, part)
    return flat


OPS = (OnnxOp("MaxUnpool", _translate, 9),)
