"""Writes a solution into its program: devices of parameters and results, copies, and the
annotations from which the device of every expression can be read.

In: a program, its network and the solution. Out: the planned program. Not done here: deciding.

An operand that is elsewhere than what reads it is copied. One that is elsewhere than the expression
around it is fixed there; a variable, a global function or a literal is not, because its device is
known from where it is bound. The value of a ``let`` is always fixed: passes move it about.
"""

from __future__ import annotations

from dataclasses import field, replace

from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_compiler.programs.expressions import (
    DeviceCopy,
    Expression,
    FunctionCall,
    FunctionLiteral,
    LetIn,
    OnDevice,
    Variable,
)
from ingot_compiler.programs.fixed import fixed
from ingot_compiler.programs.kernel_scopes import with_scopes
from ingot_compiler.programs.operators import is_source
from ingot_compiler.programs.planner.network import Domain, FunctionDomain, Network, result_cell
from ingot_compiler.programs.planner.solution import Solution
from ingot_compiler.programs.program import Program, ProgramKernel
from ingot_compiler.programs.walk import post_order, with_devices
from ingot_runtime.lazy_dataclass import dataclass


def capture(program: Program, network: Network, solution: Solution) -> Program:
    """The program in which the text says every device."""
    capturing = _Capture(network, solution)
    functions = {name: capturing.function(one) for name, one in program.functions.items()}
    planned = {
        name: _planned_kernel(kernel, network.kernels.get(name), solution)
        for name, kernel in program.kernels.items()
    }
    return replace(program, functions=functions, kernels=planned)


def _planned_kernel(
    kernel: ProgramKernel, domain: FunctionDomain | None, solution: Solution
) -> ProgramKernel:
    """The kernel with the scopes that its arguments are in; one that nobody calls as it is."""
    if domain is None:
        return kernel
    cells = (*domain.parameters, domain.result)
    return with_scopes(kernel, [solution.scopes.label(result_cell(cell)) for cell in cells])


@dataclass(slots=True)
class _Capture:
    network: Network
    solution: Solution
    made: dict[Expression, Expression] = field(default_factory=dict[Expression, Expression])
    copies: dict[tuple[Expression, VirtualDevice], Expression] = field(
        default_factory=dict[tuple[Expression, VirtualDevice], Expression]
    )
    devices: dict[int, VirtualDevice] = field(default_factory=dict[int, VirtualDevice])

    def function(self, function: FunctionLiteral) -> FunctionLiteral:
        """A global function."""
        for expression in post_order([function], with_devices):
            self.bind(expression)
        for expression in post_order([function], with_devices):
            if expression not in self.made:
                self.made[expression] = self.rebuilt(expression)
        made = self.made[function]
        assert isinstance(made, FunctionLiteral)
        return made

    def bind(self, expression: Expression) -> None:
        """Write the devices of parameters and of declared variables where they are bound; readers
        follow."""
        bound: tuple[Variable, ...] = ()
        if isinstance(expression, FunctionLiteral) and not expression.primitive:
            bound = expression.parameters
        elif isinstance(expression, LetIn) and not expression.variable.device.is_open:
            bound = (expression.variable,)
        for variable in bound:
            self.made[variable] = replace(variable, device=self.at(variable))

    def device(self, domain: Domain) -> VirtualDevice:
        """Where a value is; of a function, where its result is."""
        cell = result_cell(domain)
        if cell not in self.devices:
            self.devices[cell] = self.solution.device(cell)
        return self.devices[cell]

    def at(self, expression: Expression) -> VirtualDevice:
        """Where the value of an expression is."""
        return self.device(self.network.domains[expression])

    def rebuilt(self, expression: Expression) -> Expression:
        """The expression with planned operands."""
        match expression:
            case FunctionLiteral(primitive=True):
                return expression
            case FunctionLiteral():
                return self.literal(expression)
            case LetIn():
                return self.let(expression)
            case FunctionCall():
                return self.call(expression)
            case OnDevice():
                return self.annotation(expression)
            case DeviceCopy():
                return self.explicit_copy(expression)
            case _:
                around = self.at(expression)
                count = len(expression.operands)
                operands = [self.operand(expression, index, around) for index in range(count)]
                return expression.with_operands(operands)

    def literal(self, function: FunctionLiteral) -> FunctionLiteral:
        """A function with its devices."""
        device = self.at(function)
        parameters = [self.made[parameter] for parameter in function.parameters]
        return replace(
            function,
            parameters=tuple(one for one in parameters if isinstance(one, Variable)),
            body=self.operand(function, 0, device),
            device=device,
        )

    def let(self, let: LetIn) -> LetIn:
        """The value where its variable is, and the body, which is where the whole is."""
        variable = self.made.get(let.variable, let.variable)
        assert isinstance(variable, Variable)
        value, body = self.operand(let, 0, None), self.source_at(let.body, self.at(let))
        return replace(let, variable=variable, value=value, body=body)

    def call(self, call: FunctionCall) -> Expression:
        """The function stands as it is; arguments are where it wants them."""
        around = self.at(call)
        count = len(call.operands)
        arguments = [self.operand(call, index, around) for index in range(1, count)]
        return call.with_operands([self.made[call.callee], *arguments])

    def operand(self, parent: Expression, index: int, around: VirtualDevice | None) -> Expression:
        """An operand, copied to where it is read, and fixed there if what is around is not."""
        expected = self.device(self.network.expected[parent, index])
        operand = self.network.read.get((parent, index), parent.operands[index])
        found = self.on(operand, expected)
        return found if expected == around else fixed(found, expected)

    def on(self, expression: Expression, device: VirtualDevice) -> Expression:
        """The value of an expression on a device."""
        if is_source(expression):
            return self.source_at(expression, device)
        found = self.made[expression]
        actual = self.at(expression)
        if actual == device:
            return found
        if (found, device) not in self.copies:
            copy = DeviceCopy(fixed(found, actual), actual, device, span=expression.span)
            self.copies[found, device] = copy
        return self.copies[found, device]

    def source_at(self, expression: Expression, device: VirtualDevice) -> Expression:
        """What is made of nothing is made again on each device that reads it."""
        if not is_source(expression):
            return self.made[expression]
        if (expression, device) not in self.copies:
            self.copies[expression, device] = replace(expression)
        return self.copies[expression, device]

    def annotation(self, annotation: OnDevice) -> Expression:
        """The body, copied to where the annotation is read."""
        inner = self.device(self.network.expected[annotation, 0])
        return self.moved(self.on(annotation.body, inner), inner, annotation)

    def explicit_copy(self, copy: DeviceCopy) -> Expression:
        """A copy whose ends are one device is none."""
        source = self.device(self.network.expected[copy, 0])
        return self.moved(self.on(copy.value, source), source, copy)

    def moved(
        self, value: Expression, device: VirtualDevice, parent: OnDevice | DeviceCopy
    ) -> Expression:
        """``value``, which is on ``device``, where the result of ``parent`` is."""
        destination = self.at(parent)
        if device == destination:
            return value
        return DeviceCopy(fixed(value, device), device, destination, span=parent.span)
