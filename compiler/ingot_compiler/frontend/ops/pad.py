"""ONNX Pad: elements added around (or, for negative pads, removed); pads are an attribute before
opset 11, then an operand.

In: a tensor, pads, perhaps a value and axes, known or computed at run time. Out: core ``slice``,
``pad``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    as_vector,
    binary_scalar,
    cast,
    concat,
    reshape,
    slice_axis,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import with_count
from ingot_compiler.frontend.build.run_time_shapes import per_axis
from ingot_compiler.ir.dims import Dim, dim_add, dim_mul
from ingot_compiler.ir.sizes.ranges import maximum
from ingot_compiler.ir.types import DType


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    rank = context.rank_of(x)
    mode = context.string_attribute("mode", "constant", ("constant", "edge", "reflect", "wrap"))
    pads, value = _pads_and_value(context, rank, context.dtype_of(x))
    pads = with_count(context, pads, 2 * rank, "pads")
    added, removed = _signs(context, pads)
    if context.dims(pads) is None:
        x = _cropped_at_run_time(context, x, removed, added)
    elif any(dim != 0 for dim in removed):
        x = _cropped(context, x, removed)
    if all(dim == 0 for dim in added):
        return (x,)
    return (context.add("pad", x, value, before=added[:rank], after=added[rank:], mode=mode),)


def _pads_and_value(context: OpContext, rank: int, dtype: DType) -> tuple[int, int]:
    """Pads before and after every axis, and what they hold; attributes before opset 11."""
    if context.opset < 11:
        pads = context.integers(context.ints_or("pads", [0] * 2 * rank))
        return pads, context.scalar(dtype, context.float_attribute("value", 0.0))
    given = context.optional(2)
    pads = _full_pads(context, context.operand(1), context.optional(3), rank)
    return pads, context.scalar(dtype, 0) if given is None else reshape(context, given, ())


def _full_pads(context: OpContext, pads: int, axes: int | None, rank: int) -> int:
    """Pads of all axes, from those of ``axes``."""
    if axes is None:
        return pads
    count = context.count_of(axes)
    parts = [slice_axis(context, as_vector(context, pads), 0, start, count) for start in (0, count)]
    return concat(context, [per_axis(context, axes, part, [0] * rank) for part in parts], 0)


def _signs(context: OpContext, pads: int) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
    """What is added and what is removed, both >= 0."""
    dims = context.dims(pads)
    if dims is not None:
        return tuple(maximum(dim, 0) for dim in dims), tuple(
            maximum(dim_mul(dim, -1), 0) for dim in dims
        )
    vector = cast(context, as_vector(context, pads), "i64")
    added = context.read_dims(binary_scalar(context, "max", vector, 0))
    return added, context.read_dims(binary_scalar(context, "max", context.add("neg", vector), 0))


def _cropped(context: OpContext, x: int, removed: Sequence[Dim]) -> int:
    rank = context.rank_of(x)
    for axis, size in enumerate(context.shape_of(x)):
        gone = dim_add(removed[axis], removed[axis + rank])
        x = slice_axis(context, x, axis, removed[axis], dim_add(size, dim_mul(gone, -1)))
    return x


def _cropped_at_run_time(
    context: OpContext, x: int, removed: Sequence[Dim], added: Sequence[Dim]
) -> int:
    """The sizes of the result have names of their own, so that their products are short; what is
    left is these without what is added."""
    shape, kept = context.shape_of(x), list[Dim]()
    for axis, size in enumerate(shape):
        gone = dim_add(removed[axis], removed[axis + len(shape)])
        kept.append(dim_add(size, dim_mul(gone, -1)))
    more = [dim_add(*pair) for pair in zip(added, added[len(shape) :], strict=False)]
    wanted = [dim_add(*pair) for pair in zip(kept, more, strict=True)]
    sizes = context.named_dims(context.integers(wanted))
    left = tuple(dim_add(size, dim_mul(each, -1)) for size, each in zip(sizes, more, strict=True))
    starts = tuple(removed[: len(shape)])
    return context.add("slice", x, starts=starts, sizes=left, steps=(1,) * len(shape))


OPS = (OnnxOp("Pad", _translate, since=2),)
