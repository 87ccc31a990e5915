"""Writes the expressions of one function.

In: a function. Out: lines. Not done here: programs (``print_program``), which expression is named
where (``blocks``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ingot_compiler.ir.text.print_graph import format_attribute
from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_compiler.programs.blocks import LET, Blocks, find_blocks
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
    Tuple,
    Variable,
    WriteReference,
)
from ingot_compiler.programs.walk import post_order


class FunctionPrinter:
    """Writes functions; ``block`` and ``name`` write a device as a block, and as a name."""

    def __init__(
        self,
        block: Callable[[VirtualDevice], str],
        name: Callable[[VirtualDevice], str],
        canonical: bool,
    ) -> None:
        self._block = block
        self._name = name
        self._canonical = canonical
        self._blocks = Blocks()
        self._numbers: dict[Expression, int] = {}
        self._variables: dict[Variable, str] = {}
        self._taken: set[str] = set()

    def lines(self, head: str, function: FunctionLiteral) -> list[str]:
        """The function behind ``head``."""
        self._blocks = find_blocks(function)
        self._numbers, self._variables, self._taken = {}, {}, set()
        return self._function(head, function).split("\n")

    def _function(self, head: str, function: FunctionLiteral) -> str:
        parameters = ", ".join(map(self._parameter, function.parameters))
        device = self._block(function.device)
        body = self._braces(function, 0, function.body)
        return f"{head}({parameters}){device} -> {function.result_type} {body}"

    def _parameter(self, parameter: Variable) -> str:
        name = self._bound(parameter)
        return f"{name}{self._block(parameter.device)}: {parameter.type}"

    def _bound(self, variable: Variable) -> str:
        """A name for a variable that no other has."""
        wanted = f"v{len(self._variables)}" if self._canonical else variable.name
        name, count = wanted, 0
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        self._variables[variable] = f"%{name}"
        return self._variables[variable]

    def _braces(self, parent: Expression, index: int, root: Expression) -> str:
        """A block in braces, its lines indented."""
        lines = list(self._statements(self._blocks.inner[parent, index], root))
        return "{\n" + "\n".join(f"  {line}" for text in lines for line in text.split("\n")) + "\n}"

    def _statements(self, block: int, root: Expression) -> Iterator[str]:
        """Bindings of a block, then its result."""
        while isinstance(root, LetIn) and root not in self._blocks.named:
            value = root.value
            if isinstance(value, FunctionLiteral):  # it may call itself
                name = self._bound(root.variable)
                yield from self._numbered(block, value)
            else:
                yield from self._numbered(block, value)
                name = ""
            text = self._text(value)
            device = self._block(root.variable.device)
            yield f"let {name or self._bound(root.variable)}{device} = {text};"
            root = root.body
        yield from self._numbered(block, root)
        yield self._text(root)

    def _numbered(self, block: int, root: Expression) -> Iterator[str]:
        """What ``root`` reads and has a number in this block, unless it is written already."""
        named = self._blocks.named

        def unwritten(expression: Expression) -> tuple[Expression, ...]:
            return () if expression in self._numbers else expression.operands

        for expression in post_order([root], unwritten):
            if named.get(expression) == block and expression not in self._numbers:
                text = self._full(expression)
                self._numbers[expression] = len(self._numbers)
                yield f"%{self._numbers[expression]} = {text};"

    def _text(self, expression: Expression) -> str:
        """A number, a name, or the whole."""
        if expression in self._numbers:
            return f"%{self._numbers[expression]}"
        return self._full(expression)

    def _texts(self, expressions: Sequence[Expression]) -> str:
        return ", ".join(map(self._text, expressions))

    def _full(self, expression: Expression) -> str:
        match expression:
            case Variable():
                return self._variables[expression]
            case GlobalReference():
                return f"@{expression.name}"
            case FunctionLiteral():
                return self._function("primitive fn" if expression.primitive else "fn", expression)
            case LetIn():
                return self._braces(expression, LET, expression)
            case IfElse():
                return self._if(expression)
            case MatchData():
                return self._match(expression)
            case Tuple():
                comma = "," if len(expression.items) == 1 else ""
                return f"({self._texts(expression.items)}{comma})"
            case Projection():
                return f"{self._in_parentheses(expression.value)}.{expression.index}"
            case FunctionCall():
                callee = self._in_parentheses(expression.callee)
                return f"{callee}({self._texts(expression.arguments)})"
            case _:
                return self._word(expression)

    def _in_parentheses(self, expression: Expression) -> str:
        text = self._text(expression)
        return text if text[0] in "%@" and not set(text) & set("( .") else f"({text})"

    def _word(self, expression: Expression) -> str:
        operands = self._texts(expression.operands)
        match expression:
            case OperatorCall():
                items = [f"{name}={format_attribute(one)}" for name, one in expression.attributes]
                attributes = f" {{{', '.join(items)}}}" if items else ""
                return f"{expression.operator}({operands}){attributes}"
            case KernelCall():
                return f"@{expression.kernel}({operands})"
            case Construct():
                return f"{expression.constructor}({operands})"
            case OnDevice():
                return self._annotation(expression, operands)
            case DeviceCopy():
                ends = f"{self._name(expression.source)} -> {self._name(expression.destination)}"
                return f"device_copy({operands}, {ends})"
            case NewReference():
                return f"ref({operands})"
            case ReadReference():
                return f"read({operands})"
            case WriteReference():
                return f"write({operands})"
            case _:
                raise AssertionError(expression)

    def _annotation(self, annotation: OnDevice, body: str) -> str:
        if annotation.device.is_open:
            return f"free({body})"
        words = {(True, False): "on_device", (True, True): "fixed", (False, True): "result_on"}
        word = words[annotation.constrain_body, annotation.constrain_result]
        return f"{word}({body}, {self._name(annotation.device)})"

    def _if(self, expression: IfElse) -> str:
        then = self._braces(expression, 1, expression.then)
        otherwise = self._braces(expression, 2, expression.otherwise)
        return f"if ({self._text(expression.condition)}) {then} else {otherwise}"

    def _match(self, expression: MatchData) -> str:
        lines = [f"match ({self._text(expression.value)}) {{"]
        arms = zip(expression.patterns, expression.results, strict=True)
        for index, (pattern, result) in enumerate(arms, 1):
            head = self._pattern(pattern)
            lines.append(f"{head} -> {self._braces(expression, index, result)},")
        return "\n".join([*lines[:-1], lines[-1].rstrip(",")]).replace("\n", "\n  ") + "\n}"

    def _pattern(self, pattern: Pattern) -> str:
        names = [self._bound(one) if one is not None else "_" for one in pattern.variables]
        return f"{pattern.constructor}({', '.join(names)})"
