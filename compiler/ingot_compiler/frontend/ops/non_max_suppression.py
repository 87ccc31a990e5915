"""ONNX NonMaxSuppression: boxes that no better box of their class overlaps.

In: boxes[B, n, 4], scores[B, C, n], limits. Out: i64[count, 3]: batch, class, box; the count is
known at run time only. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.compose import (
    binary_scalar,
    broadcast_to,
    cast,
    concat,
    element,
    full,
    iota,
    reshape,
    slice_axis,
    transpose,
    unsqueeze,
)
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.onnx_op import OnnxOp
from ingot_compiler.frontend.operand_sizes import sizes_of
from ingot_compiler.frontend.selection import order, positions_of_true
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.types import DType


def _corners(context: OpContext, boxes: int) -> int:
    """[B, 4, n]: least and greatest coordinates."""
    planes = transpose(context, boxes, (0, 2, 1))
    a, b, c, d = (slice_axis(context, planes, 1, index, 1) for index in range(4))
    if context.int_attribute("center_point_box", 0):
        half = context.scalar(context.dtype_of(boxes), 0.5)
        width, height = context.add("mul", c, half), context.add("mul", d, half)
        pairs = [(context.add("sub", b, height), context.add("add", b, height))]
        pairs.append((context.add("sub", a, width), context.add("add", a, width)))
    else:
        pairs = [
            (context.add("min", low, high), context.add("max", low, high))
            for low, high in ((a, c), (b, d))
        ]
    (top, bottom), (left, right) = pairs
    return concat(context, [top, left, bottom, right], 1)


def _scalar(context: OpContext, position: int, dtype: DType) -> int:
    """An optional operand of one element as rank 0; 0 when it is absent or empty."""
    value = context.optional(position)
    if value is None or context.type_of(value).element_count == 0:
        return context.scalar(dtype, 0)
    return cast(context, element(context, reshape(context, value, (1,)), 0), dtype)


def _translate(context: OpContext) -> Sequence[int]:
    boxes, scores = (cast(context, context.operand(position), "f32") for position in (0, 1))
    shape = batches, classes, count = sizes_of(context, scores, 3)
    sizes_of(context, boxes, 3)
    ranked = order(context, scores, largest=True)
    candidates = _candidates(context, scores, ranked)
    kept = _kept(context, boxes, ranked, candidates)
    total = batches * classes * count
    found = positions_of_true(context, reshape(context, kept, (total,)))
    return (_columns(context, found, reshape(context, ranked, (total,)), shape),)


def _columns(context: OpContext, found: int, boxes: int, sizes: Sequence[Dim]) -> int:
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


def _candidates(context: OpContext, scores: int, ranked: int) -> int:
    """bool[B, C, n]: which boxes have a score above the threshold, best first."""
    best = context.add("gather_elements", scores, ranked, axis=2)
    threshold = context.optional(4)
    if threshold is None or context.type_of(threshold).element_count == 0:
        return full(context, "bool", 1, context.shape_of(scores))
    return context.add("less", _scalar(context, 4, "f32"), best)


def _kept(context: OpContext, boxes: int, ranked: int, candidates: int) -> int:
    """bool[B * C, n]: which candidates overlap no better box that is kept."""
    batches, classes, count = context.shape_of(ranked)
    shape = (batches, classes, 4, count)
    planes = reshape(context, _corners(context, boxes), (batches, 1, 4, count))
    wide = broadcast_to(context, planes, shape)
    places = broadcast_to(context, reshape(context, ranked, (batches, classes, 1, count)), shape)
    ordered = context.add("gather_elements", wide, places, axis=3)
    rows = batches * classes
    ordered, candidates = (
        reshape(context, ordered, (rows, 4, count)),
        reshape(context, candidates, (rows, count)),
    )
    limits = _scalar(context, 3, "f32"), _scalar(context, 2, "i64")
    return context.add("suppress_overlaps", ordered, candidates, *limits)


OP = OnnxOp("NonMaxSuppression", _translate)
