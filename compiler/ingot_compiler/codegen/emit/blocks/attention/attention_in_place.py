"""The scores of fused attention over keys that are read in place, for few queries.

In: ``Head``, ``QueryTile``. Out: scores in scratch, and the greatest ones of each query. Not done
here: masks (``attention_maxima``).

A block of as many keys as a vector has lanes: one accumulator for each key, whose lanes are along
depth; a tree of shuffles and sums turns them into one vector of scores. All queries take a block
before the next one, which then comes from memory once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ingot_compiler.codegen.emit.blocks.attention.attention_ahead import KeysAhead, keys_ahead
from ingot_compiler.codegen.emit.blocks.attention.attention_head import Head, QueryTile
from ingot_compiler.codegen.emit.blocks.attention.attention_maxima import emit_masked, start_maxima
from ingot_compiler.codegen.emit.blocks.attention.attention_pack import key_rows, key_rows_from
from ingot_compiler.codegen.emit.blocks.lane_trees import combined
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64, zeros
from ingot_compiler.codegen.llvm_value import LlvmValue

_VECTORS_PER_ROUND = 4  # of depth: more instructions than that make LLVM slow, and nothing faster


def emit_scores_in_place(head: Head, tile: QueryTile) -> None:
    """Store the scores of all blocks of keys; keys past the last repeat it."""
    w, lanes = head.writer, head.lanes
    whole = w.binary("and", head.keys, i64(-lanes))

    def block(key: LlvmValue) -> None:
        _emit_block(head, tile, key, key_rows_from(head, key))

    def rest(key: LlvmValue) -> None:
        _emit_block(head, tile, key, key_rows(head, key))

    for_each(w, ZERO, whole, lanes, block)
    for_each(w, whole, head.keys, lanes, rest)
    start_maxima(head)
    emit_masked(head, tile, ZERO, head.keys)


def _emit_block(head: Head, tile: QueryTile, key: LlvmValue, rows: Sequence[LlvmValue]) -> None:
    """The scores of one block of keys for all queries of the tile."""
    w, statement = head.writer, head.statement

    def query(number: LlvmValue) -> None:
        first = head.address(
            statement.q, statement.q_index, statement.query, w.add(tile.first, number),
            statement.depth,
        )  # fmt: skip
        ahead = keys_ahead(head, rows[0], number, _vectors_per_round(head))
        scores = combined(w, _products(head, first, rows, ahead), partial(w.binary, "fadd"))
        w.store(scores, w.offset(head.score_row(number), key, "float"))

    for_each(w, ZERO, tile.valid, 1, query, nonempty=True)


def _vectors_per_round(head: Head) -> int:
    vectors = head.statement.depth_extent // head.lanes
    return next(n for n in range(min(vectors, _VECTORS_PER_ROUND), 0, -1) if vectors % n == 0)


def _products(
    head: Head, query: LlvmValue, rows: Sequence[LlvmValue], ahead: KeysAhead | None
) -> Operands:
    """One accumulator for each key: lane i has the sum over the elements i, i + lanes, .. of depth.
    Key after key, as they lie: what comes in order is fetched by the hardware."""
    w, lanes, depth = head.writer, head.lanes, head.statement.depth_extent
    step = _vectors_per_round(head)

    def some(start: LlvmValue, sums: Operands) -> Operands:
        carried = list(sums)
        places = [w.add(start, i64(number * lanes)) for number in range(step)]
        queries = [w.load(w.offset(query, at, "float"), "float", lanes) for at in places]
        for place, row in enumerate(rows):
            for number, (at, q) in enumerate(zip(places, queries, strict=True)):
                k = w.load(w.offset(row, at, "float"), "float", lanes)
                carried[place] = w.fma(q, k, carried[place])
                if ahead is not None:
                    ahead.fetch(start, place * step + number)
        return tuple(carried)

    start = (zeros("float", lanes),) * len(rows)
    if step * lanes == depth:
        return some(ZERO, start)
    return w.loop(ZERO, i64(depth), step * lanes, start, some)
