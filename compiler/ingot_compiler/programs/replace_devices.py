"""Replaces devices wherever a program names them.

In: a program, devices by those that they replace. Out: the program. Not done here: which devices
(``plan_devices``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_compiler.programs.expressions import (
    DeviceCopy,
    Expression,
    FunctionLiteral,
    LetIn,
    OnDevice,
    Variable,
)
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.walk import post_order, rebuild


def with_devices_replaced(
    program: Program, devices: Mapping[VirtualDevice, VirtualDevice]
) -> Program:
    """The program with other devices in its declarations, annotations and copies; its table stays
    as it is."""
    variables: dict[Expression, Variable] = {}

    def on(device: VirtualDevice) -> VirtualDevice:
        return devices.get(device, device)

    def variable(bound: Variable) -> Variable:
        return variables.setdefault(bound, replace(bound, device=on(bound.device)))

    def rule(expression: Expression, operands: Sequence[Expression]) -> Expression:
        if isinstance(expression, Variable):
            return variables.get(expression, expression)
        made = expression.with_operands(operands) if operands else expression
        match made:
            case FunctionLiteral():
                parameters = tuple(map(variable, made.parameters))
                return replace(made, parameters=parameters, device=on(made.device))
            case LetIn():
                return replace(made, variable=variable(made.variable))
            case OnDevice():
                return replace(made, device=on(made.device))
            case DeviceCopy():
                return replace(made, source=on(made.source), destination=on(made.destination))
            case _:
                return made

    def replaced(function: FunctionLiteral) -> FunctionLiteral:
        for expression in post_order([function]):
            for bound in _bound(expression):
                variable(bound)
        made = rebuild(function, rule)
        assert isinstance(made, FunctionLiteral)
        return made

    functions = {name: replaced(function) for name, function in program.functions.items()}
    return replace(program, functions=functions)


def _bound(expression: Expression) -> tuple[Variable, ...]:
    match expression:
        case FunctionLiteral():
            return expression.parameters
        case LetIn():
            return (expression.variable,)
        case _:
            return ()
