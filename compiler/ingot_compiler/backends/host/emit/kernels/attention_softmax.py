"""The softmax of fused attention: exponentials, the reciprocal of their sum.

In: ``Head``, ``QueryTile``, scores in scratch and their greatest ones, lane by lane
(``attention_maxima``). Out: exp(score - max) in their place, and a factor a row. Not done here:
multiplying by the factor (``attention_values``).

The softmax is divided out at the end, by one reciprocal a row (the sum is at least 1).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ingot_compiler.backends.host.emit.control import for_each
from ingot_compiler.backends.host.emit.kernels.attention_head import Head, QueryTile
from ingot_compiler.backends.host.emit.kernels.attention_maxima import greater
from ingot_compiler.backends.host.emit.kernels.lane_trees import Combine, combined
from ingot_compiler.backends.host.emit.lanes import tail_mask
from ingot_compiler.backends.host.emit.math.exp import exp_of_product
from ingot_compiler.backends.host.emit.number import Number
from ingot_compiler.backends.host.emit.operands import ZERO, Operands, i64
from ingot_compiler.backends.host.llvm_value import LlvmValue, constant

_MINUS_INFINITY = float("-inf")


def emit_softmax(head: Head, tile: QueryTile) -> None:
    """Turn the scores of every row into exp(score - max), and keep 1 / sum.

    Lanes are combined for all rows at once, before and after: no row waits for another, nor its
    exponentials for a maximum that is still on its way.
    """
    w = head.writer

    def exponentials(row: LlvmValue) -> None:
        largest = w.splat(w.load(head.number(row), "float"), head.lanes)
        w.store(_emit_exponentials(head, tile, head.score_row(row), largest), head.row_vector(row))

    _combine_rows(head, partial(greater, w), partial(_shift, head))
    for_each(w, ZERO, tile.valid, 1, exponentials, nonempty=True)
    _combine_rows(head, partial(w.binary, "fadd"), partial(_reciprocal, head))


def _combine_rows(head: Head, combine: Combine, finish: Callable[[LlvmValue], LlvmValue]) -> None:
    """Combine the lanes of each row's vector, and keep what ``finish`` makes of it as its number.
    Rows past the last have some number, too."""
    w, rows = head.writer, head.layout.rows
    for first in range(0, rows, head.group_rows):
        group = range(first, min(first + head.group_rows, rows))
        vectors = [w.load(head.row_vector(i64(row)), "float", head.lanes) for row in group]
        vectors += vectors[-1:] * (head.group_rows - len(vectors))
        w.store(finish(combined(w, vectors, combine)), head.number(i64(first)))


def _shift(head: Head, largest: LlvmValue) -> LlvmValue:
    """What is subtracted from the scores. Where every score is -inf, exp(-inf - 0) gives a sum of 0
    instead of NaN, if that is asked for."""
    if not head.statement.nan_to_zero:
        return largest
    w, lanes = head.writer, head.lanes
    empty = w.compare("oeq", largest, constant(_MINUS_INFINITY, "float", lanes))
    return w.select(empty, constant(0.0, "float", lanes), largest)


def _emit_exponentials(
    head: Head, tile: QueryTile, row: LlvmValue, largest: LlvmValue
) -> LlvmValue:
    """Replace a row of scores by exp(score - largest); return the sums, lane by lane."""
    w, lanes = head.writer, head.lanes
    zero = constant(0.0, "float", lanes)

    def whole(key: LlvmValue, total: Operands) -> Operands:
        value = _exponential(head, w.offset(row, key, "float"), largest)
        return (w.binary("fadd", total[0], value),)

    def rest(key: LlvmValue, total: Operands) -> Operands:
        value = _exponential(head, w.offset(row, key, "float"), largest)
        tail = tail_mask(w, key, tile.limit, lanes)
        return (w.binary("fadd", total[0], w.select(tail, value, zero)),)

    end = w.binary("and", tile.limit, i64(-lanes))
    sums = w.loop(ZERO, end, lanes, (zero,), whole)
    # At most one round: the vector that holds the limit.
    (total,) = w.loop(end, tile.limit, lanes, sums, rest)
    return total


def _exponential(head: Head, place: LlvmValue, largest: LlvmValue) -> LlvmValue:
    """Replace a vector of scores by exp(score - largest)."""
    w = head.writer
    shifted = w.binary("fsub", w.load(place, "float", head.lanes), largest)
    value = exp_of_product(Number(w, shifted), head.score_unit).operand
    w.store(value, place)
    return value


def _reciprocal(head: Head, total: LlvmValue) -> LlvmValue:
    """1 / sum; the sum of an empty row is 0, and gives NaN or 0."""
    w, lanes = head.writer, head.lanes
    inverse = w.binary("fdiv", constant(1.0, "float", lanes), total)
    empty = w.compare("oeq", total, constant(0.0, "float", lanes))
    special = 0.0 if head.statement.nan_to_zero else float("nan")
    return w.select(empty, constant(special, "float", lanes), inverse)
