"""Random annotated programs: tensors, functions, closures, functions as values, tuples, choices,
data, references, each declared or annotated here and there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from tests.harness.program_harness import DEVICES, read

from ingot_compiler.ir.types import TensorType
from ingot_compiler.placement.virtual_device import UNCONSTRAINED, VirtualDevice
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
    Pattern,
    Projection,
    ReadReference,
    Tuple,
    Variable,
    WriteReference,
)
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.types import FunctionType

TENSOR = TensorType("f32", (5, 7))
BOOL = TensorType("bool", ())
BINARY = FunctionType((TENSOR, TENSOR), TENSOR)
HOST = VirtualDevice("host", 0)
C = VirtualDevice("cpu", 1, "cpu:x86-64-v3")
G = VirtualDevice("cuda", 0, "cuda:sm_80")
PLACES = (C, G, C, G, HOST)
LIST = "data List = Nil() or Cons(T, List)\n"
assert DEVICES.count("device ") == 5


@dataclass
class Scope:
    """What a random expression may read."""

    tensors: list[Expression]
    conditions: list[Expression]
    functions: list[Expression] = field(default_factory=list[Expression])
    tuples: list[Expression] = field(default_factory=list[Expression])
    lists: list[Expression] = field(default_factory=list[Expression])
    references: list[Expression] = field(default_factory=list[Expression])

    def inside(self) -> Scope:
        """A copy, for what is inside a function or a branch."""
        return Scope(
            list(self.tensors),
            list(self.conditions),
            list(self.functions),
            list(self.tuples),
            list(self.lists),
            list(self.references),
        )


class RandomProgram:
    """Makes one program; ``fixed`` out of 100 annotations are fixed, which may contradict, and
    ``declared`` out of 100 parameters, results and variables have a device of their own."""

    def __init__(self, random: Random, fixed: int = 6, declared: int = 8) -> None:
        self.random = random
        self.fixed = fixed
        self.declared = declared
        self.count = 0

    def program(self) -> Program:
        """Up to three functions; ``main`` has two tensors and a condition."""
        functions: dict[str, FunctionLiteral] = {}
        known: list[Expression] = []
        for name in ("f", "g")[: self.random.randrange(3)]:
            functions[name] = self.function(Scope([], [], list(known)), 2)
            known.append(GlobalReference(name))
        x, y = (Variable(name, TENSOR, self.device()) for name in "xy")
        c = Variable("c", BOOL, self.device())
        scope = Scope([x, y], [c], known)
        body = self.block(scope, 3)
        functions["main"] = FunctionLiteral((x, y, c), TENSOR, body, self.device())
        base = read(LIST + "def @main(%x: T) -> T { %x }")
        return Program(functions, base.devices, base.data, {}, base.default)

    def function(self, scope: Scope, depth: int) -> FunctionLiteral:
        """A function of two tensors."""
        a, b = self.variable("a", typed=True), self.variable("b", typed=True)
        inner = scope.inside()
        inner.tensors += [a, b]
        return FunctionLiteral((a, b), TENSOR, self.block(inner, depth), self.device())

    def function_value(self, scope: Scope, depth: int) -> Expression:
        """A function: a literal, what a call gives, an item, a content, a choice; other functions
        may be passed to it."""
        made: Expression = self.function(scope, depth)
        kind = self.random.randrange(10)
        if kind == 0:
            return Projection(Tuple((self.tensor(scope, 1), made)), 1)
        if kind == 1:
            return ReadReference(NewReference(made))
        if kind == 2 and scope.functions and scope.conditions:
            return IfElse(scope.conditions[0], made, self.random.choice(scope.functions))
        if kind in (3, 4):  # the callee of its calls is a call, if it is not bound by a variable
            z = self.variable("z", typed=True)
            inner = scope.inside()
            inner.tensors.append(z)
            maker = FunctionLiteral((z,), BINARY, self.function(inner, depth), self.device())
            call = FunctionCall(maker, (self.tensor(scope, 1),))
            scope.functions.append(call)
            return call
        if kind in (5, 6) and scope.functions:
            g = replace(self.variable("g"), type=BINARY)
            inner = scope.inside()
            inner.functions.append(g)
            taker = FunctionLiteral((g,), BINARY, self.function(inner, depth), self.device())
            return FunctionCall(taker, (self.random.choice(scope.functions),))
        return made

    def variable(self, name: str, typed: bool = False) -> Variable:
        """A variable with a name of its own."""
        self.count += 1
        return Variable(f"{name}{self.count}", TENSOR if typed else None, self.device())

    def device(self) -> VirtualDevice:
        """The device of a declaration, mostly none."""
        if self.random.randrange(100) >= self.declared:
            return UNCONSTRAINED
        return self.random.choice(PLACES)

    def block(self, scope: Scope, depth: int) -> Expression:
        """Bindings, then a tensor."""
        lets: list[tuple[Variable, Expression]] = []
        for _ in range(self.random.randrange(4)):
            kind = self.random.randrange(9)
            if kind in (0, 8) and depth > 0:
                variable = self.variable("f")
                lets.append((variable, self.function_value(scope, depth - 1)))
                scope.functions.append(variable)
            elif kind == 1:
                variable = self.variable("t")
                lets.append((variable, Tuple((self.tensor(scope, 1), self.tensor(scope, 1)))))
                scope.tuples.append(variable)
            elif kind == 2:
                variable = self.variable("l")
                rest = self.random.choice([*scope.lists, Construct("Nil", ())])
                lets.append((variable, Construct("Cons", (self.tensor(scope, 1), rest))))
                scope.lists.append(variable)
            elif kind == 3:
                variable = self.variable("r")
                lets.append((variable, NewReference(self.tensor(scope, 1))))
                scope.references.append(variable)
            elif kind == 4 and scope.references:
                reference = self.random.choice(scope.references)
                write = WriteReference(reference, self.tensor(scope, 1))
                lets.append((self.variable("u"), write))
                variable = self.variable("v")
                lets.append((variable, ReadReference(reference)))
                scope.tensors.append(variable)
            else:
                variable = self.variable("v")
                lets.append((variable, self.tensor(scope, depth)))
                scope.tensors.append(variable)
        body = self.tensor(scope, depth)
        for variable, value in reversed(lets):
            body = LetIn(variable, value, body)
        return body

    def tensor(self, scope: Scope, depth: int) -> Expression:
        """An expression that is a tensor, perhaps annotated; it may be read again."""
        if depth <= 0:
            return self.annotated(self.random.choice(scope.tensors))
        made = self.annotated(self.plain(scope, depth))
        if self.random.randrange(4) == 0 and not isinstance(made, OnDevice | DeviceCopy):
            scope.tensors.append(made)
        return made

    def plain(self, scope: Scope, depth: int) -> Expression:
        """A call, a choice, an item."""
        kind = self.random.randrange(13)
        if kind in (0, 12) and scope.functions:
            arguments = self.tensor(scope, depth - 1), self.tensor(scope, depth - 1)
            return FunctionCall(self.random.choice(scope.functions), arguments)
        if kind == 1 and scope.conditions:
            then, otherwise = scope.inside(), scope.inside()
            condition = self.annotated(self.random.choice(scope.conditions))
            return IfElse(condition, self.block(then, depth - 1), self.block(otherwise, depth - 1))
        if kind == 2 and scope.tuples:
            chosen = self.random.choice(scope.tuples)
            return Projection(self.annotated(chosen), self.random.randrange(2))
        if kind == 3 and scope.lists:
            first = self.variable("z")
            some = scope.inside()
            some.tensors.append(first)
            patterns = Pattern("Cons", (first, None)), Pattern("Nil", ())
            results = self.tensor(some, depth - 1), self.tensor(scope.inside(), depth - 1)
            return MatchData(self.random.choice(scope.lists), patterns, results)
        if kind == 4 and len(scope.functions) > 1:
            one, other = self.random.choices(scope.functions, k=2)
            chosen = IfElse(scope.conditions[0], one, other) if scope.conditions else one
            arguments = self.tensor(scope, depth - 1), self.tensor(scope, depth - 1)
            return FunctionCall(chosen, arguments)
        if kind < 7:
            return OperatorCall("neg", (self.tensor(scope, depth - 1),))
        pair = self.tensor(scope, depth - 1), self.tensor(scope, depth - 1)
        return OperatorCall(self.random.choice(("add", "sub", "max")), pair)

    def annotated(self, expression: Expression) -> Expression:
        """One in four expressions gets an annotation, few of them one that may contradict."""
        if self.random.randrange(4):
            return expression
        device = self.random.choice(PLACES)
        kind = self.random.randrange(100)
        if kind < self.fixed:
            return OnDevice(expression, device, constrain_result=True)
        if kind < 2 * self.fixed:
            return DeviceCopy(expression, device, self.random.choice(PLACES))
        if kind < 25:
            return OnDevice(expression, UNCONSTRAINED, constrain_body=False)
        return OnDevice(expression, device)


def small_program(random: Random) -> Program:
    """At most eight values: parameters, some declared, and calls of operators, annotated where they
    are read."""
    devices = UNCONSTRAINED, UNCONSTRAINED, C, G
    parameters = [
        Variable(name, TENSOR, random.choice(devices))
        for name in ("x", "y", "z")[: random.randrange(1, 4)]
    ]
    values: list[Expression] = list(parameters)
    maker = RandomProgram(random, fixed=12)

    def read_one() -> Expression:
        found = values[-1] if random.randrange(2) else random.choice(values)
        if random.randrange(2):
            return found
        kind, device = random.randrange(10), random.choice((C, G))
        if kind < 2:
            return OnDevice(found, device, constrain_result=True)
        if kind < 4:
            return OnDevice(found, UNCONSTRAINED, constrain_body=False)
        return OnDevice(found, device)

    for _ in range(random.randrange(1, 9 - len(parameters))):
        unary = random.randrange(3) == 0
        arguments = (read_one(),) if unary else (read_one(), read_one())
        values.append(OperatorCall("neg" if unary else "add", arguments))
    base = read("def @main(%x: T) -> T { %x }")
    main = FunctionLiteral(tuple(parameters), TENSOR, read_one())
    assert maker.count == 0
    return Program({"main": main}, base.devices, (), {}, base.default)


__all__ = ["RandomProgram", "small_program"]
