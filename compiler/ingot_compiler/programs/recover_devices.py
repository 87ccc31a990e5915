"""Reads the device of every expression from the text of a planned program, strictly.

In: a program in which parameters and results have devices, and annotations are fixed ones. Out: the
device of each expression, and what is missing. Not done here: whether devices fit one another
(``verify_plan``).

A fixed annotation is on its device; a variable where it is bound; a function where its result is;
everything else is on the device of what is around it. The body of a function is around what is in
it, a fixed annotation too.
"""

from __future__ import annotations

from dataclasses import field

from ingot_compiler.placement.virtual_device import UNCONSTRAINED, VirtualDevice
from ingot_compiler.programs.expressions import (
    Expression,
    FunctionLiteral,
    GlobalReference,
    LetIn,
    MatchData,
    OnDevice,
    Variable,
)
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.walk import with_devices
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PlanProblem:
    """An expression of a plan, and what does not hold there."""

    expression: Expression
    rule: str
    expected: str
    got: str


@dataclass(slots=True)
class RecoveredDevices:
    """The device of each expression outside of primitive functions; ``problems``: what the text
    does not say, or says twice."""

    devices: dict[Expression, VirtualDevice] = field(
        default_factory=dict[Expression, VirtualDevice]
    )
    problems: list[PlanProblem] = field(default_factory=list[PlanProblem])


def recover_devices(program: Program) -> RecoveredDevices:
    """The devices of all expressions of all functions."""
    recovery = _Recovery(program)
    for function in program.functions.values():
        recovery.run(function)
    return recovery.found


class _Recovery:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.found = RecoveredDevices()
        self.bound: dict[Variable, VirtualDevice] = {}

    def run(self, function: FunctionLiteral) -> None:
        """Visit every expression with the device around it; bindings come before readers."""
        waiting: list[tuple[Expression, VirtualDevice]] = [(function, function.device)]
        while waiting:
            expression, around = waiting.pop()
            device = self.device(expression, around)
            known = self.found.devices.get(expression)
            if known is not None:
                if known != device:
                    self.problem(expression, "one device for all readers", str(known), str(device))
                continue
            self.found.devices[expression] = device
            self.bind(expression, device)
            inside = device if isinstance(expression, OnDevice | FunctionLiteral) else around
            waiting += [(operand, inside) for operand in reversed(with_devices(expression))]

    def device(self, expression: Expression, around: VirtualDevice) -> VirtualDevice:
        """The device of an expression whose surroundings are on ``around``."""
        match expression:
            case OnDevice():
                if not expression.is_fixed:
                    self.problem(expression, "an annotation in a plan", "a fixed one", "another")
                return expression.device
            case Variable():
                if expression not in self.bound:
                    self.problem(expression, "a variable", "one that is bound around it", "none")
                return self.bound.get(expression, UNCONSTRAINED)
            case GlobalReference():
                return self.program.functions[expression.name].device
            case FunctionLiteral(primitive=False):
                return expression.device
            case _:
                return around

    def bind(self, expression: Expression, device: VirtualDevice) -> None:
        """Enter the variables that an expression binds."""
        match expression:
            case FunctionLiteral(primitive=False):
                self.require(expression, device, "the result of a function")
                for parameter in expression.parameters:
                    self.require(parameter, parameter.device, f"parameter %{parameter.name}")
                    self.bound[parameter] = parameter.device
            case LetIn():
                self.bound[expression.variable] = self.device(expression.value, device)
            case MatchData():
                for pattern in expression.patterns:
                    for variable in pattern.variables:
                        if variable is not None:
                            self.bound[variable] = device
            case _:
                pass

    def require(self, expression: Expression, device: VirtualDevice, what: str) -> None:
        """A device that the text must give."""
        if device.is_open:
            self.problem(expression, what, "a device", "none")

    def problem(self, expression: Expression, rule: str, expected: str, got: str) -> None:
        """Remember what is wrong."""
        self.found.problems.append(PlanProblem(expression, rule, expected, got))
