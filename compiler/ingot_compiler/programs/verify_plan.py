"""Checks that a planned program can run on devices with separate memories.

In: a program. Out: problems; none means that every operator reads its own device, and that every
crossing is a copy, whatever the inputs are. Not done here: planning; this shares no code with the
planner.

What a run on separate memories asks of values (``interpret_program``), this asks of expressions: a
value that is no function is on the device of its expression, and every function that a call may
reach (``function_flow``) has parameters and a result where the call has its arguments and itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from ingot_compiler.ir.attributes import attribute_str
from ingot_compiler.placement.configuration import HOST
from ingot_compiler.placement.virtual_device import VirtualDevice, join
from ingot_compiler.programs.copyable import is_copyable
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
from ingot_compiler.programs.function_flow import function_flow
from ingot_compiler.programs.infer_types import infer_types
from ingot_compiler.programs.kernel_scopes import get_scopes, kernel_operand
from ingot_compiler.programs.operators import find_operator
from ingot_compiler.programs.program import Program, ProgramKernel
from ingot_compiler.programs.recover_devices import PlanProblem, recover_devices
from ingot_compiler.programs.types import FunctionType, Type
from ingot_runtime.lazy_dataclass import dataclass


def find_plan_problems(program: Program) -> Iterator[PlanProblem]:
    """What does not hold in a plan."""
    found = recover_devices(program)
    yield from found.problems
    check = _Check(program, found.devices)
    for expression in found.devices:
        for rule, wanted, got in check.rules(expression):
            if wanted != got:
                yield PlanProblem(expression, rule, str(wanted), str(got))


_Rule = tuple[str, VirtualDevice | str, VirtualDevice | str]
"""What, the device that is wanted, the device that is there."""


@dataclass(slots=True)
class _Check:
    program: Program
    devices: Mapping[Expression, VirtualDevice]
    flow: Mapping[Expression, tuple[FunctionLiteral, ...]] = field(init=False)
    types: Mapping[Expression, Type] = field(init=False)

    def __post_init__(self) -> None:
        self.flow = function_flow(self.program)
        self.types = infer_types(self.program).types

    def rules(self, expression: Expression) -> Iterator[_Rule]:
        """What holds of one expression in a plan."""
        own = self.devices[expression]
        if isinstance(self.types[expression], FunctionType):
            for function in self.flow.get(expression, ()):
                if not function.primitive:
                    yield "a function is where its result is", function.device, own
        match expression:
            case FunctionLiteral() if expression.primitive:
                return
            case FunctionLiteral() | OnDevice():
                body = self.devices[expression.operands[0]]
                yield "the body is where the whole is", own, body
            case LetIn():
                yield "the body is where the whole is", own, self.devices[expression.body]
                yield from self.let(expression)
            case DeviceCopy():
                yield from self.copy(expression)
            case OperatorCall():
                yield from self.operator(expression)
            case FunctionCall():
                yield from self.call(expression)
            case KernelCall():
                kernel = self.program.kernels[expression.kernel]
                yield from _kernel_rules(expression, self.devices, kernel)
            case Variable() | GlobalReference():
                return
            case _:
                for operand in expression.operands:
                    yield "a part is where the whole is", own, self.devices[operand]

    def let(self, let: LetIn) -> Iterator[_Rule]:
        """A variable may say its device, which is that of its value."""
        if not let.variable.device.is_open:
            name = let.variable.name
            yield f"%{name} is declared", let.variable.device, self.devices[let.value]

    def copy(self, copy: DeviceCopy) -> Iterator[_Rule]:
        """From where the value is to where it is read; a value that is made of tensors."""
        yield "a copy ends where it is read", self.devices[copy], copy.destination
        yield "a copy begins where its value is", copy.source, self.devices[copy.value]
        type_ = self.types[copy.value]
        if not is_copyable(type_, self.program.data):
            yield "what is copied is made of tensors", "tensors", str(type_)

    def operator(self, call: OperatorCall) -> Iterator[_Rule]:
        """One device, but for sizes, and for results that are elsewhere by the operator's rule."""
        operator = find_operator(call.operator)
        assert operator is not None
        own, host = self.devices[call], self.program.device(HOST)
        if operator.on_host:
            yield "the result is on the host", host, own
        if operator.on_attribute:
            name = attribute_str(dict(call.attributes), "device")
            requested = self.program.device(name)
            yield "the result is where the call says", join(requested, own) or requested, own
        for index, argument in enumerate(call.arguments):
            if index in operator.host_operands:
                yield f"operand {index} is on the host", host, self.devices[argument]
            elif not operator.on_host:
                yield f"operand {index} is where the call is", own, self.devices[argument]

    def call(self, call: FunctionCall) -> Iterator[_Rule]:
        """Arguments and result lie where every function that the callee may be has them."""
        own = self.devices[call]
        yield "the result is where the call is", own, self.devices[call.callee]
        for function in self.flow.get(call.callee, ()):
            arguments = [self.devices[argument] for argument in call.arguments]
            if not function.primitive:
                yield "the result is where the call is", own, function.device
            for parameter, found in zip(function.parameters, arguments, strict=True):
                wanted = parameter.device
                if function.primitive:
                    wanted = kernel_operand(parameter.device, own, found)
                yield f"the argument for %{parameter.name}", wanted, found


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
