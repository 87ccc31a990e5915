"""Reductions: the loops that carry a result.

In: a ``Reduce`` and the context. Out: instructions, the result as a local. Not done here: how two
results combine (``combine``).

``Reduce(lanes=True)`` deals whole vectors in turn to its partial results (8, 4 or 1 by the cost of
the body), the vectors after the last full turn and the masked rest to the first one; partials
combine as a balanced tree, then lanes by halving. The order depends on extent and lanes only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ingot_compiler.codegen.emit.combine import Combiner
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.control import multiple_below, values_if
from ingot_compiler.codegen.emit.convert import emit_cast
from ingot_compiler.codegen.emit.extent import (
    integer_extent,
    loop_extent,
    refuse_nested_lanes,
)
from ingot_compiler.codegen.emit.lanes import tail_mask
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64
from ingot_compiler.codegen.emit.statement import emit_open
from ingot_compiler.codegen.emit.value import emit_value
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.types import FLOATS
from ingot_compiler.lowering.loops.loop_values import Apply, Local, Value
from ingot_compiler.lowering.loops.program import Let, Reduce
from ingot_runtime.lazy_dataclass import dataclass

_CHEAP = frozenset((
    "add", "sub", "mul", "neg", "abs", "max", "min", "relu", "select", "cast",
    "less", "less_equal", "equal", "logical_and", "logical_or", "logical_not",
))  # fmt: skip
# Costs (cheap functions of one round) up to which 8 and 4 partial results are kept.
_EIGHT_COST_MAX = 6
_FOUR_COST_MAX = 24
_HEAVY_COST = 12


@dataclass(frozen=True, slots=True)
class _Product:
    """``factors`` of what a sum adds, computed behind so many statements of its body."""

    behind: int
    factors: tuple[Value, ...]


def emit_reduce(context: EmitContext, statement: Reduce) -> None:
    """Write the reduction and name its result."""
    if statement.lanes:
        refuse_nested_lanes(context, statement.variable)
        result = _over_lanes(context, statement)
    elif statement.unroll:
        result = _unrolled(context, statement)
    else:
        (result,) = sums_in_step(context, statement, [{}])
    context.define(statement.name, result, statement.dtype)


def _combiner(context: EmitContext, statement: Reduce) -> Combiner:
    return Combiner(context.writer, statement.function, statement.dtype)


def _start(context: EmitContext, statement: Reduce) -> LlvmValue:
    """The identity, for each lane of an enclosing vector loop."""
    return _combiner(context, statement).identity(context.vector.lanes if context.vector else 0)


def _unrolled(context: EmitContext, statement: Reduce) -> LlvmValue:
    total = _start(context, statement)
    count = integer_extent(context, statement.extent, f"unrolled reduction {statement.name}")
    if statement.function in ("max", "min") and statement.dtype in FLOATS and count > 2:
        rounds = [_round(context, statement, number, total) for number in range(count)]
        return _combiner(context, statement).extreme(rounds)
    for number in range(count):
        total = _round(context, statement, number, total)
    return total


def is_in_order(statement: Reduce) -> bool:
    """Whether a reduction is one loop, of which each round adds to the same result."""
    return not statement.lanes and not statement.unroll


def sums_in_step(
    context: EmitContext, statement: Reduce, scopes: Sequence[Mapping[str, int]]
) -> Operands:
    """The results of a reduction under several values of variables that its extent does not know:
    one loop, of which each round adds to all of them."""

    def body(index: LlvmValue, carried: Operands) -> Operands:
        totals: list[LlvmValue] = []
        for bound, total in zip(scopes, carried, strict=True):
            with context.scope():
                context.bind(bound)
                totals.append(_round(context, statement, index, total))
        return tuple(totals)

    start, extent = _start(context, statement), loop_extent(context, statement.extent)
    return context.writer.loop(ZERO, extent, 1, (start,) * len(scopes), body)


def _round(
    context: EmitContext, statement: Reduce, index: LlvmValue | int, total: LlvmValue
) -> LlvmValue:
    with context.scope():
        context.bind({statement.variable: index})
        return _accumulate(context, statement, total)


def _accumulate(context: EmitContext, statement: Reduce, total: LlvmValue) -> LlvmValue:
    """Run the body, then combine its value with ``total``."""
    product = _product(context, statement)
    emit_open(context, statement.body if product is None else statement.body[: product.behind])
    w = context.writer
    if product is not None:
        factors = (emit_value(context, factor).operand for factor in product.factors)
        left, right = (w.splat(factor, total.lanes) for factor in factors)
        return w.fma(left, right, total)
    typed = emit_value(context, statement.value)
    operand = w.splat(emit_cast(w, typed.operand, typed.dtype, statement.dtype), total.lanes)
    is_extreme = statement.function in ("max", "min")
    if statement.unroll and is_extreme and total == _start(context, statement):
        return operand  # nothing is beyond what it starts at
    return _combiner(context, statement).pair(total, operand)


def _product(context: EmitContext, statement: Reduce) -> _Product | None:
    """The product that a sum adds, where the target adds it by one instruction; None if there is
    none."""
    if statement.function != "sum" or statement.dtype not in FLOATS or not context.target.has_fma:
        return None
    value, behind = statement.value, len(statement.body)
    last = statement.body[-1] if statement.body else None
    if isinstance(last, Let) and isinstance(value, Local) and value.name == last.name:
        value, behind = last.value, behind - 1
    match value:
        case Apply("mul", factors, dtype) if dtype == statement.dtype:
            return _Product(behind, factors)
        case _:
            return None


# ---- over lanes ----------------------------------------------------------------------------------


def _over_lanes(context: EmitContext, statement: Reduce) -> LlvmValue:
    w, lanes, combiner = context.writer, context.lanes, _combiner(context, statement)
    count, extent = _partial_count(statement), loop_extent(context, statement.extent)
    while extent.integer is not None and count > 1 and extent.integer < lanes * count:
        count //= 2  # no partial results that nothing is added to
    turns, whole = multiple_below(w, extent, lanes * count), multiple_below(w, extent, lanes)

    def turn(index: LlvmValue, carried: Operands) -> Operands:
        return tuple(
            _vector(context, statement, w.add(index, i64(lanes * number)), total)
            for number, total in enumerate(carried)
        )

    start = (combiner.identity(lanes),) * count
    partials = w.loop(ZERO, turns, lanes * count, start, turn)
    first = w.loop(turns, whole, lanes, partials[:1], turn) if count > 1 else partials
    first = _with_rest(context, statement, first, whole, extent)
    return combiner.lanes(combiner.partials((*first, *partials[1:])))


def _with_rest(
    context: EmitContext,
    statement: Reduce,
    first: Operands,
    whole: LlvmValue,
    extent: LlvmValue,
) -> Operands:
    """The first partial result, with the masked vector behind the last whole one."""
    w = context.writer

    def rest() -> Operands:
        mask = tail_mask(w, whole, extent, context.lanes)
        return (_vector(context, statement, whole, first[0], mask),)

    if whole.integer is None or extent.integer is None:
        return values_if(w, w.compare("slt", whole, extent), first, rest)
    return rest() if whole.integer < extent.integer else first


def _vector(
    context: EmitContext,
    statement: Reduce,
    index: LlvmValue,
    total: LlvmValue,
    mask: LlvmValue | None = None,
) -> LlvmValue:
    """Combine one vector of iterations with ``total``, which inactive lanes keep."""
    with context.scope():
        context.vectorize(statement.variable, index, mask)
        result = _accumulate(context, statement, total)
    return result if mask is None else context.writer.select(mask, result, total)


def _partial_count(statement: Reduce) -> int:
    """How many partial results a reduction over lanes keeps; depends on the program alone."""
    if any(not isinstance(inner, Let) for inner in statement.body):
        return 1
    values = [statement.value, *(inner.value for inner in statement.body if isinstance(inner, Let))]
    cost = sum(
        1 if function in _CHEAP else _HEAVY_COST
        for value in values
        for function in _functions(value)
    )
    return 8 if cost <= _EIGHT_COST_MAX else 4 if cost <= _FOUR_COST_MAX else 1


def _functions(value: Value) -> Iterator[str]:
    if isinstance(value, Apply):
        yield value.function
        for argument in value.arguments:
            yield from _functions(argument)
