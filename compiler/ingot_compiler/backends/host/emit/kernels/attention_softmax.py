"""The softmax of fused attention: masks, maxima, exponentials, the reciprocal of their sum.

In: ``Head``, ``QueryTile``, scores in scratch. Out: exp(score - max) in their place, and a factor a
row. Not done here: multiplying by the factor (``attention_values``).

The softmax is divided out at the end, by one reciprocal a row (the sum is at least 1).
"""

from __future__ import annotations

from ingot_compiler.backends.host.emit.control import for_each
from ingot_compiler.backends.host.emit.convert import emit_cast
from ingot_compiler.backends.host.emit.index import emit_index
from ingot_compiler.backends.host.emit.kernels.attention_head import Head, QueryTile
from ingot_compiler.backends.host.emit.lanes import lane_numbers, tail_mask
from ingot_compiler.backends.host.emit.math.exp import exp
from ingot_compiler.backends.host.emit.number import Number
from ingot_compiler.backends.host.emit.operands import ZERO, Operands, i64
from ingot_compiler.backends.host.emit.value import emit_value
from ingot_compiler.backends.host.llvm_value import LlvmValue, constant

_MINUS_INFINITY = float("-inf")


def emit_softmax(head: Head, tile: QueryTile) -> None:
    """Turn the scores of every row into exp(score - max), and keep 1 / sum.

    All maxima first: they need not wait for one another, nor the exponentials of one row for the
    maximum of the next.
    """
    w, context = head.writer, head.context

    def maximum(number: LlvmValue) -> None:
        query = w.add(tile.first, number)
        with context.scope():
            context.bind({head.statement.query: query})
            largest = _emit_masked(head, tile, head.score_row(number), query)
        w.store(w.extract(largest, 0), head.factor(number))

    def exponentials(number: LlvmValue) -> None:
        place = head.factor(number)
        largest = w.splat(w.load(place, "float"), head.lanes)
        total = _emit_exponentials(head, tile, head.score_row(number), largest)
        w.store(_reciprocal(head, total), place)

    for_each(w, ZERO, tile.valid, 1, maximum, nonempty=True)
    for_each(w, ZERO, tile.valid, 1, exponentials, nonempty=True)


def _emit_masked(head: Head, tile: QueryTile, row: LlvmValue, query: LlvmValue) -> LlvmValue:
    """Mask and store a row of scores; return its maximum in all lanes. Lanes past the limit become
    -inf."""
    w, lanes = head.writer, head.lanes

    def whole(key: LlvmValue, largest: Operands) -> Operands:
        return (_mask_vector(head, row, query, key, largest[0], None),)

    def rest(key: LlvmValue, largest: Operands) -> Operands:
        tail = tail_mask(w, key, tile.limit, lanes)
        return (_mask_vector(head, row, query, key, largest[0], tail),)

    end = w.binary("and", tile.limit, i64(-lanes))
    largest = w.loop(ZERO, end, lanes, (constant(_MINUS_INFINITY, "float", lanes),), whole)
    # At most one round: the vector that holds the limit.
    (maximum,) = w.loop(end, tile.limit, lanes, largest, rest)
    return _combined(head, maximum, "max")


def _mask_vector(
    head: Head,
    row: LlvmValue,
    query: LlvmValue,
    key: LlvmValue,
    largest: LlvmValue,
    tail: LlvmValue | None,
) -> LlvmValue:
    """Mask and store the scores from `key` on; return the greater of them and `largest`."""
    w, statement = head.writer, head.statement
    place = w.offset(row, key, "float")
    score = w.load(place, "float", head.lanes)
    score = _with_mask(head, score, key, tail)
    if statement.causal:
        score = _where_seen(head, score, key, query)
    if tail is not None:
        score = w.select(tail, score, constant(_MINUS_INFINITY, "float", head.lanes))
    if tail is not None or statement.mask is not None or statement.causal:
        w.store(score, place)
    # A NaN may be lost here: it comes back as exp(NaN) in the sum.
    return w.select(w.compare("ogt", score, largest), score, largest)


def _with_mask(head: Head, score: LlvmValue, key: LlvmValue, tail: LlvmValue | None) -> LlvmValue:
    """``score + mask``, if there is one."""
    w, context, statement = head.writer, head.context, head.statement
    if statement.mask is None:
        return score
    with context.scope():
        context.vectorize(statement.key, key, tail, lanes=head.lanes)
        mask = emit_value(context, statement.mask)
        addend = w.splat(emit_cast(w, mask.operand, mask.dtype, "f32"), head.lanes)
    return w.binary("fadd", score, addend)


def _where_seen(head: Head, score: LlvmValue, key: LlvmValue, query: LlvmValue) -> LlvmValue:
    """-inf where causality hides the key: lane j is seen when key + j <= query + offset."""
    w, lanes = head.writer, head.lanes
    seen = w.sub(w.add(query, emit_index(head.context, head.statement.causal_offset)), key)
    # Clamped to fit 32 bits.
    near = w.intrinsic("smax", w.intrinsic("smin", seen, i64(lanes)), i64(-1))
    limit = w.splat(w.convert("trunc", near, "i32"), lanes)
    visible = w.compare("sle", lane_numbers(lanes, "i32"), limit)
    return w.select(visible, score, constant(_MINUS_INFINITY, "float", lanes))


def _emit_exponentials(
    head: Head, tile: QueryTile, row: LlvmValue, largest: LlvmValue
) -> LlvmValue:
    """Replace a row of scores by exp(score - largest); return the sum."""
    w, lanes = head.writer, head.lanes
    zero = constant(0.0, "float", lanes)
    if head.statement.nan_to_zero:
        # Every score is -inf: exp(-inf - 0) gives a sum of 0 instead of NaN.
        empty = w.compare("oeq", largest, constant(_MINUS_INFINITY, "float", lanes))
        largest = w.select(empty, zero, largest)

    def vector(key: LlvmValue, total: Operands) -> Operands:
        place = w.offset(row, key, "float")
        shifted = w.binary("fsub", w.load(place, "float", lanes), largest)
        value = exp(Number(w, shifted)).operand
        w.store(value, place)
        return (w.binary("fadd", total[0], value),)

    (total,) = w.loop(ZERO, tile.limit, lanes, (zero,), vector)
    return w.extract(_combined(head, total, "sum"), 0)


def _combined(head: Head, value: LlvmValue, function: str) -> LlvmValue:
    """Combine all lanes with one another, lane j with lane j + half; every lane holds the
    result."""
    w, lanes = head.writer, head.lanes
    half = lanes // 2
    while half:
        other = w.shuffle(value, [(lane + half) % lanes for lane in range(lanes)])
        if function == "sum":
            value = w.binary("fadd", value, other)
        else:
            value = w.select(w.compare("ogt", value, other), value, other)
        half //= 2
    return value


def _reciprocal(head: Head, total: LlvmValue) -> LlvmValue:
    """1 / sum; the sum of an empty row is 0, and gives NaN or 0."""
    w = head.writer
    inverse = w.binary("fdiv", constant(1.0, "float"), total)
    empty = w.compare("oeq", total, constant(0.0, "float"))
    special = 0.0 if head.statement.nan_to_zero else float("nan")
    return w.select(empty, constant(special, "float"), inverse)
