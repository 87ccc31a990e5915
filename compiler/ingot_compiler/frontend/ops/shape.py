"""ONNX Shape: the sizes of a tensor, perhaps of some axes only.

In: a tensor. Out: core ``literal`` or ``dim_values``, i64. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp


def _translate(context: OpContext) -> Sequence[int]:
    shape = context.shape_of(context.operand(0))
    start, end = context.int_attribute("start", 0), context.int_attribute("end", len(shape))
    # Negative ones count from the end, both are clamped: Python's own rule.
    return (context.integers(shape[start:end]),)


OP = OnnxOp("Shape", _translate)
