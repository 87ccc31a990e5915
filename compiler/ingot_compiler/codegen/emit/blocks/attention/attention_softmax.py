"""The softmax of fused attention: exponentials, the reciprocal of their sum.

In: ``Head``, ``QueryTile``, scores in scratch, -inf where there is no key, and their greatest ones,
lane by lane (``attention_maxima``). Out: exp(score - max) in their place, and a factor a row. Not
done here: multiplying by the factor (``attention_values``), exponentials of one tile between the
multiply-adds of another (``attention_overlap``).

The softmax is divided out at the end, by one reciprocal a row (the sum is at least 1). Lanes are
combined for all rows at once, before and after: no row waits for another, nor its exponentials for
a maximum that is still on its way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ingot_compiler.codegen.emit.blocks.attention.attention_head import Head, QueryTile
from ingot_compiler.codegen.emit.blocks.attention.attention_maxima import greater
from ingot_compiler.codegen.emit.blocks.lane_trees import Combine, combined
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.math.exp import exp_of_product
from ingot_compiler.codegen.emit.number import Number
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64, zeros
from ingot_compiler.codegen.llvm_value import LlvmValue, constant

_MINUS_INFINITY = float("-inf")


def emit_softmax(head: Head, tile: QueryTile) -> None:
    """Turn the scores of every row into exp(score - max), and keep 1 / sum."""
    finish_maxima(head)
    emit_exponentials(head, tile.limit, tile.valid)
    finish_sums(head)


def finish_maxima(head: Head) -> None:
    """Make one number of the greatest scores of each row, lane by lane."""
    _combine_rows(head, partial(greater, head.writer), partial(_shift, head), head.maximum)


def finish_sums(head: Head) -> None:
    """Make a factor of the sums of exponentials of each row, lane by lane."""
    _combine_rows(
        head, partial(head.writer.binary, "fadd"), partial(_reciprocal, head), head.factor
    )


def emit_exponentials(
    head: Head, limit: LlvmValue, rows: LlvmValue, begun: LlvmValue | None = None
) -> None:
    """Replace the scores of so many rows up to the limit by exponentials, and keep their sums, lane
    by lane; with those of the keys below ``begun``, a whole number of vectors, which is done."""
    w, lanes = head.writer, head.lanes

    def row(number: LlvmValue) -> None:
        largest, scores = largest_of_row(head, number), head.score_row(number)
        sums = head.row_vector(number)
        start = zeros("float", lanes) if begun is None else w.load(sums, "float", lanes)

        def vector(key: LlvmValue, total: Operands) -> Operands:
            return add_exponential(head, w.offset(scores, key, "float"), largest, total)

        (total,) = w.loop(begun or ZERO, limit, lanes, (start,), vector)
        w.store(total, sums)

    for_each(w, ZERO, rows, 1, row, nonempty=True)


def largest_of_row(head: Head, row: LlvmValue) -> LlvmValue:
    """The greatest score of a row in every lane."""
    return head.writer.splat(head.writer.load(head.maximum(row), "float"), head.lanes)


def add_exponential(head: Head, place: LlvmValue, largest: LlvmValue, total: Operands) -> Operands:
    """Replace a vector of scores by exp(score - largest), and add it to the total."""
    w = head.writer
    shifted = w.binary("fsub", w.load(place, "float", head.lanes), largest)
    value = exp_of_product(Number(w, shifted), head.score_unit).operand
    w.store(value, place)
    return (w.binary("fadd", total[0], value),)


def _combine_rows(
    head: Head,
    combine: Combine,
    finish: Callable[[LlvmValue], LlvmValue],
    place: Callable[[LlvmValue], LlvmValue],
) -> None:
    """Combine the lanes of each row's vector, and keep what ``finish`` makes of it at the place of
    the row. Rows past the last have some number, too."""
    w, rows = head.writer, head.layout.rows
    for first in range(0, rows, head.group_rows):
        group = range(first, min(first + head.group_rows, rows))
        vectors = [w.load(head.row_vector(i64(row)), "float", head.lanes) for row in group]
        vectors += vectors[-1:] * (head.group_rows - len(vectors))
        w.store(finish(combined(w, vectors, combine)), place(i64(first)))


def _shift(head: Head, largest: LlvmValue) -> LlvmValue:
    """What is subtracted from the scores. Where every score is -inf, exp(-inf - 0) gives a sum of 0
    instead of NaN, if the statement requires it."""
    if not head.statement.nan_to_zero:
        return largest
    w, lanes = head.writer, head.lanes
    empty = w.compare("oeq", largest, constant(_MINUS_INFINITY, "float", lanes))
    return w.select(empty, constant(0.0, "float", lanes), largest)


def _reciprocal(head: Head, total: LlvmValue) -> LlvmValue:
    """1 / sum; the sum of an empty row is 0, and gives NaN or 0."""
    w, lanes = head.writer, head.lanes
    inverse = w.binary("fdiv", constant(1.0, "float", lanes), total)
    empty = w.compare("oeq", total, constant(0.0, "float", lanes))
    special = 0.0 if head.statement.nan_to_zero else float("nan")
    return w.select(empty, constant(special, "float", lanes), inverse)
