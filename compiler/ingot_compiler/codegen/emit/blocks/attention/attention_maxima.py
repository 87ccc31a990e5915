"""The greatest score of each query of fused attention, lane by lane, and the masks before it.

In: ``Head``, ``QueryTile``, ``q.k`` in scratch or in registers. Out: scores in scratch, in units of
``Head.score_unit``, with masks; in the stack, for each query a vector of the greatest ones seen. Not done
here: the greatest of all lanes, exponentials (``attention_softmax``).

Scores without a mask are compared where they are made, in registers. A NaN may be lost here: it
comes back as exp(NaN) in the sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.codegen.emit.blocks.attention.attention_head import Head, QueryTile
from ingot_compiler.codegen.emit.blocks.epilogue import is_light_value
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.convert import emit_cast
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lanes import lane_numbers, tail_mask
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64
from ingot_compiler.codegen.emit.value import emit_value
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.codegen.writer import Writer

_MINUS_INFINITY = float("-inf")
_MASKED_LANES = 16  # of the vectors that machine code alone has, which may be stored in part


def greater(w: Writer, left: LlvmValue, right: LlvmValue) -> LlvmValue:
    """The greater one, lane by lane: one instruction."""
    return w.select(w.compare("ogt", left, right), left, right)


def start_maxima(head: Head) -> None:
    """No score was seen of any row."""
    least = constant(_MINUS_INFINITY, "float", head.lanes)
    for row in range(head.layout.rows):
        head.writer.store(least, head.row_vector(i64(row)))


def take_maximum(head: Head, row: LlvmValue, scores: Sequence[LlvmValue]) -> None:
    """Compare vectors of scores of a row with the greatest ones before."""
    w, place = head.writer, head.row_vector(row)
    largest = w.load(place, "float", head.lanes)
    for score in scores:
        largest = greater(w, largest, score)
    # With AVX-512, LLVM would make a masked store of a choice between what lies there and what is
    # stored, which no load that follows may be served from.
    w.store(largest, w.hidden(place) if head.lanes == _MASKED_LANES else place)


def masks_in_registers(head: Head, vectors: int) -> bool:
    """Whether masking so many vectors of scores where they are made is not much code."""
    mask = head.statement.mask
    return mask is None or is_light_value(mask, vectors)


def masked_row(
    head: Head,
    query: LlvmValue,
    keys: Sequence[LlvmValue],
    scores: Sequence[LlvmValue],
    tail: LlvmValue | None,
) -> Operands:
    """Mask vectors of scores of a query, which begin at ``keys``; of the last one the lanes of
    ``tail`` are keys."""
    context = head.context
    tails = (*(None,) * (len(keys) - 1), tail)
    with context.scope():
        context.bind({head.statement.query: query})
        return tuple(
            _masked(head, score, query, key, lanes)
            for score, key, lanes in zip(scores, keys, tails, strict=True)
        )


def only_keys(head: Head, score: LlvmValue, tail: LlvmValue | None) -> LlvmValue:
    """The scores of a vector, -inf where there is no key."""
    if tail is None:
        return score
    return head.writer.select(tail, score, constant(_MINUS_INFINITY, "float", head.lanes))


def emit_masked(head: Head, tile: QueryTile, first: LlvmValue, last: LlvmValue) -> None:
    """Mask the scores of the keys from ``first``, a whole number of vectors, up to ``last`` in
    scratch, and compare them. Lanes past the last key become -inf."""
    w, context = head.writer, head.context
    end = w.add(first, w.binary("and", w.sub(last, first), i64(-head.lanes)))

    def row(number: LlvmValue) -> None:
        query = w.add(tile.first, number)
        with context.scope():
            context.bind({head.statement.query: query})
            _emit_masked_row(head, (first, end, last), number, query)

    for_each(w, ZERO, tile.valid, 1, row, nonempty=True)


def _emit_masked_row(
    head: Head, keys: tuple[LlvmValue, LlvmValue, LlvmValue], row: LlvmValue, query: LlvmValue
) -> None:
    w, lanes, scores = head.writer, head.lanes, head.score_row(row)
    first, end, last = keys

    def vector(key: LlvmValue, largest: LlvmValue, tail: LlvmValue | None) -> Operands:
        place = w.offset(scores, key, "float")
        score = _masked(head, w.load(place, "float", lanes), query, key, tail)
        score = only_keys(head, score, tail)
        w.store(score, place)
        return (greater(w, score, largest),)

    def whole(key: LlvmValue, largest: Operands) -> Operands:
        return vector(key, largest[0], None)

    def rest(key: LlvmValue, largest: Operands) -> Operands:
        return vector(key, largest[0], tail_mask(w, key, last, lanes))

    place = head.row_vector(row)
    largest = w.loop(first, end, lanes, (w.load(place, "float", lanes),), whole)
    # At most one round: the vector that holds the last key.
    (maximum,) = w.loop(end, last, lanes, largest, rest)
    w.store(maximum, place)


def _masked(
    head: Head, score: LlvmValue, query: LlvmValue, key: LlvmValue, tail: LlvmValue | None
) -> LlvmValue:
    """Mask the scores from `key` on."""
    if head.scales:
        score = _scaled(head, score, key, tail)
    return _where_seen(head, score, key, query) if head.statement.causal else score


def _scaled(head: Head, score: LlvmValue, key: LlvmValue, tail: LlvmValue | None) -> LlvmValue:
    """``scale * score + mask``."""
    w, context, statement = head.writer, head.context, head.statement
    scale = constant(statement.scale, "float", head.lanes)
    if statement.mask is None:
        return w.binary("fmul", score, scale)
    with context.scope():
        context.vectorize(statement.key, key, tail, lanes=head.lanes)
        mask = emit_value(context, statement.mask)
        addend = w.splat(emit_cast(w, mask.operand, mask.dtype, "f32"), head.lanes)
    return w.fma(score, scale, addend)


def _where_seen(head: Head, score: LlvmValue, key: LlvmValue, query: LlvmValue) -> LlvmValue:
    """-inf where causality hides the key: lane j is seen when key + j <= query + offset."""
    w, lanes = head.writer, head.lanes
    seen = w.sub(w.add(query, emit_index(head.context, head.statement.causal_offset)), key)
    # Clamped to fit 32 bits.
    near = w.intrinsic("smax", w.intrinsic("smin", seen, i64(lanes)), i64(-1))
    limit = w.splat(w.convert("trunc", near, "i32"), lanes)
    visible = w.compare("sle", lane_numbers(lanes, "i32"), limit)
    return w.select(visible, score, constant(_MINUS_INFINITY, "float", lanes))
