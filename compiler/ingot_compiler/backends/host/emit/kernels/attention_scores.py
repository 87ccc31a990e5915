"""The scores of fused attention: queries times keys.

In: ``Head``, ``QueryTile``, keys packed in panels. Out: ``scale * q.k`` in scratch. Not done here:
masks (``attention_softmax``), the sum itself (``multiply``).
"""

from __future__ import annotations

from ingot_compiler.backends.host.emit.control import for_each
from ingot_compiler.backends.host.emit.index import emit_index
from ingot_compiler.backends.host.emit.kernels.accumulators import (
    AccumulatorTile,
    Axis,
    Pointers,
    SumLoops,
    side_by_side,
)
from ingot_compiler.backends.host.emit.kernels.attention_head import F32, Head, QueryTile
from ingot_compiler.backends.host.emit.kernels.multiply import emit_sum
from ingot_compiler.backends.host.emit.operands import ZERO, i64
from ingot_compiler.backends.host.llvm_value import LlvmValue, constant
from ingot_compiler.ir.dims import coefficient
from ingot_compiler.ir.errors import InternalError


def emit_scores(head: Head, tile: QueryTile) -> None:
    """Store ``scale * q.k`` for all panels that hold a key below the limit; rows past the last
    repeat it."""
    w, layout, depth = head.writer, head.layout, head.statement.depth_extent
    queries = _query_pointers(head, tile)
    scale = constant(head.statement.scale, "float", head.lanes)

    def panel(key: LlvmValue) -> None:
        first = w.offset(head.packed_keys, w.mul(key, i64(depth)), "float")
        b = side_by_side(first, layout.vectors, head.lanes)
        sums = emit_sum(
            AccumulatorTile(w, queries, b, head.lanes, F32),
            SumLoops((Axis(depth, _depth_step(head), layout.panel),)),
        )
        for number, value in enumerate(sums):
            row, vector = divmod(number, layout.vectors)
            place = w.offset(head.score_row(i64(row)), key, "float")
            scaled = w.binary("fmul", value, scale)
            w.store(scaled, w.offset(place, i64(vector * head.lanes), "float"))

    for_each(w, ZERO, tile.limit, layout.panel, panel)


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
