"""Support vector machines of ONNX-ML.

In: the operands and attributes of a node. Out: core ops. Not done here: types (``ir/ops``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, combinations

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    cast,
    concat,
    element,
    reshape,
    slice_axis,
    transpose,
)
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.families.ml.ml_kernels import kernel_matrix
from ingot_compiler.frontend.families.ml.ml_linear import features, needed_vector
from ingot_compiler.frontend.families.ml.ml_probabilities import class_probabilities
from ingot_compiler.frontend.families.ml.ml_scores import (
    class_labels,
    column,
    label_above,
    label_of,
    numbers_of,
    transform_name,
    transformed,
    two_columns,
    vector_of,
)
from ingot_compiler.frontend.families.strings.labels import with_text_labels
from ingot_compiler.ir.op_type_error import require

_CLASSES_MAX = 32
_LEAST = 1e-7  # of a probability of a pair


def _svm_classifier(context: OpContext) -> Sequence[int]:
    """Each pair of classes is decided, and most decisions win.

    In: x[N, n]. Out: i64 labels [N]; f32 scores: of the pairs [N, pairs], with ``prob_a``
    probabilities [N, classes]. Without support vectors it is linear: [N, classes].
    """
    labels, per_class = class_labels(context), numbers_of(context, "vectors_per_class")
    if sum(per_class) == 0:
        return _linear(context, labels)
    require(len(labels) == len(per_class), f"{len(per_class)} labels", len(labels))
    require(min(per_class) >= 0, "no negative vectors_per_class", min(per_class))
    if not 2 <= len(labels) <= _CLASSES_MAX:
        raise Unsupported(f"{len(labels)} classes: 2 to {_CLASSES_MAX} have a translation")
    scores = _pair_scores(context, per_class)
    votes = _votes(context, scores, len(labels))
    name = transform_name(context)
    if vector_of(context, "prob_a") is not None:
        found = transformed(context, _probabilities(context, scores, len(labels)), name)
    elif len(scores) == 1:
        found = two_columns(context, scores[0], name, from_one=False)
    else:
        found = transformed(context, concat(context, scores, 1), name)
    return label_of(context, votes, labels), cast(context, found, "f32")


def _linear(context: OpContext, labels: Sequence[int]) -> tuple[int, int]:
    """A row of coefficients for each class."""
    x, rows = features(context), max(1, len(labels))
    flat = needed_vector(context, "coefficients", x)
    count = context.shape_of(flat)[0]
    assert isinstance(count, int)
    require(count % rows == 0, f"a multiple of {rows} coefficients", count)
    table = transpose(context, reshape(context, flat, (rows, count // rows)), (1, 0))
    rho = element(context, needed_vector(context, "rho", x), 0)
    scores = context.add("add", context.add("matmul", x, table), rho)
    found = cast(context, transformed(context, scores, transform_name(context)), "f32")
    if rows > 1:
        return label_of(context, scores, labels), found
    return label_above(context, scores, 0.0, (0, 1)), found


def _pair_scores(context: OpContext, per_class: Sequence[int]) -> list[int]:
    """[N, 1] for each pair of classes (0, 1), (0, 2), .., (1, 2), ..: above 0 for the first."""
    x, classes, total = features(context), len(per_class), sum(per_class)
    kernels, weights = (
        kernel_matrix(context, x, total),
        needed_vector(context, "coefficients", x),
    )
    wanted = (classes - 1) * total
    count = context.shape_of(weights)[0]
    require(count == wanted, f"{wanted} coefficients", count)
    table = transpose(context, reshape(context, weights, (classes - 1, total)), (1, 0))
    starts = (0, *accumulate(per_class))
    # What the vectors of a class add, by its rivals.
    parts = [
        context.add(
            "matmul",
            slice_axis(context, kernels, 1, start, size),
            slice_axis(context, table, 0, start, size),
        )
        for start, size in zip(starts, per_class, strict=False)
    ]
    rho, pairs = needed_vector(context, "rho", x), list(combinations(range(classes), 2))
    given = context.shape_of(rho)[0]
    require(given == len(pairs), f"{len(pairs)} entries of rho", given)
    return [
        context.add(
            "add",
            context.add("add", column(context, parts[i], j - 1), column(context, parts[j], i)),
            element(context, rho, number),
        )
        for number, (i, j) in enumerate(pairs)
    ]


def _votes(context: OpContext, scores: Sequence[int], classes: int) -> int:
    """How many pairs each class wins: [N, classes]."""
    votes: list[list[int]] = [[] for _ in range(classes)]
    for (i, j), score in zip(combinations(range(classes), 2), scores, strict=True):
        first = binary_scalar(context, "less_equal", score, 0.0)
        votes[j].append(cast(context, first, "i32"))
        votes[i].append(cast(context, context.add("logical_not", first), "i32"))
    return concat(context, [_total(context, own) for own in votes], 1)


def _total(context: OpContext, values: Sequence[int]) -> int:
    total = values[0]
    for value in values[1:]:
        total = context.add("add", total, value)
    return total


def _probabilities(context: OpContext, scores: Sequence[int], classes: int) -> int:
    """From the scores of pairs by Platt's sigmoid."""
    a, b = (needed_vector(context, name, scores[0]) for name in ("prob_a", "prob_b"))
    for name, value in (("prob_a", a), ("prob_b", b)):
        given = context.shape_of(value)[0]
        require(given == len(scores), f"{len(scores)} entries of {name}", given)
    pairs: list[int] = []
    for number, score in enumerate(scores):
        scaled = context.add("mul", score, element(context, a, number))
        place = context.add("add", scaled, element(context, b, number))
        own = context.add("sigmoid", context.add("neg", place))
        least = binary_scalar(context, "max", own, _LEAST)
        pairs.append(binary_scalar(context, "min", least, 1.0 - _LEAST))
    return class_probabilities(context, pairs, classes)


def _svm_regressor(context: OpContext) -> Sequence[int]:
    """A weighted sum of kernels; of one class, its sign.

    In: x[N, n]. Out: f32 [N, 1].
    """
    x, vectors = features(context), context.int_attribute("n_supports", 0)
    weights = needed_vector(context, "coefficients", x)
    kernels = kernel_matrix(context, x, vectors) if vectors > 0 else x
    count, columns = context.shape_of(weights)[0], context.shape_of(kernels)[1]
    require(count == columns or not isinstance(columns, int), f"{columns} coefficients", count)
    assert isinstance(count, int)
    total = context.add("matmul", kernels, reshape(context, weights, (count, 1)))
    total = context.add("add", total, element(context, needed_vector(context, "rho", x), 0))
    if context.bool_attribute("one_class"):
        dtype = context.dtype_of(x)
        inside = context.add("less", context.scalar(dtype, 0.0), total)
        yes, no = (context.scalar(dtype, value) for value in (1.0, -1.0))
        total = context.add("select", inside, yes, no)
    return (transformed(context, cast(context, total, "f32"), transform_name(context)),)


OPS = (
    OnnxOp("SVMClassifier", with_text_labels(_svm_classifier)),
    OnnxOp("SVMRegressor", _svm_regressor),
)
