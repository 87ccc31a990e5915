"""Repacks the keys and values of a new head between the multiply-adds of its first tile's scores.

In: ``Head``, the first ``QueryTile``. Out: packed keys and values, the tile's scores. Not done here:
heads whose first tile must know whether all values are finite, or whose rows are not whole vectors
(``attention_pack``).

Repacking waits for caches and shuffles, multiply-adds for neither. Each block of as many keys as a
vector has lanes is packed beside the scores of the block before. The last block, which may have
fewer, comes first, by itself.
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.codegen.emit.blocks.attention.attention_chunks import Chunk, key_vectors_of
from ingot_compiler.codegen.emit.blocks.attention.attention_head import F32, Head, QueryTile
from ingot_compiler.codegen.emit.blocks.attention.attention_maxima import start_maxima
from ingot_compiler.codegen.emit.blocks.attention.attention_pack import (
    key_column,
    key_rows_from,
    pack_key_block,
    pack_value_rows,
    transpose_block,
    value_place,
)
from ingot_compiler.codegen.emit.blocks.attention.attention_scores import (
    depth_step,
    emit_chunk,
    finish_chunk,
    query_pointers,
)
from ingot_compiler.codegen.emit.blocks.products.accumulators import AccumulatorTile, Axis, Pointers
from ingot_compiler.codegen.emit.blocks.products.multiply import start_of_sums, steps_of_sum
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64
from ingot_compiler.codegen.function_code import Code
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.sizes.symbol_terms import coefficient


def packs_beside_scores(head: Head) -> bool:
    """Whether the first tile of a head packs it: several blocks, in whole vectors."""
    statement, lanes = head.statement, head.lanes
    if not head.layout.overlaps or statement.causal:
        return False
    has_rows = coefficient(statement.k_index, statement.depth) == 1
    is_whole = statement.depth_extent % lanes == 0
    assert isinstance(statement.keys, int)
    return has_rows and is_whole and statement.keys > lanes and _values_match(head)


def _values_match(head: Head) -> bool:
    """Whether values lie as keys do, or are not packed."""
    statement = head.statement
    has_rows = coefficient(statement.v_index, statement.value) == 1
    is_known = isinstance(coefficient(statement.v_index, statement.key), int)
    is_square = statement.value_extent == statement.depth_extent
    return not head.packs_values or (has_rows and is_known and is_square)


def emit_packing_scores(head: Head, tile: QueryTile) -> None:
    """Pack the head, and store the scores of its first tile."""
    w, lanes, keys = head.writer, head.lanes, head.statement.keys
    assert isinstance(keys, int)
    queries = query_pointers(head, tile)
    chunk = Chunk(1, lanes, has_tail=keys % lanes != 0)
    last = (keys - 1) // lanes * lanes
    start_maxima(head)
    pack_key_block(head, i64(last))
    if head.packs_values:
        pack_value_rows(head, i64(last), i64(keys))

    def block(key: LlvmValue, scored: Operands) -> Operands:
        b = key_vectors_of(head, chunk, scored[0])
        products = AccumulatorTile(w, queries, b, lanes, F32)
        sums = _sums_beside_packing(head, products, key)
        finish_chunk(head, tile, chunk, scored[0], [(total,) for total in sums])
        return (key,)

    (scored,) = w.loop(ZERO, i64(last), lanes, (i64(last),), block)
    emit_chunk(head, tile, queries, chunk, scored)


def _sums_beside_packing(head: Head, products: AccumulatorTile, key: LlvmValue) -> Operands:
    """The products of one block of keys; beside them the block from ``key`` on is packed."""
    w, lanes, panel = head.writer, head.lanes, head.layout.panel
    step = depth_step(head)
    rows, column = key_rows_from(head, key), key_column(head, key)
    values = value_place(head, key)

    def turn(start: LlvmValue, sums: Operands) -> Operands:
        of_products: Code = []
        of_packing: Code = []
        with w.at(of_products):
            at = w.mul(start, i64(step) if isinstance(step, int) else step)
            here = replace(
                products,
                a=_moved(w, products.a, at),
                b=_moved(w, products.b, w.mul(start, i64(panel))),
            )
            sums = steps_of_sum(here, Axis(lanes, step, panel), lanes)(ZERO, sums)
        with w.at(of_packing):
            transpose_block(head, rows, column, start, lanes)
            if head.packs_values:
                _copy_column(head, *values, start)
        w.interleave(of_products, of_packing)
        return sums

    end = i64(head.statement.depth_extent)
    return w.loop(ZERO, end, lanes, start_of_sums(products), turn)


def _moved(w: Writer, pointers: Pointers, distance: LlvmValue) -> Pointers:
    """Pointers so much further on. LLVM takes twice as long for a kernel where it may choose how to
    count them."""
    return tuple(
        (w.hidden(w.offset(pointer, distance, "float")), displacement)
        for pointer, displacement in pointers
    )


def _copy_column(head: Head, source: LlvmValue, target: LlvmValue, start: LlvmValue) -> None:
    """Copy one vector of the values of each key of a block, from ``start`` on."""
    w = head.writer
    pitch = coefficient(head.statement.v_index, head.statement.key)
    assert isinstance(pitch, int)
    source, target = (w.offset(place, start, "float") for place in (source, target))
    for number in range(head.lanes):
        value = w.load(w.offset(source, i64(number * pitch), "float"), "float", head.lanes)
        w.store(value, w.offset(target, i64(number * head.layout.value_padded), "float"))
