"""Loops of a program: serial, unrolled, over vectors.

In: a ``For`` and the context. Out: instructions. Not done here: loops with a result (``reduce``),
the lanes of wide vectors (``loop_lanes``).

A vector loop runs whole vectors, wider ones first where all elements are narrow, then one masked
vector for the rest; downwards, all of this in the opposite order.
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.control import for_each, if_below, multiple_below
from ingot_compiler.codegen.emit.extent import (
    integer_extent,
    loop_extent,
    refuse_nested_lanes,
)
from ingot_compiler.codegen.emit.lanes import iterations_left, mask_of, tail_mask
from ingot_compiler.codegen.emit.loop_lanes import wide_lanes
from ingot_compiler.codegen.emit.operands import ZERO, i64
from ingot_compiler.codegen.emit.reduce import is_in_order, sums_in_step
from ingot_compiler.codegen.emit.statement import emit_statements
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.lowering.loops.program import For, Reduce

_LANES_MIN = 4  # of a vector for the rest of a loop


def emit_for(context: EmitContext, statement: For) -> None:
    """Write the loop and, in it, its body."""
    if statement.kind == "unroll":
        _unrolled(context, statement)
        return
    extent = loop_extent(context, statement.extent)
    if statement.kind == "serial":
        w = context.writer
        for_each(w, ZERO, extent, 1, lambda index: _emit_round(context, statement, index))
    else:
        refuse_nested_lanes(context, statement.variable)
        _over_vectors(context, statement, extent)


def _unrolled(context: EmitContext, statement: For) -> None:
    """Write the copies of the body, of which the sums that it begins with are one loop: none waits
    for another, and what they share is loaded once."""
    loop = f"unrolled loop {statement.variable}"
    copies = range(integer_extent(context, statement.extent, loop))
    first, *rest = statement.body
    if not isinstance(first, Reduce) or not is_in_order(first):
        for number in copies:
            _emit_round(context, statement, number)
        return
    scopes = [{statement.variable: number} for number in copies]
    for bound, total in zip(scopes, sums_in_step(context, first, scopes), strict=True):
        with context.scope():
            context.bind(bound)
            context.define(first.name, total, first.dtype)
            emit_statements(context, rest)


def _emit_round(context: EmitContext, statement: For, index: LlvmValue | int) -> None:
    with context.scope():
        context.bind({statement.variable: index})
        emit_statements(context, statement.body)


def _over_vectors(context: EmitContext, statement: For, extent: LlvmValue) -> None:
    """Run whole vectors and the masked rest, if there is one."""
    w, lanes = context.writer, context.lanes
    wide = wide_lanes(context, statement.variable, extent, statement.body)
    whole = multiple_below(w, extent, lanes)
    done = multiple_below(w, extent, wide) if wide > lanes else ZERO
    is_down = statement.kind == "vector_down"

    def vectors(start: LlvmValue, end: LlvmValue, step: int) -> None:
        def turn(index: LlvmValue) -> None:
            first = w.sub(w.add(start, w.sub(end, i64(step))), index) if is_down else index
            _emit_vector(context, statement, first, step)

        for_each(w, start, end, step, turn)

    def rest() -> None:
        ends = whole.integer, extent.integer
        if ends[0] is not None and ends[1] is not None:
            count = ends[1] - ends[0]
            own = _lanes_of_rest(count, lanes)
            mask = tail_mask(w, whole, extent, own) if count < own else None
            _emit_vector(context, statement, whole, own, mask, count=count)
            return
        left = iterations_left(w, whole, extent)
        _emit_vector(context, statement, whole, lanes, mask_of(w, range(lanes), left), left=left)

    parts: tuple[Callable[[], None], ...] = (
        lambda: vectors(ZERO, done, wide),
        lambda: vectors(done, whole, lanes),
        lambda: if_below(w, whole, extent, rest),
    )
    for part in parts[::-1] if is_down else parts:
        part()


def _lanes_of_rest(count: int, lanes: int) -> int:
    """The lanes of a vector for the last ``count`` iterations: all, or half of them, a quarter, ..
    where these are enough. A store that leaves lanes out keeps the next load waiting for it, where
    both are of whole vectors and the lanes left out are those of the next row."""
    while lanes > _LANES_MIN and count <= lanes // 2:
        lanes //= 2
    return lanes


def _emit_vector(
    context: EmitContext,
    statement: For,
    first: LlvmValue,
    lanes: int,
    mask: LlvmValue | None = None,
    count: int | None = None,
    left: LlvmValue | None = None,
) -> None:
    with context.scope():
        context.vectorize(statement.variable, first, mask, lanes=lanes, count=count, left=left)
        emit_statements(context, statement.body)
