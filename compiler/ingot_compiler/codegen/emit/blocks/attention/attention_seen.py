"""How many keys are read under a mask: those up to the last one that it does not rule out.

In: ``Head`` of attention whose keys are read where they lie. Out: a number of keys. Not done here:
what they score (``attention_in_place``).

A cache of fixed length has rows that nobody has written yet, behind those that count. A mask rules a
key out by -inf, or by numbers near the lowest of f32, next to which no score counts. A query of which
the mask leaves no key reads all of them: the lowest number makes equal weights.
"""

from __future__ import annotations

from functools import partial

from ingot_compiler.codegen.emit.blocks.attention.attention_head import Head
from ingot_compiler.codegen.emit.blocks.attention.attention_maxima import greater, only_keys
from ingot_compiler.codegen.emit.blocks.lane_trees import combined
from ingot_compiler.codegen.emit.convert import emit_cast
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lanes import tail_mask
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64
from ingot_compiler.codegen.emit.value import emit_value
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.lowering.loops.nested import used_symbols

_RULED_OUT = -1e37


def emit_seen_keys(head: Head) -> LlvmValue:
    """The keys that some query of the unit reads, which all read: i64."""
    w, statement = head.writer, head.statement
    rows = 1 if statement.query not in used_symbols(statement.mask) else statement.query_block
    start = emit_index(head.context, statement.query_start)

    def row(number: LlvmValue, most: Operands) -> Operands:
        with head.context.scope():
            head.context.bind({statement.query: w.add(start, number)})
            return (w.intrinsic("smax", most[0], _seen_by_one(head)),)

    (seen,) = w.loop(ZERO, i64(rows), 1, (ZERO,), row, nonempty=True)
    return seen


def _seen_by_one(head: Head) -> LlvmValue:
    """The keys that one query reads: whole vectors of them, or all."""
    w, lanes = head.writer, head.lanes
    none = constant(0.0, "float", lanes)

    def vector(key: LlvmValue, last: LlvmValue, tail: LlvmValue | None) -> Operands:
        mask = only_keys(head, _mask(head, key, tail), tail)
        behind = w.binary("udiv", w.add(key, i64(lanes)), i64(lanes))
        number = w.splat(w.convert("sitofp", behind, "float"), lanes)  # of vectors: exact
        ruled_out = w.compare("ole", mask, constant(_RULED_OUT, "float", lanes))
        return (w.select(ruled_out, last, number),)

    def whole(key: LlvmValue, last: Operands) -> Operands:
        return vector(key, last[0], None)

    def rest(key: LlvmValue, last: Operands) -> Operands:
        return vector(key, last[0], tail_mask(w, key, head.keys, lanes))

    end = w.binary("and", head.keys, i64(-lanes))
    of_whole = w.loop(ZERO, end, lanes, (none,), whole)
    (found,) = w.loop(end, head.keys, lanes, of_whole, rest)
    w.store(combined(w, [found], partial(greater, w)), head.row_vector(ZERO))
    vectors = w.convert("fptosi", w.load(head.row_vector(ZERO), "float"), "i64")
    seen = w.intrinsic("smin", w.mul(vectors, i64(lanes)), head.keys)
    return w.select(w.compare("eq", vectors, ZERO), head.keys, seen)


def _mask(head: Head, key: LlvmValue, tail: LlvmValue | None) -> LlvmValue:
    w, context, statement = head.writer, head.context, head.statement
    assert statement.mask is not None
    with context.scope():
        context.vectorize(statement.key, key, tail, lanes=head.lanes)
        mask = emit_value(context, statement.mask)
        return w.splat(emit_cast(w, mask.operand, mask.dtype, "f32"), head.lanes)
