"""ai.onnx.ml TreeEnsembleRegressor: decision trees whose leaves add to targets.

In: x[N, features]. Out: f32 scores [N, targets]. Not done here: the tables (``trees``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.ml.ml_scores import transform_name, transformed
from ingot_compiler.frontend.families.ml.tree_sums import based, leaf_sums

_FUNCTIONS = ("SUM", "AVERAGE", "MIN", "MAX")


def _translate(context: OpContext) -> Sequence[int]:
    function = context.string_attribute("aggregate_function", "SUM", _FUNCTIONS)
    total = cast(context, based(context, leaf_sums(context, function)), "f32")
    return (transformed(context, total, transform_name(context)),)


OP = OnnxOp("TreeEnsembleRegressor", _translate)
