"""Core ops that reduce along axes.

In: types, operands, attributes. Out: ``OPS``: for each op its type rule, its reference in numpy and
its traits. Not done here: lowering.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ingot_compiler.ir.attributes import (
    Attributes,
    attribute_axes,
    attribute_bool,
    attribute_ints,
    attribute_str,
    require_attributes,
)
from ingot_compiler.ir.op import Array, CoreOp, Inferred
from ingot_compiler.ir.rules.reference_rules import (
    arg_extreme,
    greatest,
    ints,
    least,
    mean,
    narrow,
    widen,
)
from ingot_compiler.ir.rules.shapes import reduced_shape
from ingot_compiler.ir.rules.typing_rules import (
    ANY,
    NUMBERS,
    infer_arg_extreme,
    require_dtype,
    require_operands,
)
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType


def _reference_argmax(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (arg_extreme(np.argmax, operands[0], attributes),)


ARGMAX = CoreOp("argmax", infer_arg_extreme, _reference_argmax, traits=Trait.EXACT | Trait.STEP)
"""``argmax{axis, select_last, keepdims}``: index of the greatest element along an axis (ONNX
ArgMax-13).

In: a tensor of numbers, the axis not empty. Out: i64, the axis gone or of size 1. Of equal elements
the first wins, or the last with ``select_last``; NaN counts as the greatest.
"""


def _reference_argmin(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    return (arg_extreme(np.argmin, operands[0], attributes),)


ARGMIN = CoreOp("argmin", infer_arg_extreme, _reference_argmin, traits=Trait.EXACT | Trait.STEP)
"""``argmin{axis, select_last, keepdims}``: index of the least element along an axis (ONNX
ArgMin-13).

In: a tensor of numbers, the axis not empty. Out: i64, the axis gone or of size 1. Of equal elements
the first wins, or the last with ``select_last``; NaN counts as the least.
"""


FUNCTIONS = ("sum", "product", "max", "min", "mean")


def _infer_reduce(types: Sequence[TensorType], attributes: Attributes) -> Inferred:
    require_attributes(attributes, "axes", "function", "keepdims")
    require_operands(types, 1)
    x = types[0]
    require_dtype(
        x, ANY if attribute_str(attributes, "function", FUNCTIONS) in ("max", "min") else NUMBERS
    )
    axes = attribute_axes(attributes, x.rank)
    return Inferred(
        (TensorType(x.dtype, reduced_shape(x.shape, axes, attribute_bool(attributes, "keepdims"))),)
    )


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
    if x.dtype.kind == "f":
        return mean(widen(x), axes)
    total = x.sum(axes, dtype=np.uint64 if x.dtype.kind == "u" else np.int64, keepdims=True)
    count = math.prod(x.shape[axis] for axis in axes)
    return np.asarray(np.sign(total) * (np.abs(total) // max(count, 1)))


def _reference_reduce(operands: Sequence[Array], attributes: Attributes) -> tuple[Array, ...]:
    x, axes, keepdims = (
        operands[0],
        attribute_ints(attributes, "axes"),
        attribute_bool(attributes, "keepdims"),
    )
    function = attribute_str(attributes, "function")
    with np.errstate(all="ignore"):
        if function == "max":
            return (np.asarray(x.max(axes, keepdims=keepdims, initial=least(x.dtype))),)
        if function == "min":
            return (np.asarray(x.min(axes, keepdims=keepdims, initial=greatest(x.dtype))),)
        if function == "mean":
            shape = reduced_shape(x.shape, axes, keepdims)
            return (narrow(_mean(x, axes), x).reshape(ints(shape)),)
        wide = widen(x)
        combine = wide.sum if function == "sum" else wide.prod
        return (narrow(combine(axis=axes, dtype=wide.dtype, keepdims=keepdims), x),)


REDUCE = CoreOp("reduce", _infer_reduce, _reference_reduce, traits=Trait.EXACT_ON_INTEGERS)
"""``reduce{function, axes, keepdims}``: one value per group of elements along ``axes`` (ONNX
Reduce*-18).

In: a tensor; bool only for "max" and "min". Out: its element type, the axes gone or of size 1.
Functions: sum, product, max, min (NaN propagates), mean (integers truncate towards 0). Integers
wrap. An empty group gives 0, 1, the least value, the greatest value (infinities for floats), NaN (0
for integers).
"""


OPS = (
    ARGMAX,
    ARGMIN,
    REDUCE,
)
