"""What classifiers and regressors of ai.onnx.ml make of their scores.

In: scores [N, K]. Out: scores after ONNX's post transforms; labels. Not done here: the scores.

ONNX's text leaves open what two classes with one score are; here it is what ONNX Runtime does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    broadcast_to,
    cast,
    concat,
    reduce,
    reshape,
    slice_axis,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.model.imported import ImportedAttribute
from ingot_compiler.frontend.model.onnx_node import RegionBody
from ingot_compiler.frontend.ops.along_axis import softmax_rows
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.op_type_error import OpTypeError, require

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_NEAR_ZERO = 1e-7  # of SOFTMAX_ZERO: scores nearer to 0 are scaled, not raised


def numbers_of(context: OpContext, name: str) -> tuple[int, ...]:
    """A list of integers, wherever it is; () when absent."""
    value = context.attributes.get(name, ())
    if isinstance(value, ConstantSource):
        return tuple(int(item) for item in context.translation.elements(value).tolist())
    return context.ints_or(name, ())


def vector_of(context: OpContext, name: str) -> int | None:
    """A list that is stored as a vector: of floats, or of many integers; None where it is absent,
    empty, or in the node."""
    value: ImportedAttribute | RegionBody | None = context.attributes.get(name)
    if not isinstance(value, ConstantSource) or value.type.element_count == 0:
        return None
    found = context.constant(value)
    return reshape(context, found, (value.type.element_count,))


def as_rows(context: OpContext, x: int) -> int:
    """[N, features]: a vector is one row."""
    shape = context.shape_of(x)
    require(len(shape) in (1, 2), "x[N, features], or one row", context.type_of(x))
    return reshape(context, x, (1, *shape)) if len(shape) == 1 else x


def transformed(context: OpContext, scores: int, name: str) -> int:
    """Scores [N, K] after a post transform."""
    transforms: dict[str, Callable[[OpContext, int], int]] = {
        "NONE": lambda _, x: x,
        "SOFTMAX": lambda context, x: softmax_rows(context, x, 1),
        "LOGISTIC": lambda context, x: context.add("sigmoid", x),
        "SOFTMAX_ZERO": _softmax_zero,
        "PROBIT": _probit,
    }
    return transforms[name](context, scores)


def _softmax_zero(context: OpContext, x: int) -> int:
    """Softmax in which scores that are 0 stay 0."""
    most = reduce(context, x, "max", (1,), keepdims=True)
    raised = context.add("exp", context.add("sub", x, most))
    scaled = context.add("mul", x, context.add("exp", context.add("neg", most)))
    is_zero = binary_scalar(context, "less_equal", context.add("abs", x), _NEAR_ZERO)
    parts = context.add("select", is_zero, scaled, raised)
    return context.add("div", parts, reduce(context, parts, "sum", (1,), keepdims=True))


def _probit(context: OpContext, x: int) -> int:
    """The quantile of the normal distribution by Winitzki's formula, as in ONNX's reference."""
    centred = binary_scalar(context, "sub", binary_scalar(context, "mul", x, 2.0), 1.0)
    one = context.scalar(context.dtype_of(x), 1.0)
    product = context.add("mul", context.add("sub", one, centred), context.add("add", one, centred))
    log = context.add("log", product)
    half = binary_scalar(context, "mul", log, 0.5)
    v = binary_scalar(context, "add", half, 2.0 / (pi * 0.147))
    v2 = binary_scalar(context, "mul", log, 1.0 / 0.147)
    root = context.add("sqrt", context.add("sub", context.add("mul", v, v), v2))
    size = context.add("sqrt", context.add("sub", root, v))
    signed = context.add("mul", context.add("sign", centred), size)
    return binary_scalar(context, "mul", signed, 1.41421356)


def class_labels(context: OpContext) -> tuple[int, ...]:
    """The labels of classes as integers: places in the list where the file has texts."""
    labels = numbers_of(context, "classlabels_int64s") or numbers_of(context, "classlabels_ints")
    texts = context.attributes.get("classlabels_strings", ())
    require(isinstance(texts, tuple), "a list of texts", "another attribute")
    if isinstance(texts, tuple) and texts:
        return tuple(range(len(texts)))
    return labels


def label_of(context: OpContext, scores: int, labels: Sequence[int]) -> int:
    """The label of the greatest score, of equals the first: i64[N]."""
    count = context.shape_of(scores)[1]
    require(count == len(labels), f"{len(labels)} scores for as many labels", count)
    places = context.add("argmax", scores, axis=1, keepdims=False, select_last=False)
    return picked(context, places, labels)


def picked(context: OpContext, places: int, labels: Sequence[int]) -> int:
    """Labels by their places."""
    if tuple(labels) == tuple(range(len(labels))):
        return cast(context, places, "i64")
    return context.add("gather", context.integers(labels), places, axis=0)


def label_above(context: OpContext, scores: int, limit: float, labels: Sequence[int]) -> int:
    """The second label where a score [N, 1] is above ``limit``, else the first."""
    value = context.scalar(context.dtype_of(scores), limit)
    above = context.add("less", value, reshape(context, scores, context.shape_of(scores)[:1]))
    first, second = (context.scalar("i64", label) for label in labels)
    chosen = context.add("select", above, second, first)
    return broadcast_to(context, chosen, context.shape_of(above))


def two_columns(context: OpContext, score: int, name: str, *, from_one: bool) -> int:
    """The score [N, 1] of the second of two classes as scores of both: of the first 1 - score
    (``from_one``), or its negation, and then the transform."""
    dtype = context.dtype_of(score)
    if from_one:
        other = context.add("sub", context.scalar(dtype, 1.0), score)
        return concat(context, [other, score], 1)
    return transformed(context, concat(context, [context.add("neg", score), score], 1), name)


def transform_name(context: OpContext) -> str:
    """The attribute ``post_transform``: a text, in TreeEnsemble-5 a number."""
    value = context.attributes.get("post_transform", "NONE")
    if isinstance(value, int):
        if not 0 <= value < len(TRANSFORMS):
            raise OpTypeError(f"post_transform in [0, {len(TRANSFORMS)})", value)
        return TRANSFORMS[value]
    return context.string_attribute("post_transform", "NONE", TRANSFORMS)


def column(context: OpContext, scores: int, number: int) -> int:
    """One column [N, 1]."""
    return slice_axis(context, scores, 1, number, 1)
