"""The softmax of fused attention: exponentials, the reciprocal of their sum.

In: ``Head``, ``QueryTile``, scores in scratch and their greatest ones, lane by lane
(``attention_maxima``). Out: exp(score - max) in their place, and a factor a row. Not done here:
multiplying by the factor (``attention_values``).

The softmax is divided out at the end, by one reciprocal a row (the sum is at least 1).
"""

from __future__ import annotations

from ingot_compiler.backends.host.emit.control import for_each
from ingot_compiler.backends.host.emit.kernels.attention_head import Head, QueryTile
from ingot_compiler.backends.host.emit.kernels.attention_maxima import greater
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

    def maximum(number: LlvmValue) -> None:
        place = head.row_vector(number)
        w.store(_combined(head, w.load(place, "float", head.lanes), "max"), place)

    def exponentials(number: LlvmValue) -> None:
        place = head.row_vector(number)
        largest = w.load(place, "float", head.lanes)
        w.store(_emit_exponentials(head, tile, head.score_row(number), largest), place)

    def factor(number: LlvmValue) -> None:
        sums = w.load(head.row_vector(number), "float", head.lanes)
        total = w.extract(_combined(head, sums, "sum"), 0)
        w.store(_reciprocal(head, total), head.factor(number))

    for body in (maximum, exponentials, factor):
        for_each(w, ZERO, tile.valid, 1, body, nonempty=True)


def _emit_exponentials(
    head: Head, tile: QueryTile, row: LlvmValue, largest: LlvmValue
) -> LlvmValue:
    """Replace a row of scores by exp(score - largest); return the sums, lane by lane."""
    w, lanes = head.writer, head.lanes
    zero = constant(0.0, "float", lanes)
    if head.statement.nan_to_zero:
        # Every score is -inf: exp(-inf - 0) gives a sum of 0 instead of NaN.
        empty = w.compare("oeq", largest, constant(_MINUS_INFINITY, "float", lanes))
        largest = w.select(empty, zero, largest)

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


def _combined(head: Head, value: LlvmValue, function: str) -> LlvmValue:
    """Combine all lanes with one another, lane j with lane j + half; every lane holds the
    result."""
    w, lanes = head.writer, head.lanes
    half = lanes // 2
    while half:
        other = w.shuffle(value, [(lane + half) % lanes for lane in range(lanes)])
        value = w.binary("fadd", value, other) if function == "sum" else greater(w, value, other)
        half //= 2
    return value


def _reciprocal(head: Head, total: LlvmValue) -> LlvmValue:
    """1 / sum; the sum of an empty row is 0, and gives NaN or 0."""
    w = head.writer
    inverse = w.binary("fdiv", constant(1.0, "float"), total)
    empty = w.compare("oeq", total, constant(0.0, "float"))
    special = 0.0 if head.statement.nan_to_zero else float("nan")
    return w.select(empty, constant(special, "float"), inverse)
