"""The scores of fused attention: queries times keys.

In: ``Head``, ``QueryTile``, keys packed in panels. Out: scores in scratch, and the greatest ones of
each query. Not done here: masks (``attention_maxima``), the sum itself (``multiply``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.backends.host.emit.control import for_each, multiple_below
from ingot_compiler.backends.host.emit.index import emit_index
from ingot_compiler.backends.host.emit.kernels.accumulators import (
    AccumulatorTile,
    Axis,
    Pointers,
    SumLoops,
    side_by_side,
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


def emit_scores(head: Head, tile: QueryTile) -> None:
    """Store the scores of all panels that hold a key below the limit; rows past the last, and keys
    past the last one, repeat it."""
    w, layout = head.writer, head.layout
    queries = _query_pointers(head, tile)
    start_maxima(head)

    def panel(vectors: int) -> Callable[[LlvmValue], None]:
        return lambda key: _emit_panel(head, tile, queries, key, vectors)

    whole = multiple_below(w, head.keys, layout.panel)
    for_each(w, ZERO, w.intrinsic("smin", tile.limit, whole), layout.panel, panel(layout.vectors))
    # The last panel holds fewer vectors: as many as are known, else one after the other.
    known = head.keys.integer
    left = 1 if known is None else -(-(known % layout.panel) // head.lanes)
    if left:
        for_each(w, whole, tile.limit, left * head.lanes, panel(left))


def _emit_panel(
    head: Head, tile: QueryTile, queries: Pointers, key: LlvmValue, vectors: int
) -> None:
    """Store and compare the scores of some vectors of keys, all in one panel."""
    w, layout, depth = head.writer, head.layout, head.statement.depth_extent
    inside = w.binary("urem", key, i64(layout.panel)) if vectors < layout.vectors else ZERO
    start = w.add(w.mul(w.sub(key, inside), i64(depth)), inside)
    b = side_by_side(w.offset(head.packed_keys, start, "float"), vectors, head.lanes)
    sums = emit_sum(
        AccumulatorTile(w, queries, b, head.lanes, F32),
        SumLoops((Axis(depth, _depth_step(head), layout.panel),)),
    )
    rows = [sums[start : start + vectors] for start in range(0, len(sums), vectors)]
    for number, row in enumerate(rows):
        place = w.offset(head.score_row(i64(number)), key, "float")
        for vector, value in enumerate(row):
            w.store(value, w.offset(place, i64(vector * head.lanes), "float"))
    _finish_panel(head, tile, key, rows)


def _finish_panel(head: Head, tile: QueryTile, key: LlvmValue, rows: Sequence[Operands]) -> None:
    """Take the greatest scores: of the registers, if no key of the panel is hidden from a query."""
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
