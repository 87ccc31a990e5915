"""ONNX NonZero: the indices of elements that are not 0.

In: any tensor. Out: i64[rank, count], the count known at run time only. Not done here: types
(``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import as_vector, concat, reshape, slice_axis
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.tensors.selection import (
    is_true,
    positions_of_true,
    split_index,
)


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    shape = context.shape_of(x)
    found = positions_of_true(context, is_true(context, as_vector(context, x)))
    (count,) = context.shape_of(found)
    if not shape:
        return (reshape(context, slice_axis(context, found, 0, 0, 0), (0, count)),)
    parts = split_index(context, found, shape, is_inside=True)
    rows = [reshape(context, part, (1, count)) for part in parts]
    return (concat(context, rows, 0),)


OP = OnnxOp("NonZero", _translate)
