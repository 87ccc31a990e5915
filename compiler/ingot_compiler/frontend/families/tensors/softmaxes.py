"""Softmax and its relatives: before opset 13 they see a matrix, from then on one axis.

In: a context. Out: the result of a row op. Not done here: the rows themselves (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.frontend.build.compose import reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import Translate
from ingot_compiler.frontend.model.onnx_node import counted_axis
from ingot_compiler.ir.dims import dim_product


def row_op(rows: Callable[[OpContext, int, int], int]) -> Translate:
    """``rows(context, x, axis)`` along one axis; opset < 13: along all axes from ``axis`` on, as
    one (ONNX Softmax-11)."""

    def translate(context: OpContext) -> Sequence[int]:
        x = context.operand(0)
        shape = context.shape_of(x)
        axis = counted_axis(
            context.int_attribute("axis", -1 if context.opset >= 13 else 1), max(1, len(shape))
        )
        if not shape:
            return (reshape(context, rows(context, reshape(context, x, (1,)), 0), ()),)
        if context.opset >= 13 or axis == len(shape) - 1:
            return (rows(context, x, axis),)
        matrix = reshape(context, x, (dim_product(shape[:axis]), dim_product(shape[axis:])))
        return (reshape(context, rows(context, matrix, 1), shape),)

    return translate
