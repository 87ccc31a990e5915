"""ONNX AveragePool: the mean per window, with or without padding.

In: x[N, C, spatial..] of floats. Out: core ``average_pool``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.images.windows import pool_attributes


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    attributes, counted = pool_attributes(context, x)
    include = context.bool_attribute("count_include_pad")
    return (
        context.add(
            "average_pool", x, **attributes, count_include_pad=include, pads_counted_after=counted
        ),
    )


OP = OnnxOp("AveragePool", _translate)
