"""Which functions may be the value of an expression, wherever they came from.

In: a program. Out: by expression the function literals that it may be. Not done here: what calls of
them must agree on (``verify_plan``).

A literal flows from where it stands to whatever may read it: through variables, arguments and
results, through the tuples, data values and references that it may be in. Each tuple, data value
and reference stands for all values that its expression makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.programs.expressions import (
    Construct,
    Expression,
    FunctionCall,
    FunctionLiteral,
    GlobalReference,
    IfElse,
    LetIn,
    MatchData,
    NewReference,
    OperatorCall,
    Projection,
    ReadReference,
    Tuple,
    Variable,
    WriteReference,
)
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.walk import post_order, with_devices


def function_flow(program: Program) -> dict[Expression, tuple[FunctionLiteral, ...]]:
    """The literals that each expression may be, in the order in which they were found."""
    flow = _Flow(program)
    for expression in post_order(program.functions.values(), with_devices):
        flow.start(expression)
    flow.run()
    return {
        expression: tuple(one for one in found if isinstance(one, FunctionLiteral))
        for expression, found in flow.found.items()
    }


class _Flow:
    """``found``: by expression the literals, tuples, data values and references that it may be."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.found: dict[Expression, dict[Expression, None]] = {}
        self.readers: dict[Expression, list[Callable[[Expression], None]]] = {}
        self.contents: dict[Expression, Variable] = {}
        self.new: list[tuple[Expression, Expression]] = []

    def run(self) -> None:
        """Tell every reader of every value, until none is new."""
        while self.new:
            expression, value = self.new.pop()
            for tell in tuple(self.readers.get(expression, ())):
                tell(value)

    def add(self, expression: Expression, value: Expression) -> None:
        """The expression may be a value."""
        known = self.found.setdefault(expression, {})
        if value not in known:
            known[value] = None
            self.new.append((expression, value))

    def read(self, expression: Expression, tell: Callable[[Expression], None]) -> None:
        """Call ``tell`` once with each value of an expression, also with those to come."""
        self.readers.setdefault(expression, []).append(tell)
        for value in tuple(self.found.get(expression, ())):
            tell(value)

    def link(self, source: Expression, reader: Expression) -> None:
        """What one expression is, another one may be."""
        self.read(source, lambda value: self.add(reader, value))

    def start(self, expression: Expression) -> None:
        """The rule of one expression."""
        match expression:
            case FunctionLiteral() | Tuple() | Construct():
                self.add(expression, expression)
            case GlobalReference():
                self.add(expression, self.program.functions[expression.name])
            case NewReference():
                self.add(expression, expression)
                self.link(expression.value, self.content(expression))
            case LetIn():
                self.link(expression.value, expression.variable)
                self.link(expression.body, expression)
            case FunctionCall():
                self.read(expression.callee, lambda value: self.call(expression, value))
            case Projection():
                self.read(expression.value, lambda value: self.item(expression, value))
            case MatchData():
                self.read(expression.value, lambda value: self.fields(expression, value))
                self.all(expression.results, expression)
            case ReadReference() | WriteReference():
                self.read(expression.reference, lambda value: self.reference(expression, value))
            case IfElse():
                self.all((expression.then, expression.otherwise), expression)
            case OperatorCall():
                pass  # of tensors alone
            case _:
                self.all(expression.operands, expression)

    def all(self, sources: Sequence[Expression], reader: Expression) -> None:
        """Any of them."""
        for source in sources:
            self.link(source, reader)

    def content(self, reference: Expression) -> Variable:
        """What stands for all contents of a reference."""
        return self.contents.setdefault(reference, Variable("content"))

    def call(self, call: FunctionCall, value: Expression) -> None:
        """Arguments are parameters, the body is the result; a kernel is of tensors alone."""
        if isinstance(value, FunctionLiteral) and not value.primitive:
            for argument, parameter in zip(call.arguments, value.parameters, strict=True):
                self.link(argument, parameter)
            self.link(value.body, call)

    def item(self, projection: Projection, value: Expression) -> None:
        """The item of that tuple."""
        if isinstance(value, Tuple):
            self.link(value.items[projection.index], projection)

    def fields(self, match: MatchData, value: Expression) -> None:
        """The fields of that data value, where its pattern binds them."""
        for pattern in match.patterns:
            if isinstance(value, Construct) and value.constructor == pattern.constructor:
                for variable, argument in zip(pattern.variables, value.arguments, strict=True):
                    if variable is not None:
                        self.link(argument, variable)

    def reference(self, expression: ReadReference | WriteReference, value: Expression) -> None:
        """What any write of that reference may have written."""
        if isinstance(value, NewReference):
            if isinstance(expression, ReadReference):
                self.link(self.content(value), expression)
            else:
                self.link(expression.value, self.content(value))
