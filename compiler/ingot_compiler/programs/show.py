"""A short text of an expression, for errors and reasons.

In: an expression. Out: one line, cut where it is deep. Not done here: a text that can be read back
(``print_program``).
"""

from __future__ import annotations

from ingot_compiler.programs.expressions import (
    Construct,
    DeviceCopy,
    Expression,
    FunctionCall,
    FunctionLiteral,
    GlobalReference,
    IfElse,
    KernelCall,
    LetIn,
    MatchData,
    NewReference,
    OnDevice,
    OperatorCall,
    Projection,
    ReadReference,
    Tuple,
    Variable,
    WriteReference,
)

_DEPTH_MAX = 3


def show(expression: Expression, depth: int = _DEPTH_MAX) -> str:
    """``add(%a, neg(...))``."""
    if isinstance(expression, Variable):
        return f"%{expression.name}"
    if isinstance(expression, GlobalReference):
        return f"@{expression.name}"
    if isinstance(expression, FunctionLiteral):
        return f"fn({', '.join(show(parameter) for parameter in expression.parameters)})"
    if depth == 0:
        return "..."
    operands = ", ".join(show(operand, depth - 1) for operand in expression.operands)
    if isinstance(expression, FunctionCall):
        rest = ", ".join(show(argument, depth - 1) for argument in expression.arguments)
        return f"{show(expression.callee, depth - 1)}({rest})"
    if isinstance(expression, Projection):
        return f"{operands}.{expression.index}"
    return f"{_head(expression)}({operands})"


def _head(expression: Expression) -> str:
    match expression:
        case OperatorCall():
            return expression.operator
        case KernelCall():
            return f"@{expression.kernel}"
        case Construct():
            return expression.constructor
        case OnDevice():
            return _annotation(expression)
        case DeviceCopy():
            return "device_copy"
        case LetIn():
            return f"let %{expression.variable.name} "
        case IfElse():
            return "if"
        case MatchData():
            return "match"
        case NewReference():
            return "ref"
        case ReadReference():
            return "read"
        case WriteReference():
            return "write"
        case Tuple():
            return ""
        case _:
            return type(expression).__name__


def _annotation(annotation: OnDevice) -> str:
    if annotation.is_fixed:
        return "fixed"
    if annotation.constrain_body:
        return "on_device"
    return "result_on" if annotation.constrain_result else "free"
