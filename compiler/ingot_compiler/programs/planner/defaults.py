"""Gives a device to what no annotation decides.

In: a solved network. Out: the same with every cell decided. Not done here: constraints.

Shapes first, then from the outside inwards: the result of a function takes the default device, its
other parameters the device of its result; the same for each call of an operator or a function; the
variable of a ``let`` takes the device of the whole, before its value is looked at.
"""

from __future__ import annotations

from ingot_compiler.placement.configuration import Configuration
from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_compiler.programs.expressions import (
    DeviceCopy,
    Expression,
    FunctionCall,
    FunctionLiteral,
    KernelCall,
    LetIn,
    OnDevice,
    OperatorCall,
)
from ingot_compiler.programs.operators import find_operator
from ingot_compiler.programs.plan_devices import complete, is_placed
from ingot_compiler.programs.planner.network import (
    Domain,
    FunctionDomain,
    Network,
    Pin,
    leaves,
    result_cell,
)
from ingot_compiler.programs.planner.solution import Solution
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.walk import pre_order, with_devices


def give_defaults(
    program: Program,
    order: tuple[str, ...],
    network: Network,
    solution: Solution,
    configuration: Configuration,
) -> None:
    """Decide every cell."""
    defaults = _Defaults(network, solution, configuration)
    defaults.shapes()
    for name in order:
        for expression in pre_order(program.functions[name], with_devices):
            defaults.visit(expression)
    for name in order:
        for expression in pre_order(program.functions[name], with_devices):
            defaults.rest(expression)


_NAMING = FunctionLiteral | FunctionCall | LetIn | OnDevice | DeviceCopy
"""What passes a value on, and computes nothing of it."""


def _reads_shapes(expression: Expression) -> bool:
    operator = find_operator(expression.operator) if isinstance(expression, OperatorCall) else None
    return operator is not None and operator.on_host


class _Defaults:
    def __init__(self, network: Network, solution: Solution, configuration: Configuration) -> None:
        self.network = network
        self.solution = solution
        self.configuration = configuration
        self.default = configuration.default_device

    def shapes(self) -> None:
        """An annotated value of which functions read the shape alone stays where it is."""
        shapes, others = set[int](), set[int]()
        for (parent, _), domain in self.network.expected.items():
            if not isinstance(parent, _NAMING):
                found = shapes if _reads_shapes(parent) else others
                found |= {self.solution.places.find(cell) for cell in leaves(domain)}
        for expression, domain in self.network.domains.items():
            if isinstance(expression, OnDevice) and expression.is_normal:
                cell = result_cell(domain)
                if self.solution.places.find(cell) in shapes - others:
                    inner = result_cell(self.network.expected[expression, 0])
                    device = self.solution.device(inner)
                    self.decide(cell, device, "where the shape is read of", expression)

    def visit(self, expression: Expression) -> None:
        """The defaults of one expression."""
        match expression:
            case FunctionLiteral():
                domain = self.network.domains[expression]
                self.result_first(domain, expression, "the result of")
            case FunctionCall():
                domain = self.network.expected[expression, 0]
                self.result_first(domain, expression, "the result of")
            case OperatorCall() | KernelCall() | OnDevice() | DeviceCopy():
                self.operation(expression)
            case LetIn():
                whole = result_cell(self.network.domains[expression])
                self.decide(whole, self.default, "the default device, for", expression)
                device = self.solution.device(whole)
                for leaf in leaves(self.network.domains[expression.variable]):
                    self.decide(leaf, device, "the device of the whole", expression)
            case _:
                pass

    def operation(self, expression: Expression) -> None:
        """The result, then the operands."""
        result = result_cell(self.network.domains[expression])
        self.decide(result, self.default, "the default device, for", expression)
        device = self.solution.device(result)
        for index in range(len(expression.operands)):
            expected = self.network.expected.get((expression, index))
            if expected is not None:
                self.decide(
                    result_cell(expected), device, "the device of the result of", expression
                )

    def result_first(self, domain: Domain, expression: Expression, rule: str) -> None:
        """The result, then all parameters."""
        assert isinstance(domain, FunctionDomain)
        result = result_cell(domain)
        self.decide(result, self.default, f"the default device, for {rule}", expression)
        device = self.solution.device(result)
        for leaf in leaves(domain):
            self.decide(leaf, device, f"the device of {rule}", expression)

    def rest(self, expression: Expression) -> None:
        """What no call reads: items of tuples, variables of patterns."""
        domain = self.network.domains.get(expression)
        for leaf in leaves(domain) if domain is not None else ():
            self.decide(leaf, self.default, "the default device, for", expression)

    def decide(self, cell: int, device: VirtualDevice, rule: str, expression: Expression) -> None:
        """Complete a cell unless it is decided."""
        if is_placed(self.solution.places.label(cell)):
            return
        known = self.solution.device(cell)
        whole = complete(self.configuration, known, device)
        held = self.solution.pin(Pin(cell, whole, f"is {rule}", expression))
        assert held, (known, whole)
