"""ONNX GlobalMaxPool: the greatest element over all spatial axes.

In: x[N, C, spatial..]. Out: core ``reduce``. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import reduce
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.images.windows import spatial_count


def _translate(context: OpContext) -> Sequence[int]:
    x = context.operand(0)
    axes = tuple(range(2, 2 + spatial_count(context, x)))
    return (reduce(context, x, "max", axes, keepdims=True),)


OP = OnnxOp("GlobalMaxPool", _translate)
