"""Emits statements: names, stores, conditions; other statements have files of their own.

In: statements and the context. Out: instructions. Not done here: loops (``for_loop``), reductions
(``reduce``), contractions, attention (``kernels``): ``EMITTERS`` of ``kernel`` lists them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.convert import emit_cast
from ingot_compiler.codegen.emit.memory import emit_store
from ingot_compiler.codegen.emit.value import emit_value
from ingot_compiler.codegen.llvm_value import constant
from ingot_compiler.ir.dims import Dim
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Value
from ingot_compiler.lowering.loops.program import If, Let, LetIndex, Require, Statement, Store
from ingot_runtime.format import abi


def emit_statements(context: EmitContext, body: Sequence[Statement]) -> None:
    """Write a statement list; names that it makes end with it."""
    with context.scope():
        emit_open(context, body)


def emit_open(context: EmitContext, body: Sequence[Statement]) -> None:
    """Write statements whose names stay in scope (the value of a ``Reduce`` follows)."""
    for statement in body:
        match statement:
            case Let(name, value):
                context.locals[name] = emit_value(context, value)
            case LetIndex():
                _emit_let_index(context, statement)
            case Store(buffer, index, value):
                _emit_store(context, buffer, index, value)
            case Require():
                _emit_require(context, statement)
            case If():
                _emit_if(context, statement)
            case _:
                context.emitters[type(statement)](context, statement)


def _emit_store(context: EmitContext, buffer: int, index: Dim, value: Value) -> None:
    typed = emit_value(context, value)
    operand = emit_cast(context.writer, typed.operand, typed.dtype, context.dtypes[buffer])
    emit_store(context, buffer, index, operand)


def _emit_require(context: EmitContext, statement: Require) -> None:
    """Note the number where an active lane's condition does not hold.

    A branch that is never taken costs next to nothing.
    """
    w = context.writer
    holds = emit_value(context, statement.condition).operand
    broken = w.binary("xor", holds, constant(1, "i1", holds.lanes))
    active = context.active()
    if active is not None:
        broken = w.binary("and", w.splat(broken, active.lanes), active)
    report, code = context.reports(), constant(abi.RC_REQUIREMENT + statement.number, "i32")
    w.if_then(w.any_lane(broken), lambda: w.store(code, report))


def _emit_if(context: EmitContext, statement: If) -> None:
    holds = context.writer.extract(emit_value(context, statement.condition).operand, 0)
    context.writer.if_then(holds, lambda: emit_statements(context, statement.body))


def _emit_let_index(context: EmitContext, statement: LetIndex) -> None:
    typed = emit_value(context, statement.value)
    operand = emit_cast(context.writer, typed.operand, typed.dtype, "i64")
    byte = typed.operand if typed.dtype == "u8" else None
    signed = byte is None and not _is_clamped(statement.value)
    context.bind({statement.name: operand}, signed=signed, reach=statement.reach, byte=byte)


def _is_clamped(value: Value) -> bool:
    """Whether the form shows that the number is >= 0: ``max(x, 0)``."""
    match value:
        case Apply("max", arguments, _):
            return any(
                isinstance(argument, Constant) and argument.value >= 0 for argument in arguments
            )
        case _:
            return False
