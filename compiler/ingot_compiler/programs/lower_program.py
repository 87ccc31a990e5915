"""Makes a graph of a planned program: calls of known functions are inlined, tuples and data
disappear.

In: a planned program. Out: ``LoweredProgram``: a graph whose nodes are marked with the names of
their devices, and where each comes from. Not done here: copies (``place`` puts them where marks
differ), planning.

The program is run with values that are not known: a tensor is the number of a value of the graph; a
tuple, a data value, a function, the content of a reference is known while the graph is made. What
depends on data beyond that is refused by name: recursion, a choice between functions, a reference
that is written in a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import field

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.errors import UnsupportedError
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.op_names import OP_NAMES
from ingot_compiler.ir.types import TensorType
from ingot_compiler.placement.configuration import HOST
from ingot_compiler.programs.expressions import (
    Construct,
    DeviceCopy,
    Expression,
    FunctionCall,
    FunctionLiteral,
    GlobalReference,
    IfElse,
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
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.recover_devices import recover_devices
from ingot_compiler.programs.show import show
from ingot_compiler.programs.steps import finish
from ingot_runtime.lazy_dataclass import dataclass

ENTRY = "main"


@dataclass(frozen=True, slots=True)
class LoweredProgram:
    """``sources``: the expression of each ordinal that nodes name, and its place in the text."""

    graph: Graph
    sources: tuple[tuple[str, str], ...]


def lower_program(program: Program) -> LoweredProgram:
    """The graph of ``main``; a result that is a tuple is several outputs.

    Raises:
        UnsupportedError: ``main`` needs what no graph has; names the expression and its place.
    """
    lowering = _Lowering(program)
    main = program.functions.get(ENTRY)
    if main is None:
        raise UnsupportedError(
            "a program without an entry",
            "the program",
            f"expected a function @{ENTRY}, got {', '.join(program.functions) or 'none'}",
            f"call one of them @{ENTRY}",
        )
    return lowering.run(main)


@dataclass(frozen=True, slots=True)
class _Items:
    """A tuple, or a data value with its constructor."""

    items: tuple[_Known, ...]
    constructor: str = ""


@dataclass(slots=True, eq=False)
class _Reference:
    content: _Known
    builder: GraphBuilder


@dataclass(frozen=True, slots=True, eq=False)
class _Closure:
    function: FunctionLiteral
    around: _Activation | None


_Known = int | _Items | _Reference | _Closure
_Steps = Generator["_Steps", _Known, _Known]


@dataclass(slots=True, eq=False)
class _Activation:
    """What is known in a call, or in a branch of it, and is not visible outside."""

    around: _Activation | None
    builder: GraphBuilder
    is_branch: bool = False
    values: dict[Expression, _Known] = field(default_factory=dict[Expression, _Known])

    def find(self, expression: Expression) -> _Known | None:
        """What is known of a variable here or around, of anything else in this call."""
        activation: _Activation | None = self
        is_same_call = True
        while activation is not None:
            if expression in activation.values and (
                is_same_call or isinstance(expression, Variable)
            ):
                return activation.values[expression]
            is_same_call = is_same_call and activation.is_branch
            activation = activation.around
        return None


class _Lowering:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.devices = recover_devices(program).devices
        self.names = {one.device: one.name for one in reversed(program.devices)}
        self.sources: list[tuple[str, str]] = []
        self.active: list[FunctionLiteral] = []
        self.rules = _rules(self)

    def run(self, main: FunctionLiteral) -> LoweredProgram:
        """The graph of a function of tensors."""
        types: list[TensorType] = []
        for parameter in main.parameters:
            if not isinstance(parameter.type, TensorType):
                raise _unsupported(parameter, f"a parameter of type {parameter.type}")
            types.append(parameter.type)
        builder = GraphBuilder(types)
        closure = _Closure(main, None)
        result = finish(self.call(closure, list(builder.inputs), builder, main))
        outputs = _tensors(result, main)
        return LoweredProgram(builder.finish(outputs), tuple(self.sources))

    def source(self, expression: Expression) -> tuple[int, ...]:
        """The ordinal of an expression."""
        self.sources.append((str(expression.span), show(expression)))
        return (len(self.sources) - 1,)

    def mark(self, expression: Expression) -> str:
        """The name of an expression's device."""
        return self.names[self.devices[expression]]

    def value(self, expression: Expression, activation: _Activation) -> _Steps:
        """What is known of an expression, found when it is read first."""
        found = activation.find(expression)
        if found is None:
            rule = self.rules.get(type(expression))
            if rule is None:
                raise _unsupported(expression, "a call of a kernel")
            found = yield rule(expression, activation)
            activation.values[expression] = found
        return found

    def operands(self, expression: Expression, activation: _Activation) -> _Steps:
        """All operands, in order."""
        found: list[_Known] = []
        for operand in expression.operands:
            found.append((yield self.value(operand, activation)))  # noqa: PERF401 (a yield)
        return _Items(tuple(found))

    def unbound(self, expression: Expression, activation: _Activation) -> _Steps:
        """A variable is bound before it is read; another expression knows what is around it."""
        if isinstance(expression, GlobalReference):
            return _Closure(self.program.functions[expression.name], None)
        assert isinstance(expression, FunctionLiteral), expression
        return _Closure(expression, activation)
        yield

    def operator(self, expression: Expression, activation: _Activation) -> _Steps:
        """A node."""
        assert isinstance(expression, OperatorCall)
        found = yield self.operands(expression, activation)
        operands = _tensors(found, expression)
        source, mark = self.source(expression), self.mark(expression)
        attributes = dict(expression.attributes)
        if expression.operator == "split":
            return self.split(activation.builder, operands[0], attributes, source, mark)
        if expression.operator not in OP_NAMES:
            raise _unsupported(expression, f"the operator {expression.operator}")
        made = activation.builder.add_many(expression.operator, operands, attributes, source, mark)
        return made[0] if len(made) == 1 else _Items(made)

    def split(
        self,
        builder: GraphBuilder,
        operand: int,
        attributes: dict[str, Attribute],
        source: tuple[int, ...],
        mark: str,
    ) -> _Known:
        """A slice for each part."""
        axis, parts = attributes["axis"], attributes["parts"]
        assert isinstance(axis, int)
        assert isinstance(parts, int)
        shape = builder.types[operand].shape
        size = shape[axis]
        if not isinstance(size, int):
            raise UnsupportedError(
                "split of a size that is not known", source, f"expected a number, got {size}"
            )
        part = size // parts
        zeros, ones = [0] * len(shape), [1] * len(shape)
        made: list[int] = []
        for number in range(parts):
            starts, sizes = list(zeros), list(shape)
            starts[axis], sizes[axis] = number * part, part
            table = {"starts": tuple(starts), "steps": tuple(ones), "sizes": tuple(sizes)}
            made.append(builder.add("slice", [operand], table, source, mark))
        return _Items(tuple(made))

    def apply(self, expression: Expression, activation: _Activation) -> _Steps:
        """The body of the function, in the place of its call."""
        found = yield self.operands(expression, activation)
        assert isinstance(found, _Items)
        closure, *arguments = found.items
        assert isinstance(closure, _Closure)
        return (yield self.call(closure, arguments, activation.builder, expression))

    def call(
        self,
        closure: _Closure,
        arguments: Sequence[_Known],
        builder: GraphBuilder,
        caller: Expression,
    ) -> _Steps:
        """What a function gives for these arguments."""
        function = closure.function
        if function in self.active:
            raise _unsupported(caller, "recursion")
        self.active.append(function)
        activation = _Activation(closure.around, builder)
        activation.values.update(zip(function.parameters, arguments, strict=True))
        result = yield self.value(function.body, activation)
        self.active.pop()
        return result

    def let(self, expression: Expression, activation: _Activation) -> _Steps:
        """Bindings one after the other."""
        while isinstance(expression, LetIn):
            activation.values[expression.variable] = yield self.value(expression.value, activation)
            expression = expression.body
        return (yield self.value(expression, activation))

    def container(self, expression: Expression, activation: _Activation) -> _Steps:
        """Parts side by side."""
        found = yield self.operands(expression, activation)
        assert isinstance(found, _Items)
        if isinstance(expression, NewReference):
            return _Reference(found.items[0], activation.builder)
        constructor = expression.constructor if isinstance(expression, Construct) else ""
        return _Items(found.items, constructor)

    def projection(self, expression: Expression, activation: _Activation) -> _Steps:
        """An item of a tuple."""
        assert isinstance(expression, Projection)
        found = yield self.value(expression.value, activation)
        assert isinstance(found, _Items)
        return found.items[expression.index]

    def choice(self, expression: Expression, activation: _Activation) -> _Steps:
        """A node with the two branches as regions, which give tensors."""
        assert isinstance(expression, IfElse)
        condition = yield self.value(expression.condition, activation)
        assert isinstance(condition, int)
        regions: list[Graph] = []
        known: list[_Known] = []
        for branch in (expression.then, expression.otherwise):
            inner = activation.builder.region(())
            found = yield self.value(branch, _Activation(activation, inner, is_branch=True))
            regions.append(inner.finish(_tensors(found, expression)))
            known.append(found)
        made = activation.builder.add_regions(  # the host decides; what reads the result copies it
            "if", [condition], regions, {"symbols": ()}, self.source(expression), HOST
        )
        return made[0] if isinstance(known[0], int) else _Items(made)

    def match(self, expression: Expression, activation: _Activation) -> _Steps:
        """The arm of a constructor that is known."""
        assert isinstance(expression, MatchData)
        found = yield self.value(expression.value, activation)
        assert isinstance(found, _Items)
        arms = zip(expression.patterns, expression.results, strict=True)
        pattern, result = next(arm for arm in arms if arm[0].constructor == found.constructor)
        for variable, item in zip(pattern.variables, found.items, strict=True):
            if variable is not None:
                activation.values[variable] = item
        return (yield self.value(result, activation))

    def read(self, expression: Expression, activation: _Activation) -> _Steps:
        """The content that a reference has now."""
        assert isinstance(expression, ReadReference)
        found = yield self.value(expression.reference, activation)
        assert isinstance(found, _Reference)
        return found.content

    def write(self, expression: Expression, activation: _Activation) -> _Steps:
        """Another content, from now on."""
        assert isinstance(expression, WriteReference)
        found = yield self.value(expression.reference, activation)
        assert isinstance(found, _Reference)
        content = yield self.value(expression.value, activation)
        if found.builder is not activation.builder:
            raise _unsupported(expression, "a reference that is written in a branch")
        found.content = content
        return _Items(())

    def inner(self, expression: Expression, activation: _Activation) -> _Steps:
        """What an annotation or a copy is about: devices are marks."""
        return (yield self.value(expression.operands[0], activation))


