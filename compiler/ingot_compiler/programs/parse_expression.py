"""Reads the expressions of a program.

In: a ``Reader`` that stands before one. Out: expressions with their spans. Not done here: what a
program has beside them (``parse_program``), types (``infer_types``).

A block is ``let %v = E;`` and ``%0 = E;`` in any number, then an expression. ``let`` binds a
variable; a number names an expression that is read more than once, and computed once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TypeVar

from ingot_compiler.ir.text.parse_graph import read_attributes
from ingot_compiler.ir.text.read_terms import read_type
from ingot_compiler.ir.text.text_reader import Reader, Token
from ingot_compiler.placement.virtual_device import UNCONSTRAINED, VirtualDevice
from ingot_compiler.programs.device_text import read_block, read_name
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
    Pattern,
    Projection,
    ReadReference,
    TextSpan,
    Tuple,
    Variable,
    WriteReference,
)
from ingot_compiler.programs.parse_type import read_program_type
from ingot_compiler.programs.program import Alias, KernelBuffer, ProgramKernel
from ingot_compiler.programs.types import FunctionType, TupleType, Type

Node = TypeVar("Node", bound=Expression)


class ProgramReader:
    """A text that is read, the names that are known so far, and the tokens of expressions."""

    def __init__(self, reader: Reader, text: str) -> None:
        self.reader = reader
        self.devices: dict[str, VirtualDevice] = {}
        self.data: set[str] = set()
        self.constructors: set[str] = set()
        self.kernels: set[str] = set()
        self.tokens: dict[Expression, Token] = {}
        self._scopes: list[dict[str, Expression]] = []
        self._lines = [0, *(place + 1 for place, sign in enumerate(text) if sign == "\n")]

    def span(self, token: Token) -> TextSpan:
        """Where a token stands."""
        line = bisect_right(self._lines, token.start)
        return TextSpan(line, token.start - self._lines[line - 1] + 1)

    def type(self) -> Type:
        """A type."""
        return read_program_type(self.reader, self.data)

    def function(self, start: Token, primitive: bool = False) -> FunctionLiteral:
        """Parameters, result and body of a function."""
        self.reader.expect("(")
        self._scopes.append({})
        parameters = self.reader.items(self._parameter, ")")
        device = read_block(self.reader, self.devices)
        self.reader.expect("->")
        result = self.type()
        body = self._block()
        self._scopes.pop()
        made = FunctionLiteral(
            parameters, result, body, device, primitive=primitive, span=self.span(start)
        )
        return self._made(made, start)

    def kernel(self) -> ProgramKernel:
        """``kernel @k(%a: TYPE) -> TYPE { BODY } buffers (%a: TYPE scope "s", ...)``."""
        start = self.reader.expect("kernel")
        self.reader.expect("@")
        name = self.reader.name("the name of a kernel")
        if name in self.kernels:
            raise self.reader.fail(f"expected every kernel once, got @{name} twice", start)
        self.kernels.add(name)
        reference = self.function(start, primitive=True)
        self.reader.expect("buffers", "(")
        buffers = self.reader.items(self._buffer, ")")
        aliases: list[Alias] = []
        while self.reader.accept("alias"):
            aliases.append(self._alias())
        types = tuple(one.type or TupleType(()) for one in reference.parameters)
        signature = FunctionType(types, reference.result_type)
        return ProgramKernel(name, signature, buffers, reference, tuple(aliases), self.span(start))

    def expression(self) -> Expression:
        """An expression, with the calls and projections behind it."""
        with self.reader.nested():
            start = self.reader.token
            found = self._primary()
            while True:
                if self.reader.accept("("):
                    arguments = self.reader.items(self.expression, ")")
                    found = self._made(FunctionCall(found, arguments, span=self.span(start)), start)
                elif self.reader.accept("."):
                    for index in self._indices():
                        found = self._made(Projection(found, index, span=self.span(start)), start)
                else:
                    return found

    def _indices(self) -> tuple[int, ...]:
        """An index behind a dot, or two with a dot between, which are one word elsewhere."""
        first, dot, second = self.reader.token.text.partition(".")
        if not (dot and first.isdecimal() and second.isdecimal()):
            return (self.reader.integer(),)
        self.reader.take()
        return int(first), int(second)

    def _made(self, expression: Node, token: Token) -> Node:
        self.tokens[expression] = token
        return expression

    def _parameter(self) -> Variable:
        token = self.reader.token
        name = self._new_name()
        device = read_block(self.reader, self.devices)
        self.reader.expect(":")
        variable = Variable(name, self.type(), device, span=self.span(token))
        return self._bind(variable, token)

    def _bind(self, variable: Variable, token: Token) -> Variable:
        self._scopes[-1][variable.name] = variable
        return self._made(variable, token)

    def _new_name(self) -> str:
        """A name that nothing around has."""
        token = self.reader.token
        if token.kind != "VALUE":
            raise self.reader.fail(f"expected a variable (%x), got {token}")
        name = self.reader.take().text[1:]
        if any(name in scope for scope in self._scopes):
            raise self.reader.fail(f"expected a name that is not in use here, got %{name}", token)
        return name

    def _buffer(self) -> KernelBuffer:
        name = self.reader.name("the name of a buffer")
        self.reader.expect(":")
        type_ = read_type(self.reader)
        return KernelBuffer(name, type_, self._scope())

    def _alias(self) -> Alias:
        name = self.reader.name("the name of an alias")
        self.reader.expect("of")
        return Alias(name, self.reader.name("the name of a buffer"), self._scope())

    def _scope(self) -> str:
        return self.reader.string() if self.reader.accept("scope") else ""

    def _block(self) -> Expression:
        """Bindings, then an expression, in braces."""
        with self.reader.nested():
            self.reader.expect("{")
            self._scopes.append({})
            lets: list[tuple[Token, Variable, Expression]] = []
            while self._is_binding():
                self._binding(lets)
            body = self.expression()
            self.reader.expect("}")
            self._scopes.pop()
            for token, variable, value in reversed(lets):
                body = self._made(LetIn(variable, value, body, span=self.span(token)), token)
            return body

    def _is_binding(self) -> bool:
        is_named = self.reader.token.kind == "VALUE" and self.reader.ahead() == "="
        return is_named or self.reader.at("let")

    def _binding(self, lets: list[tuple[Token, Variable, Expression]]) -> None:
        start = self.reader.token
        if self.reader.accept("let"):
            token = self.reader.token
            name = self._new_name()
            device = read_block(self.reader, self.devices)
            variable = self._bind(Variable(name, None, device, span=self.span(token)), token)
            self.reader.expect("=")
            lets.append((start, variable, self.expression()))
        else:
            name = self._new_name()
            if not name.isdecimal():
                raise self.reader.fail(f"expected a number (%0) or let, got %{name}", start)
            self.reader.expect("=")
            self._scopes[-1][name] = self.expression()
        self.reader.expect(";")

    def _primary(self) -> Expression:
        start = self.reader.token
        if start.kind == "VALUE":
            return self._named()
        if self.reader.accept("@"):
            return self._global(start)
        if self.reader.accept("("):
            return self._in_parentheses(start)
        if self.reader.at("{"):
            return self._block()
        if self.reader.at("primitive") or self.reader.at("fn"):
            primitive = self.reader.accept("primitive")
            self.reader.expect("fn")
            return self.function(start, primitive)
        if self.reader.accept("if"):
            return self._if(start)
        if self.reader.accept("match"):
            return self._match(start)
        return self._called_by_word(start)

    def _named(self) -> Expression:
        token = self.reader.take()
        name = token.text[1:]
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        raise self.reader.fail(f"expected a variable that is bound here, got {token}", token)

    def _global(self, start: Token) -> Expression:
        name = self.reader.name("the name of a function")
        if name in self.kernels:
            self.reader.expect("(")
            arguments = self.reader.items(self.expression, ")")
            return self._made(KernelCall(name, arguments, span=self.span(start)), start)
        return self._made(GlobalReference(name, span=self.span(start)), start)

    def _in_parentheses(self, start: Token) -> Expression:
        """``(E)`` is E, ``(E,)`` a tuple of one, ``()`` one of none."""
        if self.reader.accept(")"):
            return self._made(Tuple((), span=self.span(start)), start)
        items = [self.expression()]
        if self.reader.accept(")"):
            return items[0]
        while self.reader.accept(",") and not self.reader.at(")"):
            items.append(self.expression())
        self.reader.expect(")")
        return self._made(Tuple(tuple(items), span=self.span(start)), start)

    def _if(self, start: Token) -> Expression:
        self.reader.expect("(")
        condition = self.expression()
        self.reader.expect(")")
        then = self._block()
        self.reader.expect("else")
        otherwise = self._block()
        return self._made(IfElse(condition, then, otherwise, span=self.span(start)), start)

    def _match(self, start: Token) -> Expression:
        self.reader.expect("(")
        value = self.expression()
        self.reader.expect(")", "{")
        arms = self.reader.items(self._arm, "}")
        patterns, results = tuple(one for one, _ in arms), tuple(one for _, one in arms)
        return self._made(MatchData(value, patterns, results, span=self.span(start)), start)

    def _arm(self) -> tuple[Pattern, Expression]:
        constructor = self.reader.name("a constructor")
        self.reader.expect("(")
        self._scopes.append({})
        variables = self.reader.items(self._pattern_variable, ")")
        self.reader.expect("->")
        result = self._block()
        self._scopes.pop()
        return Pattern(constructor, variables), result

    def _pattern_variable(self) -> Variable | None:
        if self.reader.accept("_"):
            return None
        token = self.reader.token
        return self._bind(Variable(self._new_name(), span=self.span(token)), token)

    def _called_by_word(self, start: Token) -> Expression:
        """An operator, a constructor, or one of the words for annotations, copies, references."""
        word = self.reader.name("an expression")
        self.reader.expect("(")
        if word in _WORDS:
            return self._made(_WORDS[word](self, self.span(start)), start)
        arguments = self.reader.items(self.expression, ")")
        if word in self.constructors:
            return self._made(Construct(word, arguments, span=self.span(start)), start)
        attributes = read_attributes(self.reader)
        call = OperatorCall(word, arguments, attributes, span=self.span(start))
        return self._made(call, start)

    def one(self) -> Expression:
        """The only argument of a word."""
        found = self.expression()
        self.reader.expect(")")
        return found

    def on(self, span: TextSpan, body: bool, result: bool) -> OnDevice:
        """``E, "NAME")`` behind a word that annotates."""
        found = self.expression()
        self.reader.expect(",")
        token = self.reader.token
        device = read_name(self.reader, self.devices)
        if device.is_open:
            raise self.reader.fail(
                "expected a device with a field that is given, got an open one", token
            )
        self.reader.expect(")")
        return OnDevice(found, device, body, result, span=span)

    def copy(self, span: TextSpan) -> DeviceCopy:
        """``E, "SOURCE" -> "DESTINATION")``."""
        found = self.expression()
        self.reader.expect(",")
        ends: list[VirtualDevice] = []
        for arrow in (False, True):
            if arrow:
                self.reader.expect("->")
            token = self.reader.token
            ends.append(read_name(self.reader, self.devices))
            if ends[-1].is_open:
                raise self.reader.fail(
                    "expected a device with a field that is given, got an open one", token
                )
        self.reader.expect(")")
        return DeviceCopy(found, *ends, span=span)

    def write(self, span: TextSpan) -> WriteReference:
        """``REFERENCE, E)``."""
        reference = self.expression()
        self.reader.expect(",")
        return WriteReference(reference, self.one(), span=span)


_WORDS: dict[str, Callable[[ProgramReader, TextSpan], Expression]] = {
    "on_device": lambda source, span: source.on(span, body=True, result=False),
    "fixed": lambda source, span: source.on(span, body=True, result=True),
    "result_on": lambda source, span: source.on(span, body=False, result=True),
    "free": lambda source, span: OnDevice(
        source.one(), UNCONSTRAINED, constrain_body=False, span=span
    ),
    "device_copy": ProgramReader.copy,
    "ref": lambda source, span: NewReference(source.one(), span=span),
    "read": lambda source, span: ReadReference(source.one(), span=span),
    "write": ProgramReader.write,
}
