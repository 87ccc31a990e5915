"""The scores of fused attention: queries times keys.

In: ``Head``, ``QueryTile``, keys packed in panels. Out: scores in scratch, and the greatest ones of
each query. Not done here: masks (``attention_maxima``), the sum itself (``multiply``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ingot_compiler.backends.host.attention_layout import key_vectors
from ingot_compiler.backends.host.emit.control import for_each, multiple_below
from ingot_compiler.backends.host.emit.index import emit_index
from ingot_compiler.backends.host.emit.kernels.accumulators import (
    AccumulatorTile,
    Axis,
    Pointers,
    SumLoops,
    side_by_side,
    widened,
)
from ingot_compiler.backends.host.emit.kernels.attention_head import F32, Head, QueryTile
from ingot_compiler.backends.host.emit.kernels.attention_maxima import (
    emit_masked,
    start_maxima,
    take_maximum,
)
from ingot_compiler.backends.host.emit.kernels.multiply import emit_sum
from ingot_compiler.backends.host.emit.operands import ZERO, Operands, i64
from ingot_compiler.backends.host.llvm_value import LlvmValue
from ingot_compiler.ir.dims import coefficient
from ingot_compiler.ir.errors import InternalError
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _Chunk:
    """What one tile of scores takes: some vectors of keys, all in one panel."""

    vectors: int
    lanes: int

    @property
    def keys(self) -> int:
        """Keys of all vectors."""
        return self.vectors * self.lanes


def emit_scores(head: Head, tile: QueryTile) -> None:
    """Store the scores of all keys below the limit; rows past the last, and keys past the last one,
    repeat it."""
    queries = _query_pointers(head, tile)
    start_maxima(head)
    first = ZERO
    for chunk, end in _chunks(head, tile.limit):
        for_each(
            head.writer, first, end, chunk.keys, partial(_emit_chunk, head, tile, queries, chunk)
        )
        first = end


def _chunks(head: Head, limit: LlvmValue) -> list[tuple[_Chunk, LlvmValue]]:
    """Chunks, and where the keys end that are taken by such: whole panels; of the last one as many
    vectors as there are where that is known, else one after the other."""
    layout, lanes = head.layout, head.lanes
    whole = multiple_below(head.writer, limit, layout.panel)
    panels, one = _Chunk(layout.vectors, lanes), _Chunk(1, lanes)
    if limit.integer is None or whole.integer is None:
        return [(panels, whole), (one, limit)]
    left = key_vectors(limit.integer - whole.integer, head.writer.target)
    end = i64(whole.integer + left * lanes)
    return [(panels, whole), (_Chunk(max(left, 1), lanes), end), (_Chunk(1, lanes // 2), limit)]


def _emit_chunk(
    head: Head, tile: QueryTile, queries: Pointers, chunk: _Chunk, key: LlvmValue
) -> None:
    """Store and compare the scores of some vectors of keys from ``key`` on."""
    w, layout, depth = head.writer, head.layout, head.statement.depth_extent
    inside = w.binary("urem", key, i64(layout.panel)) if chunk.keys < layout.panel else ZERO
    start = w.add(w.mul(w.sub(key, inside), i64(depth)), inside)
    b = side_by_side(w.offset(head.packed_keys, start, "float"), chunk.vectors, chunk.lanes)
    sums = emit_sum(
        AccumulatorTile(w, queries, b, chunk.lanes, F32),
        SumLoops((Axis(depth, _depth_step(head), layout.panel),)),
    )
    sums = widened(w, sums, head.lanes)
    rows = [sums[start : start + chunk.vectors] for start in range(0, len(sums), chunk.vectors)]
    for number, row in enumerate(rows):
        place = w.offset(head.score_row(i64(number)), key, "float")
        for vector, value in enumerate(row):
            w.store(value, w.offset(place, i64(vector * head.lanes), "float"))
    _finish_chunk(head, tile, key, rows)


def _finish_chunk(head: Head, tile: QueryTile, key: LlvmValue, rows: Sequence[Operands]) -> None:
    """Take the greatest scores: of the registers, if no key of the chunk is hidden from a query."""
    w, end = head.writer, head.writer.add(key, i64(len(rows[0]) * head.lanes))

    def masked() -> None:
        emit_masked(head, tile, key, w.intrinsic("smin", end, tile.limit))

    def plain() -> None:
        for number, row in enumerate(rows):
            take_maximum(head, i64(number), row)

    if head.scales:
        masked()
    elif head.statement.causal:
        offset = emit_index(head.context, head.statement.causal_offset)
        seen_by_all = w.add(w.add(tile.first, offset), i64(1))
        w.if_else(w.compare("sle", end, seen_by_all), plain, masked)
    else:
        plain()


def _query_pointers(head: Head, tile: QueryTile) -> Pointers:
    w, statement = head.writer, head.statement
    last = w.sub(w.add(tile.first, tile.valid), i64(1))
    pointers: list[tuple[LlvmValue, int]] = []
    for number in range(head.layout.rows):
        query = w.intrinsic("smin", w.add(tile.first, i64(number)), last)
        pointer = head.address(
            statement.q, statement.q_index, statement.query, query, statement.depth
        )
        pointers.append((pointer, 0))
    return tuple(pointers)


def _depth_step(head: Head) -> int | LlvmValue:
    """How far apart a query's elements are."""
    step = coefficient(head.statement.q_index, head.statement.depth)
    if step is None:
        raise InternalError(
            "attention index is not linear in depth", why=f"q index {head.statement.q_index}"
        )
    return step if isinstance(step, int) else emit_index(head.context, step)
