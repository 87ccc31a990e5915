"""Repacking of keys and values of one attention head into scratch.

In: ``Head``. Out: loops that fill its ``packed_keys`` and ``packed_values``. Not done here: when to
repack (``attention``).

Keys are transposed into panels: square blocks through registers where depth is contiguous, gathers
otherwise. Keys past the last repeat the last one: their scores are never used.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ingot_compiler.codegen.emit.blocks.attention.attention_head import Head
from ingot_compiler.codegen.emit.blocks.shuffles import transposed
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lanes import (
    all_lanes,
    known_tail_mask,
    lane_numbers,
    load_lanes,
)
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64, zeros
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.sizes.symbol_terms import coefficient


def pack_keys(head: Head) -> None:
    """Fill the panels of keys."""
    end = emit_index(head.context, head.statement.keys)
    for_each(head.writer, ZERO, end, head.lanes, partial(pack_key_block, head))


def pack_key_block(head: Head, key: LlvmValue) -> None:
    """Fill the columns of as many keys as there are lanes, from ``key`` on."""
    column = key_column(head, key)
    if coefficient(head.statement.k_index, head.statement.depth) == 1:
        _emit_transposed(head, key, column)
    else:
        _emit_gathered(head, key, column)


def key_column(head: Head, key: LlvmValue) -> LlvmValue:
    """Where the first element of packed keys from ``key`` on lies."""
    w, layout = head.writer, head.layout
    # key = panel * panel_keys + vector * lanes; a panel takes depth * panel_keys elements.
    panel_start = w.sub(key, w.binary("urem", key, i64(layout.panel)))
    inside = w.sub(key, panel_start)
    place = w.add(w.mul(panel_start, i64(head.statement.depth_extent)), inside)
    return w.offset(head.packed_keys, place, "float")


def _last_key(head: Head) -> LlvmValue:
    return head.writer.sub(emit_index(head.context, head.statement.keys), i64(1))


def _emit_transposed(head: Head, key: LlvmValue, column: LlvmValue) -> None:
    """Transpose blocks of ``lanes`` keys x ``lanes`` of depth."""
    lanes, depth = head.lanes, head.statement.depth_extent
    rows, rest = key_rows(head, key), depth % lanes

    def whole(start: LlvmValue) -> None:
        transpose_block(head, rows, column, start, lanes)

    for_each(head.writer, ZERO, i64(depth - rest), lanes, whole)
    if rest:
        transpose_block(head, rows, column, i64(depth - rest), rest)


def key_rows(head: Head, key: LlvmValue) -> list[LlvmValue]:
    """Pointers to the keys from `key` on, one for each lane."""
    w, statement = head.writer, head.statement
    last = _last_key(head)
    rows: list[LlvmValue] = []
    for number in range(head.lanes):
        here = w.intrinsic("smin", w.add(key, i64(number)), last)
        rows.append(
            head.address(statement.k, statement.k_index, statement.key, here, statement.depth)
        )
    return rows


def key_rows_from(head: Head, key: LlvmValue) -> list[LlvmValue]:
    """Pointers to as many keys as there are lanes, all of which exist."""
    w, statement = head.writer, head.statement
    pitch = coefficient(statement.k_index, statement.key)
    if pitch is None:
        raise InternalError(
            "attention index is not linear in the key", why=f"k index {statement.k_index}"
        )
    first = head.address(statement.k, statement.k_index, statement.key, key, statement.depth)
    step = i64(pitch) if isinstance(pitch, int) else emit_index(head.context, pitch)
    return [w.offset(first, w.mul(i64(number), step), "float") for number in range(head.lanes)]


def transpose_block(
    head: Head, rows: Sequence[LlvmValue], column: LlvmValue, start: LlvmValue, count: int
) -> None:
    """Store `count` elements of depth from `start` on of all rows."""
    w, lanes, panel = head.writer, head.lanes, head.layout.panel
    mask = known_tail_mask(count, lanes)
    block = [load_lanes(w, w.offset(row, start, "float"), "float", lanes, mask) for row in rows]
    target = w.offset(column, w.mul(start, i64(panel)), "float")
    for number, value in enumerate(transposed(w, block)[:count]):
        w.store(value, w.offset(target, i64(number * panel), "float"))


def _emit_gathered(head: Head, key: LlvmValue, column: LlvmValue) -> None:
    """Gather ``lanes`` keys for every element of depth."""
    w, lanes, statement = head.writer, head.lanes, head.statement
    pitch = coefficient(statement.k_index, statement.key)
    if pitch is None:
        raise InternalError(
            "attention index is not linear in the key", why=f"k index {statement.k_index}"
        )
    numbers = w.binary("add", w.splat(key, lanes), lane_numbers(lanes))
    numbers = w.intrinsic("smin", numbers, w.splat(_last_key(head), lanes))
    steps = _times(head, numbers, pitch)

    def element(depth: LlvmValue) -> None:
        base = head.address(statement.k, statement.k_index, statement.depth, depth, statement.key)
        values = w.gather(w.offset(base, steps, "float"), all_lanes(lanes), "float")
        w.store(values, w.offset(column, w.mul(depth, i64(head.layout.panel)), "float"))

    for_each(w, ZERO, i64(statement.depth_extent), 1, element)


def _times(head: Head, numbers: LlvmValue, pitch: Dim) -> LlvmValue:
    w = head.writer
    return w.binary("mul", numbers, w.splat(emit_index(head.context, pitch), numbers.lanes))


# ---- values --------------------------------------------------------------------------------------


def pack_values(head: Head) -> LlvmValue:
    """Fill the rows of values; return an i1: whether all are finite."""
    w = head.writer

    (seen,) = pack_value_rows(head, ZERO, emit_index(head.context, head.statement.keys))
    bad = w.any_lane(w.compare("uno", seen, seen))
    return w.binary("xor", bad, constant(1, "i1"))


def pack_value_rows(head: Head, first: LlvmValue, end: LlvmValue) -> Operands:
    """Copy the values of some keys; return a vector with a NaN where they are not finite."""

    def row(key: LlvmValue, seen: Operands) -> Operands:
        return _pack_row(head, key, seen)

    return head.writer.loop(first, end, 1, (zeros("float", head.lanes),), row)


def _pack_row(head: Head, key: LlvmValue, seen: Operands) -> Operands:
    """Copy the values of one key; ``seen`` becomes NaN where they are not finite."""
    w, lanes, statement = head.writer, head.lanes, head.statement
    source, target = value_place(head, key)
    mask = known_tail_mask(statement.value_extent, lanes)
    end = i64(statement.value_extent // lanes * lanes)

    def vector(start: LlvmValue, seen: Operands, mask: LlvmValue | None = None) -> Operands:
        value = _load_values(head, source, start, mask)
        w.store(value, w.offset(target, start, "float"))
        return (_seen(w, seen[0], value),)

    seen = w.loop(ZERO, end, lanes, seen, vector)
    return seen if mask is None else vector(end, seen, mask)


def value_place(head: Head, key: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """Where the values of a key lie, and where their copy does."""
    w, statement = head.writer, head.statement
    source = head.address(statement.v, statement.v_index, statement.key, key, statement.value)
    packed = w.mul(key, i64(head.layout.value_padded))
    return source, w.offset(head.packed_values, packed, "float")


def _load_values(head: Head, row: LlvmValue, start: LlvmValue, mask: LlvmValue | None) -> LlvmValue:
    """Load the values from `start` on, 0 outside of `mask`."""
    w, lanes, statement = head.writer, head.lanes, head.statement
    pitch = coefficient(statement.v_index, statement.value)
    if pitch is None:
        raise InternalError(
            "attention index is not linear in the value", why=f"v index {statement.v_index}"
        )
    if pitch == 1:
        return load_lanes(w, w.offset(row, start, "float"), "float", lanes, mask)
    steps = _times(head, w.binary("add", w.splat(start, lanes), lane_numbers(lanes)), pitch)
    return w.gather(w.offset(row, steps, "float"), mask or all_lanes(lanes), "float")


def _seen(w: Writer, seen: LlvmValue, value: LlvmValue) -> LlvmValue:
    """Add 0 * value: stays 0 until an infinity or NaN comes by."""
    return w.binary("fadd", seen, w.binary("fmul", value, zeros("float", value.lanes)))
