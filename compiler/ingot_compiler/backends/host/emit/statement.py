"""Statements to code: names, stores, loops, reductions.

In: statements and the context. Out: instructions. Not done here: contractions, attention
(``kernels``), which register in ``SPECIAL`` of ``kernel``.

A vector loop runs whole vectors, wider ones first where all elements are narrow, then one masked
vector for the rest. ``Reduce(lanes=True)`` deals whole vectors in turn to its partial results (8, 4
or 1 by the cost of the body), the vectors after the last full turn and the masked rest to the first
one; partials combine as a balanced tree, then lanes by halving. The order depends on extent and
lanes only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.backends.host.emit.context import EmitContext, Typed
from ingot_compiler.backends.host.emit.convert import emit_cast
from ingot_compiler.backends.host.emit.index import emit_index
from ingot_compiler.backends.host.emit.lane_index import lane_stride
from ingot_compiler.backends.host.emit.loop_lanes import wide_lanes
from ingot_compiler.backends.host.emit.memory import emit_store
from ingot_compiler.backends.host.emit.reduce import (
    combine,
    combine_lanes,
    combine_partials,
    identity,
    multiply_add,
    partial_count,
)
from ingot_compiler.backends.host.emit.value import emit_value
from ingot_compiler.backends.host.writer import LlvmValue, constant
from ingot_compiler.ir.dims import Dim, dim_max, substitute
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.ranges import is_nonnegative
from ingot_compiler.lowering.loops import (
    Apply,
    Constant,
    For,
    If,
    Let,
    LetIndex,
    Reduce,
    Require,
    Statement,
    Store,
    Value,
)
from ingot_runtime.format import abi


def emit_statements(context: EmitContext, body: Sequence[Statement]) -> None:
    """Write a statement list; names that it makes end with it."""
    with context.scope():
        _emit_open(context, body)


def _emit_open(context: EmitContext, body: Sequence[Statement]) -> None:
    """Write statements whose names stay in scope (the value of a ``Reduce`` follows)."""
    for statement in body:
        match statement:
            case Let(name, value):
                context.locals[name] = emit_value(context, value)
            case LetIndex():
                _emit_let_index(context, statement)
            case Store(buffer, index, value):
                typed = emit_value(context, value)
                wanted = context.dtypes[buffer]
                emit_store(
                    context,
                    buffer,
                    index,
                    emit_cast(context.writer, typed.operand, typed.dtype, wanted),
                )
            case For():
                _emit_for(context, statement)
            case Reduce():
                context.locals[statement.name] = Typed(
                    _emit_reduce(context, statement), statement.dtype
                )
            case Require():
                _emit_require(context, statement)
            case If():
                _emit_if(context, statement)
            case _:
                context.special[type(statement)](context, statement)


def _emit_require(context: EmitContext, statement: Require) -> None:
    """Note the number where an active lane's condition does not hold: a branch that is never taken
    costs next to nothing."""
    w = context.writer
    holds = emit_value(context, statement.condition).operand
    broken = w.binary("xor", holds, constant(1, "i1", holds.lanes))
    active = context.active()
    if active is not None:
        broken = w.binary("and", w.splat(broken, active.lanes), active)
    report = context.reports()
    w.if_then(
        w.any_lane(broken),
        lambda: w.store(constant(abi.RC_REQUIREMENT + statement.number, "i32"), report),
    )


def _emit_if(context: EmitContext, statement: If) -> None:
    holds = context.writer.extract(emit_value(context, statement.condition).operand, 0)
    context.writer.if_then(holds, lambda: emit_statements(context, statement.body))


def _emit_let_index(context: EmitContext, statement: LetIndex) -> None:
    typed = emit_value(context, statement.value)
    operand = emit_cast(context.writer, typed.operand, typed.dtype, "i64")
    context.bind({statement.name: operand}, signed=not _is_clamped(statement.value))


def _is_clamped(value: Value) -> bool:
    """Whether the form shows that the number is >= 0: ``max(x, 0)``."""
    match value:
        case Apply("max", arguments, _):
            return any(
                isinstance(argument, Constant) and argument.value >= 0 for argument in arguments
            )
        case _:
            return False


# ---- loops ---------------------------------------------------------------------------------------


def _integer_extent(context: EmitContext, extent: Dim, what: str) -> int:
    number = substitute(extent, context.constants)
    if not isinstance(number, int):
        raise InternalError(f"{what} has an extent that is no integer", why=f"extent {extent}")
    return number


def _loop_extent(context: EmitContext, extent: Dim) -> LlvmValue:
    """The number of iterations, at least 0; the same for all lanes of an enclosing vector loop."""
    if lane_stride(context, extent) != 0:
        raise InternalError("a loop's extent differs between lanes", why=f"extent {extent}")
    known = substitute(extent, context.constants)
    return emit_index(
        context, known if is_nonnegative(known, context.is_signed) else dim_max(known, 0)
    )


def _emit_for(context: EmitContext, statement: For) -> None:
    if statement.kind == "unroll":
        for number in range(
            _integer_extent(context, statement.extent, f"unrolled loop {statement.variable}")
        ):
            with context.scope():
                context.bind({statement.variable: number})
                emit_statements(context, statement.body)
        return
    extent = _loop_extent(context, statement.extent)

    def step(index: LlvmValue, mask: LlvmValue | None, lanes: int) -> None:
        with context.scope():
            if lanes:
                context.vectorize(statement.variable, index, mask, lanes=lanes)
            else:
                context.bind({statement.variable: index})
            emit_statements(context, statement.body)

    def serial(index: LlvmValue, _: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        step(index, None, 0)
        return ()

    if statement.kind == "serial":
        context.writer.loop(constant(0, "i64"), extent, 1, (), serial)
        return
    _refuse_nested_lanes(context, statement.variable)
    over_vectors(context, extent, step, wide_lanes(context, statement.variable, statement.body))


def _refuse_nested_lanes(context: EmitContext, variable: str) -> None:
    if context.vector is not None:
        raise InternalError(
            f"vector loop {variable} stands inside vector loop {context.vector.name}"
        )


def over_vectors(
    context: EmitContext,
    extent: LlvmValue,
    step: Callable[[LlvmValue, LlvmValue | None, int], None],
    wide: int = 0,
) -> None:
    """Run ``step(first, mask, lanes)`` for whole vectors (mask None), then once for the rest, if
    there is one.

    ``wide``: lanes of the vectors to begin with, a multiple of the usual ones.
    """
    w, lanes = context.writer, context.lanes
    done, whole = constant(0, "i64"), _multiple_below(context, extent, lanes)

    def run(first: LlvmValue, last: LlvmValue, count: int) -> None:
        def body(index: LlvmValue, _: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
            step(index, None, count)
            return ()

        w.loop(first, last, count, (), body)

    if wide > lanes:
        begun, done = done, _multiple_below(context, extent, wide)
        run(begun, done, wide)
    run(done, whole, lanes)
    if extent.integer is None:
        left = w.compare("slt", whole, extent)
        w.if_then(left, lambda: step(whole, context.tail_mask(whole, extent), lanes))
    elif extent.integer > max(whole.integer or 0, 0):
        step(whole, context.tail_mask(whole, extent), lanes)


def _multiple_below(context: EmitContext, extent: LlvmValue, step: int) -> LlvmValue:
    if extent.integer is not None:
        return constant(max(extent.integer, 0) // step * step, "i64")
    return context.writer.binary("and", extent, constant(-step, "i64"))


# ---- reductions ----------------------------------------------------------------------------------


def _emit_reduce(context: EmitContext, statement: Reduce) -> LlvmValue:
    if statement.lanes:
        _refuse_nested_lanes(context, statement.variable)
        return _reduce_lanes(context, statement)
    start = identity(
        statement.function, statement.dtype, context.vector.lanes if context.vector else 0
    )
    if statement.unroll:
        count = _integer_extent(context, statement.extent, f"unrolled reduction {statement.name}")
        for number in range(count):
            with context.scope():
                context.bind({statement.variable: number})
                start = _accumulate(context, statement, start)
        return start

    def body(index: LlvmValue, carried: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        with context.scope():
            context.bind({statement.variable: index})
            return (_accumulate(context, statement, carried[0]),)

    return context.writer.loop(
        constant(0, "i64"), _loop_extent(context, statement.extent), 1, (start,), body
    )[0]


def _accumulate(context: EmitContext, statement: Reduce, total: LlvmValue) -> LlvmValue:
    """Run the body, then combine its value; inactive lanes keep ``total``."""
    _emit_open(context, statement.body)
    w = context.writer
    result = multiply_add(context, statement, total)
    if result is None:
        typed = emit_value(context, statement.value)
        operand = w.splat(emit_cast(w, typed.operand, typed.dtype, statement.dtype), total.lanes)
        result = combine(w, statement.function, statement.dtype, total, operand)
    mask = (
        context.vector.mask
        if context.vector and context.vector.name == statement.variable
        else None
    )
    return result if mask is None else w.select(mask, result, total)


def _reduce_lanes(context: EmitContext, statement: Reduce) -> LlvmValue:
    w, lanes = context.writer, context.lanes
    count = partial_count(statement)
    extent = _loop_extent(context, statement.extent)
    partials: tuple[LlvmValue, ...] = (
        identity(statement.function, statement.dtype, lanes),
    ) * count

    def step(index: LlvmValue, total: LlvmValue, mask: LlvmValue | None) -> LlvmValue:
        with context.scope():
            context.vectorize(statement.variable, index, mask)
            return _accumulate(context, statement, total)

    def turn(index: LlvmValue, carried: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        numbers = (w.add(index, constant(lanes * number, "i64")) for number in range(count))
        return tuple(
            step(number, total, None) for number, total in zip(numbers, carried, strict=True)
        )

    def single(index: LlvmValue, carried: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        return (step(index, carried[0], None),)

    turns, whole = (
        _multiple_below(context, extent, lanes * count),
        _multiple_below(context, extent, lanes),
    )
    partials = w.loop(constant(0, "i64"), turns, lanes * count, partials, turn)
    if count > 1:
        partials = (*w.loop(turns, whole, lanes, partials[:1], single), *partials[1:])
    first = _reduce_rest(context, whole, extent, partials[0], step)
    total = combine_partials(w, statement.function, statement.dtype, (first, *partials[1:]))
    return combine_lanes(w, statement.function, statement.dtype, total)


def _reduce_rest(
    context: EmitContext,
    whole: LlvmValue,
    extent: LlvmValue,
    total: LlvmValue,
    step: Callable[[LlvmValue, LlvmValue, LlvmValue | None], LlvmValue],
) -> LlvmValue:
    """The masked vector behind the last whole one."""
    w = context.writer
    if whole.integer is not None and extent.integer is not None:
        return (
            step(whole, total, context.tail_mask(whole, extent))
            if whole.integer < extent.integer
            else total
        )
    before, rest, done = w.label, w.new_label("rest"), w.new_label("done")
    w.branch_if(w.compare("slt", whole, extent), rest, done)
    w.start(rest)
    result = step(whole, total, context.tail_mask(whole, extent))
    latch = w.label
    w.branch(done)
    w.start(done)
    return w.phi(((total, before), (result, latch)))
