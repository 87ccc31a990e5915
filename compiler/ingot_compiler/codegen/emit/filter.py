"""Filters: the elements of a range that are kept, stored one behind the other.

In: a ``Filter`` and the context. Out: instructions, the index behind the last that is kept. Not
done here: loops that keep nothing (``for_loop``).

Where the target moves the lanes that are kept beside each other by one instruction, whole vectors
are filtered. Elsewhere each value is stored, and stays if it is kept: a branch on the data would be
a guess. How many are kept goes from round to round in a register.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.control import multiple_below, values_if
from ingot_compiler.codegen.emit.convert import MEMORY, emit_cast, to_memory
from ingot_compiler.codegen.emit.extent import loop_extent, refuse_nested_lanes
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lanes import lane_numbers, tail_mask
from ingot_compiler.codegen.emit.memory import emit_address
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64
from ingot_compiler.codegen.emit.statement import emit_open
from ingot_compiler.codegen.emit.value import emit_value
from ingot_compiler.codegen.llvm_value import LlvmValue, element_bits, poison
from ingot_compiler.lowering.loops.program import Filter, Store

_FEATURES = frozenset(("avx512f", "avx512vl"))
_LANE_BITS_MIN = 32  # of a lane that is moved


def emit_filter(context: EmitContext, statement: Filter) -> None:
    """Write the filter and name its result."""
    refuse_nested_lanes(context, statement.variable)
    with context.scope():
        extent = loop_extent(context, statement.extent)
        bounds = [emit_index(context, dim) for dim in (statement.start, statement.limit)]
        moves_lanes = context.target.team_units == 1 and _features(context) >= _FEATURES
        emit = _over_lanes if moves_lanes else _in_order
        end = emit(context, statement, extent, *bounds)
    context.bind({statement.name: end})


def _features(context: EmitContext) -> frozenset[str]:
    return frozenset(context.target.features)


def _in_order(
    context: EmitContext, statement: Filter, extent: LlvmValue, start: LlvmValue, limit: LlvmValue
) -> LlvmValue:
    w = context.writer

    def turn(index: LlvmValue, carried: Operands) -> Operands:
        (at,) = carried
        with context.scope():
            context.bind({statement.variable: index})
            emit_open(context, statement.body)
            holds = emit_value(context, statement.condition).operand
            w.if_then(w.compare("slt", at, limit), lambda: _store_at(context, statement, at))
            return (w.add(at, w.convert("zext", holds, "i64")),)

    return w.loop(ZERO, extent, 1, (start,), turn)[0]


def _store_at(context: EmitContext, statement: Filter, at: LlvmValue) -> None:
    w = context.writer
    with context.scope():
        for store in statement.stores:
            element = MEMORY[context.dtypes[store.buffer]]
            value = _in_memory(context, store)
            w.store(value, w.offset(emit_address(context, store.buffer, store.index), at, element))


def _in_memory(context: EmitContext, store: Store) -> LlvmValue:
    w, dtype = context.writer, context.dtypes[store.buffer]
    typed = emit_value(context, store.value)
    return to_memory(w, emit_cast(w, typed.operand, typed.dtype, dtype), dtype)


# ---- over lanes ----------------------------------------------------------------------------------


def _over_lanes(
    context: EmitContext, statement: Filter, extent: LlvmValue, start: LlvmValue, limit: LlvmValue
) -> LlvmValue:
    w, lanes = context.writer, context.lanes
    whole = multiple_below(w, extent, lanes)

    def turn(index: LlvmValue, carried: Operands) -> Operands:
        return (_vector(context, statement, index, carried[0], limit, None),)

    at = w.loop(ZERO, whole, lanes, (start,), turn)

    def rest() -> Operands:
        mask = tail_mask(w, whole, extent, lanes)
        return (_vector(context, statement, whole, at[0], limit, mask),)

    return values_if(w, w.compare("slt", whole, extent), at, rest)[0]


def _vector(
    context: EmitContext,
    statement: Filter,
    index: LlvmValue,
    at: LlvmValue,
    limit: LlvmValue,
    mask: LlvmValue | None,
) -> LlvmValue:
    """Filter one vector; ``mask``: the iterations that there are."""
    w, lanes = context.writer, context.lanes
    with context.scope():
        context.vectorize(statement.variable, index, mask)
        emit_open(context, statement.body)
        holds = w.splat(emit_value(context, statement.condition).operand, lanes)
        holds = holds if mask is None else w.binary("and", holds, mask)

        def kept() -> None:
            for store in statement.stores:
                value = w.splat(_in_memory(context, store), lanes)
                with context.scope():
                    context.vector = None
                    place = emit_address(context, store.buffer, store.index)
                _store_kept(context, place, value, holds, at, limit)

        w.if_then(w.any_lane(holds), kept)
    return w.add(at, _count(context, holds))


def _count(context: EmitContext, mask: LlvmValue) -> LlvmValue:
    """How many lanes of a mask hold, as an i64."""
    w = context.writer
    return w.intrinsic("ctpop", w.define("zext", (w.as_lanes(mask, f"i{mask.lanes}"),), "i64"))


def _store_kept(
    context: EmitContext,
    place: LlvmValue,
    value: LlvmValue,
    mask: LlvmValue,
    at: LlvmValue,
    limit: LlvmValue,
) -> None:
    """Store the lanes where a mask holds from element ``at`` on, by registers."""
    w, element = context.writer, value.element
    if element_bits(element) < _LANE_BITS_MIN:
        value = w.convert("zext", value, "i32")
    size = min(value.lanes, context.target.vector_bits // element_bits(value.element))
    for first in range(0, value.lanes, size):
        part, own = (_part(context, whole, first, size) for whole in (value, mask))
        packed = w.intrinsic("experimental.vector.compress", part, own, poison(part.element, size))
        count = _count(context, own)
        left = w.intrinsic("smax", w.intrinsic("smin", count, w.sub(limit, at)), i64(0))
        numbers = w.splat(w.convert("trunc", left, "i32"), size)
        is_kept = w.compare("ult", lane_numbers(size, "i32"), numbers)
        w.masked_store(w.convert("trunc", packed, element), w.offset(place, at, element), is_kept)
        at = w.add(at, count)


def _part(context: EmitContext, value: LlvmValue, first: int, size: int) -> LlvmValue:
    if value.lanes == size:
        return value
    return context.writer.shuffle(value, range(first, first + size))
