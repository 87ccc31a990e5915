"""ai.onnx.ml LinearRegressor: a product with coefficients, plus intercepts.

In: x[N, n]. Out: f32 [N, targets]. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.ml.ml_linear import linear_scores
from ingot_compiler.frontend.families.ml.ml_scores import transform_name, transformed


def _translate(context: OpContext) -> Sequence[int]:
    scores = linear_scores(context, context.int_attribute("targets", 1))
    return (transformed(context, cast(context, scores, "f32"), transform_name(context)),)


OP = OnnxOp("LinearRegressor", _translate)
