"""Plans of which one device, annotation or copy is altered at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from tests.properties.random_programs import PLACES

from ingot_compiler.placement.virtual_device import UNCONSTRAINED, VirtualDevice
from ingot_compiler.programs.expressions import (
    DeviceCopy,
    Expression,
    FunctionLiteral,
    LetIn,
    OnDevice,
    Variable,
)
from ingot_compiler.programs.fixed import fixed
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.recover_devices import recover_devices
from ingot_compiler.programs.walk import post_order, rebuild


def altered(program: Program, random: Random) -> Program:
    """The plan with one alteration: of a parameter, a variable or a result, of an annotation or a
    copy, which may also go, or of an expression that gets an annotation or a copy, or is moved."""
    devices = recover_devices(program).devices
    all_of = list(post_order(program.functions.values()))
    functions_of = [one for one in all_of if isinstance(one, FunctionLiteral)]
    chosen = random.choice(random.choice((all_of, functions_of)))
    bound = list(_bound(chosen))
    variable = random.choice(bound) if bound and random.randrange(2) else None
    renewed = {} if variable is None else {variable: _elsewhere(variable, random)}

    def rule(expression: Expression, operands: Sequence[Expression]) -> Expression:
        if isinstance(expression, Variable):
            made: Expression = renewed.get(expression, expression)
        else:
            made = expression.with_operands(operands) if operands else expression
        if isinstance(made, FunctionLiteral):
            made = replace(made, parameters=tuple(renewed.get(one, one) for one in made.parameters))
        elif isinstance(made, LetIn):
            made = replace(made, variable=renewed.get(made.variable, made.variable))
        if expression is not chosen or variable is not None:
            return made
        here = devices.get(expression, UNCONSTRAINED)
        if here.is_open or random.randrange(2):
            return _altered(made, random)
        return _moved(made, here, random.choice(PLACES))

    functions: dict[str, FunctionLiteral] = {}
    for name, function in program.functions.items():
        found = rebuild(function, rule)
        functions[name] = found if isinstance(found, FunctionLiteral) else function
    return replace(program, functions=functions)


def _bound(expression: Expression) -> Iterator[Variable]:
    if isinstance(expression, FunctionLiteral):
        yield from expression.parameters
    elif isinstance(expression, LetIn):
        yield expression.variable


def _elsewhere(variable: Variable, random: Random) -> Variable:
    return replace(variable, device=random.choice((*PLACES, UNCONSTRAINED)))


def _moved(expression: Expression, here: VirtualDevice, there: VirtualDevice) -> Expression:
    """The value on another device, rightly copied to it."""
    copy = DeviceCopy(fixed(expression, here), here, there)
    return OnDevice(copy, there, constrain_result=True)


def _altered(expression: Expression, random: Random) -> Expression:
    """The expression with another device, without what it says of devices, or with more of it."""
    device: VirtualDevice = random.choice(PLACES)
    kind = random.randrange(6)
    if isinstance(expression, FunctionLiteral):
        return replace(expression, device=random.choice((*PLACES, UNCONSTRAINED)))
    if kind == 0:
        return DeviceCopy(expression, device, random.choice(PLACES))
    if kind == 1:
        return OnDevice(expression, device, constrain_result=random.randrange(4) > 0)
    if isinstance(expression, DeviceCopy):
        if kind == 2:
            return replace(expression, source=device)
        return replace(expression, destination=device) if kind == 3 else expression.value
    if isinstance(expression, OnDevice):
        return replace(expression, device=device) if kind > 3 else expression.body
    return OnDevice(expression, device, constrain_result=True)


__all__ = ["altered"]
