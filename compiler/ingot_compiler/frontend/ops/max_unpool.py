"""ONNX MaxUnpool: values put back where MaxPool found them, 0 elsewhere.

In: x, i64 indices into the whole result, perhaps its shape. Out: core ``scatter_elements``. Not
done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import as_vector, full, product, reshape
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.index_checks import checked_indices
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.sampling import dim_value
from ingot_compiler.frontend.selection import split_index
from ingot_compiler.frontend.windows import spatial, spatial_count
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.op_type_error import OpTypeError


def _translate(context: OpContext) -> Sequence[int]:
    x, indices, given = (
        context.operand(0),
        as_vector(context, context.operand(1)),
        context.optional(2),
    )
    count = spatial_count(context, x)
    kernel, strides = (
        spatial(context, "kernel_shape", count, 1),
        spatial(context, "strides", count, 1),
    )
    pads = context.ints_attribute("pads", [0] * 2 * count) or (0,) * (2 * count)
    if len(pads) != 2 * count:
        raise OpTypeError(f"{2 * count} pads", pads)
    shape = context.shape_of(x)
    pooled: list[Dim] = [
        (size - 1) * strides[axis] + kernel[axis] - pads[axis] - pads[count + axis]
        for axis, size in enumerate(shape[2:])
    ]
    own = (*shape[:2], *pooled)
    indices = checked_indices(context, indices, product(own))
    wanted = own if given is None else context.read_dims(given)
    if len(wanted) != len(own):
        raise OpTypeError(f"an output_shape of {len(own)} sizes", wanted)
    if wanted != own:
        # The indices belong to the image that was pooled, which may be smaller than the one wanted.
        flat = context.scalar("i64", 0)
        for part, size in zip(split_index(context, indices, own), wanted, strict=True):
            flat = context.add(
                "add", context.add("mul", flat, dim_value(context, size, "i64")), part
            )
        indices = flat
    base = full(context, context.dtype_of(x), 0, (product(wanted),))
    placed = context.add(
        "scatter_elements", base, indices, as_vector(context, x), axis=0, reduction="none"
    )
    return (reshape(context, placed, wanted),)


OP = OnnxOp("MaxUnpool", _translate, 9)
