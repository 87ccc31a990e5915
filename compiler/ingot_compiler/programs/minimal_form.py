"""The minimal form of a plan, and the complete one: each gives the other.

In: a planned program. Out: ``minimise``: devices of parameters, results and variables of ``let``
alone, with the ends of copies, but of no variable that is another name of a variable or a function;
``complete``: the fixed annotations from which the device of every expression is read. Not done
here: planning; this decides nothing.

What is in an expression is where the expression is, but for the arguments of calls, which are where
the function, the kernel or the operator wants them, and for the value of a copy. A fixed annotation
stays in the minimal form where nothing of that says its device: around an argument of ``shape_of``
and of a function that is not known by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ingot_compiler.ir.errors import ModelError
from ingot_compiler.placement.configuration import HOST
from ingot_compiler.placement.virtual_device import UNCONSTRAINED, VirtualDevice
from ingot_compiler.programs.expressions import (
    DeviceCopy,
    Expression,
    FunctionCall,
    FunctionLiteral,
    GlobalReference,
    KernelCall,
    LetIn,
    OnDevice,
    OperatorCall,
    Variable,
)
from ingot_compiler.programs.fixed import fixed
from ingot_compiler.programs.kernel_scopes import get_scopes
from ingot_compiler.programs.operators import find_operator
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.recover_devices import recover_devices
from ingot_compiler.programs.show import show
from ingot_compiler.programs.walk import post_order, with_devices


def minimise(program: Program) -> Program:
    """The plan without annotations that follow from parameters, results, variables and copies."""
    devices = recover_devices(program).devices
    forms = _Forms(program, devices.get)

    def rule(expression: Expression, made: Sequence[Expression]) -> Expression:
        operands = [
            one.body if isinstance(one, OnDevice) and forms.wanted(expression, index) else one
            for index, one in enumerate(made)
        ]
        if isinstance(expression, LetIn):
            variable = forms.variables[expression.variable]
            return replace(expression, variable=variable, value=operands[0], body=operands[1])
        return expression.with_operands(operands) if operands else expression

    for expression in devices:
        if isinstance(expression, LetIn):
            device = UNCONSTRAINED if _says_itself(expression) else devices[expression.value]
            forms.variables[expression.variable] = replace(expression.variable, device=device)
    return forms.rebuilt(rule)


def complete(program: Program) -> Program:
    """The plan whose minimal form ``program`` is.

    Raises:
        ModelError: a parameter, a result or a variable has no device; names it and its place.
    """
    devices = _placed(program)
    forms = _Forms(program, devices.get)

    def rule(expression: Expression, made: Sequence[Expression]) -> Expression:
        operands = [forms.marked(expression, index, one, devices) for index, one in enumerate(made)]
        if isinstance(expression, LetIn):
            variable = forms.variables[expression.variable]
            return replace(expression, variable=variable, value=operands[0], body=operands[1])
        return expression.with_operands(operands) if operands else expression

    for expression in devices:
        if isinstance(expression, LetIn):
            bare = replace(expression.variable, device=UNCONSTRAINED)
            forms.variables[expression.variable] = bare
    return forms.rebuilt(rule)


class _Forms:
    """A program, where its expressions are, and what its functions want."""

    def __init__(
        self, program: Program, device: Callable[[Expression], VirtualDevice | None]
    ) -> None:
        self.program = program
        self.device = device
        self.variables: dict[Expression, Variable] = {}
        self.host = program.device(HOST)
        self.literals = {
            one.variable: one.value
            for one in post_order(program.functions.values(), with_devices)
            if isinstance(one, LetIn) and isinstance(one.value, FunctionLiteral)
        }

    def rebuilt(self, rule: Callable[[Expression, Sequence[Expression]], Expression]) -> Program:
        """The program with each expression replaced."""
        made: dict[Expression, Expression] = dict(self.variables)
        for expression in post_order(self.program.functions.values(), with_devices):
            if expression not in made:
                operands = [made[operand] for operand in with_devices(expression)]
                made[expression] = rule(expression, operands)
        functions: dict[str, FunctionLiteral] = {}
        for name, function in self.program.functions.items():
            found = made[function]
            assert isinstance(found, FunctionLiteral)
            functions[name] = found
        return replace(self.program, functions=functions)

    def wanted(self, parent: Expression, index: int) -> VirtualDevice | None:
        """Where an operand is by what is known of its parent; None where that does not say."""
        own = self.device(parent)
        assert own is not None
        match parent:
            case FunctionLiteral():
                return parent.device
            case OnDevice():
                return parent.device
            case LetIn():
                return (
                    parent.variable.device
                    if index == 0 and not parent.variable.device.is_open
                    else own
                )
            case DeviceCopy():
                return parent.source
            case OperatorCall():
                return self.operand(parent, index, own)
            case FunctionCall():
                return own if index == 0 else self.argument(parent, index - 1)
            case KernelCall():
                scope = get_scopes(self.program.kernels[parent.kernel])[index]
                return replace(own, memory_scope=scope)
            case _:
                return own

    def operand(self, call: OperatorCall, index: int, own: VirtualDevice) -> VirtualDevice | None:
        """The device of an operand: sizes are on the host; the tensor whose shape is read is
        anywhere."""
        operator = find_operator(call.operator)
        assert operator is not None
        if index in operator.host_operands:
            return self.host
        return None if operator.on_host else own

    def argument(self, call: FunctionCall, index: int) -> VirtualDevice | None:
        """The device of the parameter of a function that is known by its name."""
        callee = call.callee
        function: Expression | None = (
            self.literals.get(callee) if isinstance(callee, Variable) else callee
        )
        if isinstance(callee, GlobalReference):
            function = self.program.functions[callee.name]
        if isinstance(function, FunctionLiteral) and not function.primitive:
            return function.parameters[index].device
        return None

    def marked(
        self,
        parent: Expression,
        index: int,
        operand: Expression,
        devices: dict[Expression, VirtualDevice],
    ) -> Expression:
        """An operand, fixed where a plan says it."""
        device = self.wanted(parent, index)
        if device is None or isinstance(parent, OnDevice) or isinstance(operand, OnDevice):
            return operand
        is_bound = isinstance(parent, DeviceCopy) or (isinstance(parent, LetIn) and index == 0)
        return fixed(operand, device) if is_bound or device != devices[parent] else operand


def _says_itself(let: LetIn) -> bool:
    """Whether the device of a variable is known from what it is another name of."""
    return isinstance(let.value, FunctionLiteral | Variable | GlobalReference)


def _placed(program: Program) -> dict[Expression, VirtualDevice]:
    """Where each expression is, from the outside inwards."""
    devices: dict[Expression, VirtualDevice] = {}
    forms = _Forms(program, devices.get)
    for function in program.functions.values():
        waiting: list[tuple[Expression, VirtualDevice]] = [(function, function.device)]
        while waiting:
            expression, device = waiting.pop()
            if expression in devices:
                continue
            _require(expression)
            devices[expression] = device
            for index, operand in enumerate(with_devices(expression)):
                wanted = forms.wanted(expression, index)
                own = operand.device if isinstance(operand, OnDevice | FunctionLiteral) else wanted
                waiting.append((operand, own if own is not None else device))
    return devices


def _require(expression: Expression) -> None:
    """The devices that a minimal form has."""
    lacking: list[tuple[str, Expression]] = []
    if isinstance(expression, FunctionLiteral) and not expression.primitive:
        lacking += [
            (f"parameter %{one.name}", one) for one in expression.parameters if one.device.is_open
        ]
        if expression.device.is_open:
            lacking.append((f"the result of {show(expression)}", expression))
    if (
        isinstance(expression, LetIn)
        and expression.variable.device.is_open
        and not _says_itself(expression)
        and not isinstance(expression.value, OnDevice)
    ):
        lacking.append((f"%{expression.variable.name}", expression))
    for what, where in lacking:
        raise ModelError(
            f"{what} has no device",
            f"{show(expression)} at {where.span}",
            "expected a device for every parameter, result and variable of a minimal form, got none",
            f"write one: {what} {{device=...}}" if what.startswith("%") else "write one",
        )
