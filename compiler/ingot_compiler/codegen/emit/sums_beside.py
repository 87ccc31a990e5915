"""The loops in lanes that take several registers at once: those in which every lane has its own
sum.

In: a loop's body. Out: an answer. Not done here: how many registers (``loop_lanes``).

An addition waits for the one before. Sums of other columns do not, and what lies in rows is read in
longer pieces. The order in which a lane adds stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.ir.traits import Trait
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, FromIndex, Load, Local, Value
from ingot_compiler.lowering.loops.program import For, If, Let, Reduce, Statement, Store

_ROUNDS_ONCE = frozenset(op for op, core in OPS_BY_NAME.items() if Trait.EXACT in core.traits)


def has_sums_beside(context: EmitContext, variable: str, body: Sequence[Statement]) -> bool:
    """Whether a body has reductions of f32, and nothing beside them but functions that round once
    of what lies together in lanes or is the same in all."""
    statements = list(_nested(body))
    reduces = any(isinstance(statement, Reduce) for statement in statements)
    return reduces and all(_is_plain(context, variable, statement) for statement in statements)


def _nested(body: Sequence[Statement]) -> Iterator[Statement]:
    """All statements but loops out of lanes and conditions, whose own ones are among them."""
    for statement in body:
        match statement:
            case For(kind="serial" | "unroll") | If():
                yield from _nested(statement.body)
            case Reduce():
                yield from (statement, *_nested(statement.body))
            case _:
                yield statement


def _is_plain(context: EmitContext, variable: str, statement: Statement) -> bool:
    match statement:
        case Let(_, value):
            return _is_cheap(context, variable, value)
        case Reduce(value=value, lanes=False, unroll=False):
            return _is_cheap(context, variable, value)
        case Store(buffer, index, value):
            lies_together = coefficient(index, variable) == 1
            is_here = lies_together and context.dtypes[buffer] == "f32"
            return is_here and _is_cheap(context, variable, value)
        case _:
            return False


def _is_cheap(context: EmitContext, variable: str, value: Value) -> bool:
    match value:
        case Load(buffer, index):
            return context.dtypes[buffer] == "f32" and coefficient(index, variable) in (0, 1)
        case Constant(_, dtype) | Local(_, dtype):
            return dtype == "f32"
        case FromIndex(index, dtype):
            return dtype == "f32" and coefficient(index, variable) == 0
        case Apply(function, arguments, "f32"):
            operands = (_is_cheap(context, variable, argument) for argument in arguments)
            return function in _ROUNDS_ONCE and all(operands)
        case _:
            return False
