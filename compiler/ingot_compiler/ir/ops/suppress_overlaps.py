"""``suppress_overlaps(boxes, candidates, threshold, count_max)``: which boxes no earlier kept one
overlaps, and how many of them (ONNX NonMaxSuppression-11).

In: f32 boxes[R, 4, n] (top, left, bottom, right; best first), bool candidates[R, n], an f32 and an
i64 of rank 0. Out: bool[R, n]: the first ``count_max`` candidates of a row whose intersection over
union with every kept earlier box of the row is at most the threshold. Not done here: sorting (the
frontend).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attributes, require_attributes
from ingot_compiler.ir.make_shape_constraints import equal_shapes
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.op_type_error import require
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.typing_rules import require_operands


def _infer(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes)
    require_operands(types, 4)
    boxes, candidates, threshold, count_max = types
    require(
        boxes.dtype == "f32" and boxes.rank == 3 and boxes.shape[1] == 4,
        "f32 boxes[R, 4, n]",
        boxes,
    )
    require(
        candidates.dtype == "bool" and candidates.rank == 2, "bool candidates[R, n]", candidates
    )
    require(threshold == TensorType("f32", ()), "an f32 of rank 0", threshold)
    require(count_max == TensorType("i64", ()), "an i64 of rank 0", count_max)
    same = equal_shapes(
        "sizes of boxes and candidates", (boxes.shape[0], boxes.shape[2]), candidates.shape
    )
    return Inferred((candidates,), same)


def _reference(operands: Sequence[Array], _attributes: Attributes) -> tuple[Array, ...]:
    boxes, candidates, threshold, count_max = operands
    kept: Array = np.zeros(candidates.shape, np.bool_)
    for row, (top, left, bottom, right) in enumerate(boxes):
        areas = (bottom - top) * (right - left)
        for i in np.flatnonzero(candidates[row]):
            earlier = np.flatnonzero(kept[row, :i])
            height = np.minimum(bottom[i], bottom[earlier]) - np.maximum(top[i], top[earlier])
            width = np.minimum(right[i], right[earlier]) - np.maximum(left[i], left[earlier])
            shared = np.maximum(height, 0) * np.maximum(width, 0)
            union = areas[i] + areas[earlier] - shared
            with np.errstate(all="ignore"):
                overlaps = (shared > 0) & (shared / union > threshold)
            kept[row, i] = not overlaps.any() and len(earlier) < count_max
    return (kept,)


OP = CoreOp("suppress_overlaps", _infer, _reference)
