"""The scores of fused attention: queries times keys.

In: ``Head``, ``QueryTile``, keys packed in panels. Out: scores in scratch, and the greatest ones of
each query. Not done here: which keys a tile takes (``attention_chunks``), masks
(``attention_maxima``), the sum itself (``multiply``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ingot_compiler.codegen.emit.blocks.attention.attention_chunks import (
    Chunk,
    key_chunks,
    key_vectors_of,
)
from ingot_compiler.codegen.emit.blocks.attention.attention_head import F32, Head, QueryTile
from ingot_compiler.codegen.emit.blocks.attention.attention_maxima import (
    emit_masked,
    masked_row,
    masks_in_registers,
    only_keys,
    start_maxima,
    take_maximum,
)
from ingot_compiler.codegen.emit.blocks.products.accumulators import (
    AccumulatorTile,
    Axis,
    Pointers,
    SumLoops,
    hidden,
    widened,
)
from ingot_compiler.codegen.emit.blocks.products.multiply import emit_sum
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lanes import tail_mask
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.sizes.symbol_terms import coefficient


def emit_scores(head: Head, tile: QueryTile) -> None:
    """Store the scores of all keys below the limit, -inf for lanes past the last key; rows past the
    last repeat it."""
    queries = query_pointers(head, tile)
    start_maxima(head)
    first = ZERO
    for chunk, end in key_chunks(head, tile.limit):
        for_each(
            head.writer, first, end, chunk.keys, partial(emit_chunk, head, tile, queries, chunk)
        )
        first = end


def emit_chunk(
    head: Head, tile: QueryTile, queries: Pointers, chunk: Chunk, key: LlvmValue
) -> None:
    """Store and compare the scores of some vectors of keys from ``key`` on."""
    w, layout, depth = head.writer, head.layout, head.statement.depth_extent
    products = AccumulatorTile(
        w, queries, key_vectors_of(head, chunk, key), chunk.lanes, F32,
        last_lanes=chunk.last_lanes, a_again=(hidden(w, queries),) if chunk.last_lanes else (),
    )  # fmt: skip
    sums = emit_sum(products, SumLoops((Axis(depth, depth_step(head), layout.panel),)))
    sums = widened(w, sums, head.lanes)
    count = chunk.vectors_in_all
    rows = [sums[start : start + count] for start in range(0, len(sums), count)]
    finish_chunk(head, tile, chunk, key, rows)


def finish_chunk(
    head: Head, tile: QueryTile, chunk: Chunk, key: LlvmValue, rows: Sequence[Operands]
) -> None:
    """Store the scores and take the greatest: of the registers, if masks are not much code."""
    w, end = head.writer, head.writer.add(key, i64(len(rows[0]) * head.lanes))
    last = w.sub(end, i64(head.lanes))
    tail = tail_mask(w, last, tile.limit, head.lanes) if chunk.has_tail else None

    def masked() -> None:
        if masks_in_registers(head, len(rows) * chunk.vectors_in_all):
            _store_masked(head, tile, key, rows, tail)
        else:
            _store(head, key, rows)
            emit_masked(head, tile, key, w.intrinsic("smin", end, tile.limit))

    def plain() -> None:
        kept = [_only_keys(head, row, tail) for row in rows]
        _store(head, key, kept)
        for number, row in enumerate(kept):
            take_maximum(head, i64(number), row)

    if head.scales:
        masked()
    elif head.statement.causal:
        offset = emit_index(head.context, head.statement.causal_offset)
        seen_by_all = w.add(w.add(tile.first, offset), i64(1))
        w.if_else(w.compare("sle", end, seen_by_all), plain, masked)
    else:
        plain()


def _store(head: Head, key: LlvmValue, rows: Sequence[Operands]) -> None:
    for number, row in enumerate(rows):
        _store_row(head, number, key, row)


def _store_row(head: Head, number: int, key: LlvmValue, row: Operands) -> None:
    w = head.writer
    place = w.offset(head.score_row(i64(number)), key, "float")
    for vector, value in enumerate(row):
        w.store(value, w.offset(place, i64(vector * head.lanes), "float"))


def _store_masked(
    head: Head,
    tile: QueryTile,
    key: LlvmValue,
    rows: Sequence[Operands],
    tail: LlvmValue | None,
) -> None:
    """Mask the scores in registers; rows past the last one repeat it."""
    w, lanes = head.writer, head.lanes
    keys = [w.add(key, i64(number * lanes)) for number in range(len(rows[0]))]
    for number, row in enumerate(rows):
        masked = masked_row(head, _query(head, tile, number), keys, row, tail)
        kept = _only_keys(head, masked, tail)
        _store_row(head, number, key, kept)
        take_maximum(head, i64(number), kept)


def _only_keys(head: Head, row: Operands, tail: LlvmValue | None) -> Operands:
    """A row of vectors, the last of which has no keys outside of ``tail``."""
    return (*row[:-1], only_keys(head, row[-1], tail))


def _query(head: Head, tile: QueryTile, number: int) -> LlvmValue:
    """The query of a row; of rows past the last one, that one."""
    w = head.writer
    last = w.sub(w.add(tile.first, tile.valid), i64(1))
    return w.intrinsic("smin", w.add(tile.first, i64(number)), last)


def query_pointers(head: Head, tile: QueryTile) -> Pointers:
    """Where the queries of a tile lie; rows past the last one repeat it."""
    statement = head.statement
    pointers: list[tuple[LlvmValue, int]] = []
    for number in range(head.layout.rows):
        query = _query(head, tile, number)
        pointer = head.address(
            statement.q, statement.q_index, statement.query, query, statement.depth
        )
        pointers.append((pointer, 0))
    return tuple(pointers)


def depth_step(head: Head) -> int | LlvmValue:
    """How far apart a query's elements are."""
    step = coefficient(head.statement.q_index, head.statement.depth)
    if step is None:
        raise InternalError(
            "attention index is not linear in depth", why=f"q index {head.statement.q_index}"
        )
    return step if isinstance(step, int) else emit_index(head.context, step)
