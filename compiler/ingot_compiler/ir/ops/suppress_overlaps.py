"""``suppress_overlaps{count, is_limited, is_centered}(boxes, scores, least, overlap, count_max)``:
the boxes of each row of scores that no better one of them overlaps (ONNX NonMaxSuppression-11).

In: f32 boxes[B, n, 4], f32 scores[B, C, n], an f32 and an f32 and an i64 of rank 0. A box is y, x
of a corner and of the one opposite to it, or x, y of its centre, its width and height
(``is_centered``). Out: i64[B, C, 1 + count]: how many boxes are kept, and which, best first, with
zeros behind them: of the boxes whose score is above ``least``, or of all unless ``is_limited``, the
first ``count_max``, and no more than ``count``, whose intersection over union with every better one
that is kept is at most ``overlap``. Of equal scores the earlier box is better, NaN is the best
score. Not done here: one list for all rows (the frontend).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_bool,
    attribute_dim,
    attribute_int,
    require_attributes,
)
from ingot_compiler.ir.dims import dim_add
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.rules.make_shape_constraints import equal_shapes
from ingot_compiler.ir.rules.typing_rules import require_operands, require_sizes
from ingot_compiler.ir.types import TensorType


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "count", "is_limited", "is_centered")
    require_operands(types, 5)
    count = attribute_dim(attributes, "count")
    for name in ("is_limited", "is_centered"):
        attribute_bool(attributes, name)
    boxes, scores, *limits = types
    require(
        boxes.dtype == "f32" and boxes.rank == 3 and boxes.shape[2] == 4,
        "f32 boxes[B, n, 4]",
        boxes,
    )
    require(scores.dtype == "f32" and scores.rank == 3, "f32 scores[B, C, n]", scores)
    for limit, dtype in zip(limits, ("f32", "f32", "i64"), strict=True):
        require(limit.dtype == dtype and limit.rank == 0, f"{dtype} of rank 0", limit)
    require_sizes((count,), "count")
    batches, classes, n = scores.shape
    same = equal_shapes("sizes of boxes and scores", boxes.shape[:2], (batches, n))
    return Inferred((TensorType("i64", (batches, classes, dim_add(count, 1))),), same)


def _reference(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    boxes, scores, least, overlap, count_max = operands
    count = attribute_int(attributes, "count")
    is_limited = attribute_bool(attributes, "is_limited")
    kept = np.zeros((*scores.shape[:2], 1 + count), np.int64)
    for batch, kind in np.ndindex(*scores.shape[:2]):
        row = scores[batch, kind]
        best = np.lexsort((np.arange(len(row)), -row, ~np.isnan(row)))
        candidates = [box for box in best if not is_limited or row[box] > least]
        most = min(int(count_max), count)
        sides = _sides(boxes[batch], is_centered=attribute_bool(attributes, "is_centered"))
        own = _greedy(sides, candidates, float(overlap), most)
        kept[batch, kind, : 1 + len(own)] = len(own), *own
    return (kept,)


def _sides(boxes: Array, *, is_centered: bool) -> tuple[Array, ...]:
    """Top, left, bottom, right."""
    a, b, c, d = boxes.T
    if is_centered:
        height, width = d * np.float32(0.5), c * np.float32(0.5)
        return b - height, a - width, b + height, a + width
    return np.minimum(a, c), np.minimum(b, d), np.maximum(a, c), np.maximum(b, d)


def _greedy(
    sides: Sequence[Array], candidates: Sequence[int], limit: float, most: int
) -> list[int]:
    """The candidates that overlap none before them that is kept."""
    top, left, bottom, right = sides
    areas = (bottom - top) * (right - left)
    kept: list[int] = []
    for box in candidates:
        if len(kept) >= most:
            break
        height = np.minimum(bottom[box], bottom[kept]) - np.maximum(top[box], top[kept])
        width = np.minimum(right[box], right[kept]) - np.maximum(left[box], left[kept])
        shared = np.maximum(height, 0) * np.maximum(width, 0)
        with np.errstate(all="ignore"):
            union = areas[box] + areas[kept] - shared
            if not ((shared > 0) & (shared / union > np.float32(limit))).any():
                kept.append(box)
    return kept


OPS = (CoreOp("suppress_overlaps", _infer, _reference),)
