"""Fused attention of one head: scores of a few queries at a time in L1, softmax, product with the
values.

In: an ``Attention`` and the emission context of its kernel. Out: code in the kernel's function.
Not done here: repacking (``attention_pack``), which keys of a cache are read at all
(``attention_seen``), scores, softmax and results of one tile of queries
(``attention_scores``, ``attention_softmax``, ``attention_values``).

The group whose keys and values lie repacked in scratch is remembered over the kernel's index loop,
in a stack slot. Keys that causality hides from a whole tile are skipped, unless a value is not
finite: 0 * inf must stay NaN, as in the unfused form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ingot_compiler.codegen.emit.blocks.attention.attention_head import (
    Head,
    QueryTile,
    attention_head,
)
from ingot_compiler.codegen.emit.blocks.attention.attention_in_place import emit_scores_in_place
from ingot_compiler.codegen.emit.blocks.attention.attention_overlap import overlapped_keys
from ingot_compiler.codegen.emit.blocks.attention.attention_pack import pack_keys, pack_values
from ingot_compiler.codegen.emit.blocks.attention.attention_pack_overlap import (
    emit_packing_scores,
    packs_beside_scores,
)
from ingot_compiler.codegen.emit.blocks.attention.attention_prefetch import prefetch_next_group
from ingot_compiler.codegen.emit.blocks.attention.attention_scores import emit_scores
from ingot_compiler.codegen.emit.blocks.attention.attention_seen import emit_seen_keys
from ingot_compiler.codegen.emit.blocks.attention.attention_softmax import (
    emit_exponentials,
    emit_softmax,
    finish_maxima,
    finish_sums,
)
from ingot_compiler.codegen.emit.blocks.attention.attention_values import emit_values
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.ir.dims import dim_min
from ingot_compiler.lowering.loops.program import Attention

_NO_GROUP = -(1 << 63)


def emit_attention(context: EmitContext, statement: Attention) -> None:
    """Emit one unit: repack if the group is new, then its queries tile by tile."""
    head = attention_head(context, statement)
    w, is_new = head.writer, constant(0, "i1")
    if not statement.in_place:
        is_new = _emit_repacking(head)
    elif statement.mask is not None:
        head = replace(head, keys=emit_seen_keys(head))
    scores = emit_scores_in_place if statement.in_place else emit_scores
    left = dim_min(statement.query_block, statement.queries - statement.query_start)
    count, start = emit_index(context, left), emit_index(context, statement.query_start)

    def queries(number: LlvmValue) -> QueryTile:
        first = w.add(start, number)
        valid = w.intrinsic("smin", i64(head.layout.rows), w.sub(count, number))
        return QueryTile(first, valid, _key_limit(head, first, valid))

    def tile(number: LlvmValue) -> None:
        here = queries(number)
        prefetch_next_group(head, here.first, head.layout.rows)
        scores(head, here)
        emit_softmax(head, here)
        emit_values(head, here)

    if head.layout.tiles == 1:
        for_each(w, ZERO, count, head.layout.rows, tile)
    else:
        _emit_pipeline(head, is_new, count, queries)


def _emit_pipeline(
    head: Head,
    is_new: LlvmValue,
    count: LlvmValue,
    queries: Callable[[LlvmValue], QueryTile],
) -> None:
    """The scores of the next tile stand before the results of this one, its exponentials beside or
    behind them: no phase waits for the one that is written before it."""
    w, rows = head.writer, head.layout.rows

    def scores_at(offset: LlvmValue) -> Head:
        return replace(head, scores=w.offset(head.scores, offset, "float"))

    def turn(number: LlvmValue, offsets: Operands) -> Operands:
        this, following = map(scores_at, offsets)
        here, after = queries(number), w.add(number, i64(rows))
        begun, more = w.compare("sge", number, ZERO), w.compare("slt", after, count)

        def scores() -> None:
            tile = queries(after)
            if not head.layout.overlaps:
                prefetch_next_group(head, tile.first, rows)
            _emit_scores(following, tile, w.binary("and", is_new, w.compare("slt", number, ZERO)))
            finish_maxima(following)

        def exponentials() -> None:
            tile = queries(after)
            if head.layout.overlaps:
                prefetch_next_group(head, tile.first, rows)
            emit_exponentials(following, tile.limit, tile.valid)

        w.if_then(more, scores)
        if head.layout.overlaps:
            w.if_else(
                w.binary("and", begun, more),
                lambda: _emit_overlapped(this, here, following, queries(after)),
                lambda: w.if_else(begun, lambda: emit_values(this, here), exponentials),
            )
        else:
            w.if_then(begun, lambda: emit_values(this, here))
            w.if_then(more, exponentials)
        w.if_then(more, lambda: finish_sums(following))
        return offsets[::-1]

    others = w.mul(head.keys_padded, i64(rows))
    w.loop(i64(-rows), count, rows, (others, ZERO), turn)


def _emit_scores(head: Head, tile: QueryTile, is_first: LlvmValue) -> None:
    """The scores of a tile. The first tile of a head packs it, if nothing has done so before."""

    def later() -> None:
        emit_scores(head, tile)

    if packs_beside_scores(head):
        head.writer.if_else(is_first, lambda: emit_packing_scores(head, tile), later)
    else:
        later()


def _emit_overlapped(this: Head, here: QueryTile, following: Head, tile: QueryTile) -> None:
    """The results of this tile beside exponentials of the next one, then those that are left."""
    emit_values(this, here, (following, tile))
    begun = overlapped_keys(this, here.limit)
    if begun.integer is None or begun.integer != tile.limit.integer:
        emit_exponentials(following, tile.limit, i64(this.layout.rows), begun)


def _emit_repacking(head: Head) -> LlvmValue:
    """Repack keys and values where the group is not that of the last unit, which is returned: i1;
    or leave it to the first tile."""
    w = head.writer
    last = w.slot("i64")
    with w.at(w.entry):
        w.store(i64(_NO_GROUP), last)
    group = emit_index(head.context, head.statement.group)
    is_new = w.compare("ne", group, w.load(last, "i64"))
    w.store(group, last)

    def repack() -> None:
        pack_keys(head)
        if head.packs_values:
            finite = pack_values(head)
            w.store(w.select(finite, ZERO, head.keys), head.keys_least)

    if not packs_beside_scores(head):
        w.if_then(is_new, repack)
    return is_new


def _key_limit(head: Head, first: LlvmValue, valid: LlvmValue) -> LlvmValue:
    """The number of keys that the tile's last query sees, or that must be read all the same."""
    if not head.statement.causal or head.statement.in_place:  # nobody looked whether all are finite
        return head.keys
    w = head.writer
    seen = w.add(w.add(first, valid), emit_index(head.context, head.statement.causal_offset))
    seen = w.intrinsic("smin", seen, head.keys)
    return w.intrinsic("smax", seen, w.load(head.keys_least, "i64"))
