"""Linear models of ONNX-ML.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast, concat, reshape
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.ml.ml_linear import coefficient_rows, linear_scores
from ingot_compiler.frontend.families.ml.ml_scores import (
    class_labels,
    label_of,
    transform_name,
    transformed,
)
from ingot_compiler.frontend.families.strings.labels import with_text_labels


def _linear_classifier(context: OpContext) -> Sequence[int]:
    """A product with coefficients, plus intercepts, and the best class.

    In: x[N, n]. Out: i64 labels [N], f32 scores [N, classes].
    """
    labels, name = class_labels(context), transform_name(context)
    rows = coefficient_rows(context)
    scores = cast(context, linear_scores(context, rows), "f32")
    if rows == 1 and len(labels) == 2:
        scores = concat(context, [context.add("neg", scores), scores], 1)
    found = transformed(context, scores, name)
    if context.shape_of(scores)[1] == 1:
        return _one_class(context, found, labels, 0.0 if name == "NONE" else 0.5), found
    return label_of(context, found, labels), found


def _one_class(context: OpContext, scores: int, labels: Sequence[int], limit: float) -> int:
    """The only label, 1 where there is none, or 0."""
    column = reshape(context, scores, context.shape_of(scores)[:1])
    reached = context.add("less_equal", context.scalar("f32", limit), column)
    yes = context.scalar("i64", labels[0] if labels else 1)
    return context.add("select", reached, yes, context.scalar("i64", 0))


def _linear_regressor(context: OpContext) -> Sequence[int]:
    """A product with coefficients, plus intercepts.

    In: x[N, n]. Out: f32 [N, targets].
    """
    scores = linear_scores(context, context.int_attribute("targets", 1))
    return (transformed(context, cast(context, scores, "f32"), transform_name(context)),)


OPS = (
    OnnxOp("LinearClassifier", with_text_labels(_linear_classifier)),
    OnnxOp("LinearRegressor", _linear_regressor),
)
