"""ONNX NonMaxSuppression: boxes that no better box of their class overlaps.

In: boxes[B, n, 4], scores[B, C, n], limits. Out: i64[count, 3]: batch, class, box; the count is
known at run time only. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    broadcast_to,
    cast,
    element,
    iota,
    reshape,
    slice_axis,
    unsqueeze,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import sizes_of, with_size
from ingot_compiler.frontend.families.tensors.selection import positions_of_true
from ingot_compiler.ir.dims import Dim, dim_min, dim_product
from ingot_compiler.ir.types import DType


def _scalar(context: OpContext, position: int, dtype: DType) -> int:
    """An optional operand of one element as rank 0; 0 when it is absent or empty."""
    value = context.optional(position)
    if value is None or context.type_of(value).element_count == 0:
        return context.scalar(dtype, 0)
    return cast(context, element(context, reshape(context, value, (1,)), 0), dtype)


def _translate(context: OpContext) -> Sequence[int]:
    boxes, scores = (cast(context, context.operand(position), "f32") for position in (0, 1))
    sizes = sizes_of(context, scores, 3)
    sizes_of(context, boxes, 3)
    boxes = with_size(context, boxes, 2, 4, "boxes of 4 numbers")
    least, overlap = _scalar(context, 4, "f32"), _scalar(context, 3, "f32")
    kept = context.add(
        "suppress_overlaps", boxes, scores, least, overlap, _scalar(context, 2, "i64"),
        count=_count_max(context, sizes[2]), is_limited=_is_given(context, 4),
        is_centered=context.bool_attribute("center_point_box", default=False),
    )  # fmt: skip
    return (_columns(context, kept),)


def _count_max(context: OpContext, count: Dim) -> Dim:
    """How many boxes of a class are kept at most, as far as that is known."""
    if not _is_given(context, 2):
        return 0
    value = context.optional(2)
    known = None if value is None else context.known_ints(value)
    return count if known is None else dim_min(count, max(known[0], 0))


def _columns(context: OpContext, kept: int) -> int:
    """i64[total, 3]: batch, class and box of all that are kept, row by row; ``kept``: of each, how
    many there are, and which."""
    batches, classes, size = context.shape_of(kept)
    shape = (batches, classes, size - 1)
    counts = broadcast_to(context, slice_axis(context, kept, 2, 0, 1), shape)
    place = broadcast_to(context, iota(context, shape[2]), shape)
    mask = context.add("less", place, counts)
    total = (dim_product(shape),)
    found = positions_of_true(context, reshape(context, mask, total))
    boxes = reshape(context, slice_axis(context, kept, 2, 1, shape[2]), total)
    return _split(context, found, boxes, shape)


def _split(context: OpContext, found: int, boxes: int, sizes: Sequence[Dim]) -> int:
    """i64[count, 3]: batch, class and box of row-major positions; one kernel for all columns."""
    batches, classes, count = sizes
    shape = (context.shape_of(found)[0], 3)
    wide = broadcast_to(context, unsqueeze(context, found, (1,)), shape)
    box = context.add("gather", boxes, wide, axis=0)
    one = context.scalar("i64", 1)
    steps, lengths = (
        context.add("max", context.integers(row), one)
        for row in ((classes * count, count, 1), (batches, classes, 1))
    )
    part = context.add("mod", context.add("div", wide, steps), lengths)
    is_box = binary_scalar(context, "equal", iota(context, 3), 2)
    return context.add("select", broadcast_to(context, is_box, shape), box, part)


def _is_given(context: OpContext, position: int) -> bool:
    """Whether an optional operand of one element is there."""
    value = context.optional(position)
    return value is not None and context.type_of(value).element_count != 0


OPS = (OnnxOp("NonMaxSuppression", _translate),)
