"""Probabilities of classes from those of pairs: the iteration of libsvm (Wu, Lin and Weng, method
2), as in ONNX's reference.

In: probabilities of the first of each pair of classes. Out: [N, classes]. Not done here: pairs
(``ops/ml/svm_classifier``).

Rows whose error is small enough keep their numbers while others go on.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.compose import (
    binary_scalar,
    cast,
    concat,
    full,
    reduce,
    reshape,
    slice_axis,
    unsqueeze,
)
from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.control import build_loop

_ITERATIONS = 100
_ERROR = 0.005


def class_probabilities(context: OpContext, pairs: Sequence[int], classes: int) -> int:
    """``pairs``: [N, 1] for (0, 1), (0, 2), .., (1, 2), ..: of the first of the two."""
    q = _matrix(context, pairs, classes)
    rows = context.shape_of(q)[0]
    dtype = context.dtype_of(q)
    start = full(context, dtype, 1.0 / classes, (rows, classes))
    going = full(context, "bool", 1, (rows, 1))

    def fill(inputs: Sequence[int]) -> Sequence[int]:
        _, _, p, active = inputs
        qp = reduce(context, context.add("mul", q, unsqueeze(context, p, (1,))), "sum", (2,))
        pqp = reduce(context, context.add("mul", p, qp), "sum", (1,), keepdims=True)
        off = context.add("abs", context.add("sub", qp, pqp))
        error = reduce(context, off, "max", (1,), keepdims=True)
        large = context.add("less_equal", context.scalar(dtype, _ERROR / classes), error)
        active = context.add("logical_and", active, large)
        improved = _sweep(context, q, (p, qp, pqp), classes)
        flags = reduce(context, cast(context, active, "i32"), "max", (0, 1))
        again = cast(context, flags, "bool")
        return again, context.add("select", active, improved, p), active

    limit = max(_ITERATIONS, classes)
    count = context.scalar("i64", limit)
    return build_loop(context, (count, limit), (None, True), (start, going), fill)[0]


def _matrix(context: OpContext, pairs: Sequence[int], classes: int) -> int:
    """Q[N, classes, classes]."""
    one = context.scalar(context.dtype_of(pairs[0]), 1.0)
    of: dict[tuple[int, int], int] = {}
    places = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    for (i, j), first in zip(places, pairs, strict=True):
        of[i, j], of[j, i] = first, context.add("sub", one, first)
    rows: list[int] = []
    for i in range(classes):
        squares = [context.add("mul", of[j, i], of[j, i]) for j in range(classes) if j != i]
        own = squares[0]
        for square in squares[1:]:
            own = context.add("add", own, square)
        entries = [
            own if i == j else context.add("neg", context.add("mul", of[i, j], of[j, i]))
            for j in range(classes)
        ]
        rows.append(unsqueeze(context, concat(context, entries, 1), (1,)))
    return concat(context, rows, 1)


def _sweep(context: OpContext, q: int, state: tuple[int, int, int], classes: int) -> int:
    """Better probabilities: each class in turn."""
    p, qp, pqp = state
    rows, dtype = context.shape_of(p)[0], context.dtype_of(p)
    one = context.scalar(dtype, 1.0)
    for t in range(classes):
        row = reshape(context, slice_axis(context, q, 1, t, 1), (rows, classes))
        own, value = slice_axis(context, row, 1, t, 1), slice_axis(context, qp, 1, t, 1)
        change = context.add("div", context.add("sub", pqp, value), own)
        total = context.add("add", one, change)
        double = binary_scalar(context, "mul", value, 2.0)
        inner = context.add("add", context.add("mul", change, own), double)
        raised = context.add("add", pqp, context.add("mul", change, inner))
        pqp = context.add("div", raised, context.add("mul", total, total))
        parts = [slice_axis(context, p, 1, k, 1) for k in range(classes)]
        parts[t] = context.add("add", parts[t], change)
        p = context.add("div", concat(context, parts, 1), total)
        qp = context.add("div", context.add("add", qp, context.add("mul", change, row)), total)
    return p