_Rule = Callable[[Expression, _Activation], _Steps]


def _rules(lowering: _Lowering) -> dict[type[Expression], _Rule]:
    return {
        Variable: lowering.unbound,
        GlobalReference: lowering.unbound,
        FunctionLiteral: lowering.unbound,
        OperatorCall: lowering.operator,
        FunctionCall: lowering.apply,
        LetIn: lowering.let,
        Tuple: lowering.container,
        Construct: lowering.container,
        NewReference: lowering.container,
        Projection: lowering.projection,
        IfElse: lowering.choice,
        MatchData: lowering.match,
        ReadReference: lowering.read,
        WriteReference: lowering.write,
        OnDevice: lowering.inner,
        DeviceCopy: lowering.inner,
    }


def _tensors(value: _Known, reader: Expression) -> list[int]:
    """The tensors of a value; others cannot leave a branch or the program."""
    if isinstance(value, int):
        return [value]
    if isinstance(value, _Items) and not value.constructor:
        tensors = [item for item in value.items if isinstance(item, int)]
        if len(tensors) == len(value.items):
            return tensors
    what = "a choice of functions" if isinstance(value, _Closure) else "data or references"
    raise _unsupported(reader, f"{what} as a result that is only known at run time")


def _unsupported(expression: Expression, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"{what} in a compiled program",
        f"{show(expression)} at {expression.span}",
        "expected calls of known functions, tuples, if over tensors, data that is known",
        "plan it and run it with the interpreter, or write it without",
    )
