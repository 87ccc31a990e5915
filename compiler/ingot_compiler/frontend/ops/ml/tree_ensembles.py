"""Ensembles of trees of ONNX-ML.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import cast, element
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.ml.ml_scores import (
    class_labels,
    column,
    label_above,
    label_of,
    transform_name,
    transformed,
    two_columns,
)
from ingot_compiler.frontend.families.ml.tree_sums import base_values, based, leaf_sums, tree_number
from ingot_compiler.frontend.families.strings.labels import with_text_labels
from ingot_compiler.ir.op_type_error import require

_FUNCTIONS_TREE_ENSEMBLE = ("AVERAGE", "SUM", "MIN", "MAX")


def _tree_ensemble(context: OpContext) -> Sequence[int]:
    """Decision trees whose leaves add to targets.

    In: x[N, features]. Out: scores [N, targets] in x's element type.
    """
    function = context.int_attribute("aggregate_function", 1)
    require(0 <= function < len(_FUNCTIONS_TREE_ENSEMBLE), "aggregate_function in [0, 4)", function)
    total = cast(
        context,
        leaf_sums(context, _FUNCTIONS_TREE_ENSEMBLE[function]),
        context.dtype_of(context.operand(0)),
    )
    return (transformed(context, total, transform_name(context)),)


def _tree_ensemble_classifier(context: OpContext) -> Sequence[int]:
    """Decision trees whose leaves add to classes.

    In: x[N, features]. Out: i64 labels [N], f32 scores [N, classes].

    Of two classes of which leaves name one alone, that score decides: from 1/2 on for weights none
    of which is negative, from 0 on otherwise.
    """
    labels = class_labels(context)
    if len(labels) < 2:
        raise Unsupported("one class")
    total, name = leaf_sums(context), transform_name(context)
    added = context.ints_or("tree_added", ())
    if len(labels) == 2 and len(added) == 1:
        return _of_one_score(context, column(context, total, added[0]), labels, name)
    scores = cast(context, based(context, total), "f32")
    return label_of(context, scores, labels), transformed(context, scores, name)


def _of_one_score(
    context: OpContext, score: int, labels: Sequence[int], name: str
) -> tuple[int, int]:
    base = base_values(context)
    if base is not None:
        last = context.shape_of(base)[0]
        assert isinstance(last, int)
        own = cast(context, element(context, base, last - 1), context.dtype_of(score))
        score = context.add("add", score, own)
    score = cast(context, score, "f32")
    positive = bool(tree_number(context, "positive")) and base is None
    label = label_above(context, score, 0.5 if positive else 0.0, labels)
    return label, two_columns(context, score, name, from_one=positive and name == "NONE")


_FUNCTIONS_TREE_ENSEMBLE_REGRESSOR = ("SUM", "AVERAGE", "MIN", "MAX")


def _tree_ensemble_regressor(context: OpContext) -> Sequence[int]:
    """Decision trees whose leaves add to targets.

    In: x[N, features]. Out: f32 scores [N, targets].
    """
    function = context.string_attribute(
        "aggregate_function", "SUM", _FUNCTIONS_TREE_ENSEMBLE_REGRESSOR
    )
    total = cast(context, based(context, leaf_sums(context, function)), "f32")
    return (transformed(context, total, transform_name(context)),)


OPS = (
    OnnxOp("TreeEnsemble", _tree_ensemble),
    OnnxOp("TreeEnsembleClassifier", with_text_labels(_tree_ensemble_classifier)),
    OnnxOp("TreeEnsembleRegressor", _tree_ensemble_regressor),
)
