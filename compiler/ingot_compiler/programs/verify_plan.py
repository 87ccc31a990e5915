"""Checks that a planned program can run on devices with separate memories.

In: a program. Out: problems; none means that every operator reads its own device, and that every
crossing is a copy. Not done here: planning; this shares no code with the planner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ingot_compiler.placement.configuration import HOST
from ingot_compiler.placement.virtual_device import VirtualDevice
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
from ingot_compiler.programs.kernel_scopes import get_scopes
from ingot_compiler.programs.operators import find_operator
from ingot_compiler.programs.program import Program, ProgramKernel
from ingot_compiler.programs.recover_devices import PlanProblem, recover_devices


def find_plan_problems(program: Program) -> Iterator[PlanProblem]:
    """What does not hold in a plan."""
    found = recover_devices(program)
    yield from found.problems
    host = next(one.device for one in program.devices if one.name == HOST)
    functions: dict[Expression, FunctionLiteral] = {}
    for expression in found.devices:
        if isinstance(expression, LetIn) and isinstance(expression.value, FunctionLiteral):
            functions[expression.variable] = expression.value
        elif isinstance(expression, GlobalReference):
            functions[expression] = program.functions[expression.name]
    for expression in found.devices:
        for rule, wanted, got in _rules(expression, found.devices, functions, program, host):
            if wanted != got:
                yield PlanProblem(expression, rule, str(wanted), str(got))


_Rule = tuple[str, VirtualDevice, VirtualDevice]


def _rules(
    expression: Expression,
    devices: Mapping[Expression, VirtualDevice],
    functions: Mapping[Expression, FunctionLiteral],
    program: Program,
    host: VirtualDevice,
) -> Iterator[_Rule]:
    """(what, the device that is wanted, the device that is there)."""
    own = devices[expression]
    match expression:
        case FunctionLiteral() if expression.primitive:
            return
        case FunctionLiteral() | OnDevice():
            body = devices[expression.operands[0]]
            yield "the body is where the whole is", own, body
        case LetIn():
            yield "the body is where the whole is", own, devices[expression.body]
        case DeviceCopy():
            yield "a copy ends where it is read", own, expression.destination
            yield "a copy begins where its value is", expression.source, devices[expression.value]
        case OperatorCall():
            yield from _operator_rules(expression, devices, host)
        case FunctionCall():
            yield from _call_rules(expression, devices, functions)
        case KernelCall():
            yield from _kernel_rules(expression, devices, program.kernels[expression.kernel])
        case Variable() | GlobalReference():
            return
        case _:
            for operand in expression.operands:
                yield "a part is where the whole is", own, devices[operand]


def _operator_rules(
    call: OperatorCall, devices: Mapping[Expression, VirtualDevice], host: VirtualDevice
) -> Iterator[_Rule]:
    operator = find_operator(call.operator)
    assert operator is not None
    if operator.on_host:
        yield "the result is on the host", host, devices[call]
    for index, argument in enumerate(call.arguments):
        if index in operator.host_operands:
            yield f"operand {index} is on the host", host, devices[argument]
        elif not operator.on_host:
            yield f"operand {index} is where the call is", devices[call], devices[argument]


def _call_rules(
    call: FunctionCall,
    devices: Mapping[Expression, VirtualDevice],
    functions: Mapping[Expression, FunctionLiteral],
) -> Iterator[_Rule]:
    """Arguments are checked where the function is known by its name; elsewhere at run time."""
    yield "the result is where the call is", devices[call], devices[call.callee]
    function = functions.get(call.callee)
    if isinstance(call.callee, FunctionLiteral):
        function = call.callee
    if function is None:
        return
    if function.primitive:
        place = replace(devices[call], memory_scope="")
        for index, argument in enumerate(call.arguments):
            found = replace(devices[argument], memory_scope="")
            yield f"argument {index} is on the device of its kernel", place, found
        return
    for parameter, argument in zip(function.parameters, call.arguments, strict=True):
        yield f"the argument for %{parameter.name}", parameter.device, devices[argument]


def _kernel_rules(
    call: KernelCall, devices: Mapping[Expression, VirtualDevice], kernel: ProgramKernel
) -> Iterator[_Rule]:
    """One device, each argument in the scope of its buffers."""
    place = devices[call]
    *scopes, result = get_scopes(kernel)
    yield "the result is in its buffer's scope", replace(place, memory_scope=result), place
    for index, (argument, scope) in enumerate(zip(call.arguments, scopes, strict=True)):
        wanted = replace(place, memory_scope=scope)
        yield f"argument {index} is in the scope of its buffer", wanted, devices[argument]
