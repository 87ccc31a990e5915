"""The results of fused attention: weights times values, and their epilogue.

In: ``Head``, ``QueryTile``, the rows of the softmax and packed values in scratch. Out: what the
epilogue stores. Values that are read in place have the pitch of their keys. Not done here: the sum
itself (``multiply``, ``attention_overlap``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.codegen.emit.blocks.attention.attention_head import F32, Head, QueryTile
from ingot_compiler.codegen.emit.blocks.attention.attention_overlap import (
    OverlappedPanel,
    sum_beside_exponentials,
)
from ingot_compiler.codegen.emit.blocks.epilogue import (
    Columns,
    Results,
    Rows,
    emit_epilogue,
    is_light,
)
from ingot_compiler.codegen.emit.blocks.products.accumulators import (
    AccumulatorTile,
    Axis,
    Pointers,
    Step,
    SumLoops,
    hidden,
    side_by_side,
    widened,
)
from ingot_compiler.codegen.emit.blocks.products.multiply import emit_sum
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lanes import known_tail_mask
from ingot_compiler.codegen.emit.operands import ZERO, i64
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.kernels.tiles import lanes_of_rest


def emit_values(
    head: Head, tile: QueryTile, following: tuple[Head, QueryTile] | None = None
) -> None:
    """Multiply the weights by the values, panel by panel, and run the epilogue. Between the
    multiply-adds stand exponentials of the ``following`` tile."""
    w, layout, extent = head.writer, head.layout, head.statement.value_extent
    panels = -(-extent // layout.value_panel)
    rest = extent % layout.value_panel
    end = i64(extent - rest)

    def columns(first: LlvmValue, count: int) -> Columns:
        vectors, mask = -(-count // head.lanes), known_tail_mask(count, head.lanes)
        return Columns(head.statement.value, first, vectors, head.lanes, mask)

    def panel(first: LlvmValue, count: int) -> None:
        number = w.binary("udiv", first, i64(layout.value_panel))
        overlapped = (
            OverlappedPanel(following[0], following[1].first, number, panels) if following else None
        )
        _emit_panel(head, tile, columns(first, count), overlapped)

    for_each(w, ZERO, end, layout.value_panel, lambda first: panel(first, layout.value_panel))
    if rest:
        panel(end, rest)


def _emit_panel(
    head: Head, tile: QueryTile, columns: Columns, overlapped: OverlappedPanel | None
) -> None:
    """Emit one tile of results: some vectors of values for all queries."""
    w, layout = head.writer, head.layout
    weights, last = _weights(head), _last_lanes(head, columns)
    values, pitch = _values(head)
    b = side_by_side(w.offset(values, columns.first, "float"), columns.vectors, head.lanes)
    products = AccumulatorTile(
        w, weights, b, head.lanes, F32,
        last_lanes=last, a_again=(hidden(w, weights),) if last else (),
    )  # fmt: skip
    axis = Axis(tile.limit, 1, pitch)
    if overlapped is None:
        sums = emit_sum(products, SumLoops((axis,)))
    else:
        sums = sum_beside_exponentials(overlapped, products, axis, tile.limit)
    sums = widened(w, sums, head.lanes)
    factors = [
        w.splat(w.load(head.factor(i64(row)), "float"), head.lanes) for row in range(layout.rows)
    ]
    scaled = [
        _scaled(head, value, factors[number // columns.vectors])
        for number, value in enumerate(sums)
    ]
    _emit_results(head, tile, columns, scaled)


def _weights(head: Head) -> Pointers:
    """The rows of weights: one pointer for all where their distance is known."""
    rows, pitch = range(head.layout.rows), head.layout.keys_padded
    if isinstance(pitch, int):
        return tuple((head.scores, row * pitch) for row in rows)
    return tuple((head.score_row(i64(row)), 0) for row in rows)


def _last_lanes(head: Head, columns: Columns) -> int:
    """The lanes of the last vector, if fewer than of others; 0 where rows have a pointer each."""
    rest = head.statement.value_extent % head.lanes
    if columns.mask is None or not isinstance(head.layout.keys_padded, int):
        return 0
    lanes = lanes_of_rest(rest, "f32", 1, head.writer.target)
    return 0 if lanes == head.lanes else lanes


def _emit_results(head: Head, tile: QueryTile, columns: Columns, sums: Sequence[LlvmValue]) -> None:
    """Run the epilogue: straight from the registers where all rows are there and that is not much
    code."""
    w, statement, count = head.writer, head.statement, head.layout.rows

    def epilogue(valid: LlvmValue | None) -> None:
        rows = Rows(statement.query, tile.first, count, valid)
        results = Results(rows, columns, statement.accumulator, "f32", statement.epilogue)
        emit_epilogue(head.context, results, sums)

    if is_light(statement.epilogue, len(sums)):
        is_whole = w.compare("eq", tile.valid, i64(count))
        w.if_else(is_whole, lambda: epilogue(None), lambda: epilogue(tile.valid))
    else:
        epilogue(tile.valid)


def _values(head: Head) -> tuple[LlvmValue, Step]:
    """Where the values of the first key lie, and how far those of the next one are from them."""
    statement = head.statement
    if head.packs_values:
        return head.packed_values, head.layout.value_padded
    first = head.address(statement.v, statement.v_index, statement.key, ZERO, statement.value)
    pitch = coefficient(statement.v_index, statement.key)
    if pitch is None:
        raise InternalError(
            "attention index is not linear in the key", why=f"v index {statement.v_index}"
        )
    return first, pitch if isinstance(pitch, int) else emit_index(head.context, pitch)


def _scaled(head: Head, value: LlvmValue, factor: LlvmValue) -> LlvmValue:
    """Value / sum; a row without weights is 0 if asked for, whatever its values are."""
    w = head.writer
    product = w.binary("fmul", value, factor)
    if not head.statement.nan_to_zero:
        return product
    zero = constant(0.0, "float", value.lanes)
    return w.select(w.compare("oeq", factor, zero), zero, product)
