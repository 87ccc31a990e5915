"""Collects what a program asks of devices: one rule per kind of expression.

In: a program and the types of its expressions. Out: a ``Network``. Not done here: solving it.

A call of an operator runs on one device, a function has one device for each parameter and for its
result, a tuple or a data value is on one device with all that is in it. An operand is linked to
what reads it; that link may be broken by a copy where the operand can be copied and no annotation
stands between them. A call that is annotated runs where the annotation says; a value that is only
named there may be copied to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ingot_compiler.ir.attributes import attribute_str
from ingot_compiler.ir.errors import ModelError, UserError
from ingot_compiler.placement.configuration import HOST, Configuration
from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_compiler.programs.copyable import is_copyable
from ingot_compiler.programs.expressions import (
    Construct,
    DeviceCopy,
    Expression,
    FunctionCall,
    FunctionLiteral,
    GlobalReference,
    IfElse,
    KernelCall,
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
from ingot_compiler.programs.kernel_scopes import get_scopes
from ingot_compiler.programs.operators import Operator, find_operator, is_source
from ingot_compiler.programs.plan_devices import advice
from ingot_compiler.programs.planner.network import (
    Domain,
    FunctionDomain,
    Link,
    LinkKind,
    Network,
    Pin,
    leaves,
    result_cell,
)
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.show import show
from ingot_compiler.programs.types import FunctionType, Type
from ingot_compiler.programs.walk import post_order, with_devices
from ingot_runtime.lazy_dataclass import dataclass


def collect(
    program: Program,
    types: Mapping[Expression, Type],
    configuration: Configuration,
    order: tuple[str, ...],
) -> Network:
    """The network of a program, its functions visited in ``order``.

    Raises:
        ModelError: an annotation asks for a kind of device that there is none of.
    """
    collector = _Collector(program, types, configuration)
    for name in order:
        collector.declare(name)
    for name in order:
        collector.visit_all(program.functions[name])
    return collector.network


@dataclass(slots=True)
class _Collector:
    program: Program
    types: Mapping[Expression, Type]
    configuration: Configuration
    network: Network = field(default_factory=Network)
    globals: dict[str, Domain] = field(default_factory=dict[str, Domain])
    annotated: set[Expression] = field(default_factory=set[Expression])
    copyable: dict[Type, bool] = field(default_factory=dict[Type, bool])
    read_count: int = 0

    def declare(self, name: str) -> None:
        """Give a global function its cells before any call of it is looked at."""
        self.globals[name] = self.signature(self.program.functions[name])

    def signature(self, function: FunctionLiteral) -> Domain:
        """Cells of a literal: its parameters' own, and new ones for the result."""
        parameters = tuple(self.variable(parameter) for parameter in function.parameters)
        result = self.new(function.result_type)
        domain = FunctionDomain(parameters, result)
        self.network.domains[function] = domain
        if not function.device.is_open:
            self.pin(result_cell(result), function.device, "is the declared result of", function)
        return domain

    def variable(self, variable: Variable) -> Domain:
        """The cells of a variable, wherever it is met first."""
        if variable not in self.network.domains:
            self.bind(variable, variable.type or self.types[variable])
        return self.network.domains[variable]

    def bind(self, variable: Variable, type_: Type) -> None:
        """New cells for a variable, where it is declared."""
        domain = self.network.domains[variable] = self.new(type_)
        if not variable.device.is_open:
            self.pin(result_cell(domain), variable.device, "is declared for", variable)

    def new(self, type_: Type) -> Domain:
        """New cells for a value of a type."""
        if isinstance(type_, FunctionType):
            return FunctionDomain(tuple(map(self.new, type_.parameters)), self.new(type_.result))
        return self.network.new_cell()

    def pin(self, cell: int, device: VirtualDevice, rule: str, expression: Expression) -> None:
        """Ask for a device."""
        try:
            canonical = self.configuration.canonical(device)
        except UserError as error:
            where = f"{show(expression)} at {expression.span}"
            raise ModelError(error.what, where, error.why, advice(device)) from None
        self.network.pins.append(Pin(cell, canonical, rule, expression))

    def link(
        self, left: Domain, right: Domain, kind: LinkKind, rule: str, expression: Expression
    ) -> None:
        """Ask for one device; cells of functions one by one, and never by a copy."""
        if isinstance(left, int) and isinstance(right, int):
            if left != right:
                link = Link(left, right, kind, rule, expression, self.read_count)
                self.network.links.append(link)
            return
        for one, other in zip(_flat(left), _flat(right), strict=True):
            self.link(one, other, LinkKind.HARD, rule, expression)

    def collapse(self, cell: int, domain: Domain, rule: str, expression: Expression) -> None:
        """Everything in ``domain`` is where ``cell`` is."""
        for leaf in leaves(domain):
            self.link(cell, leaf, LinkKind.HARD, rule, expression)

    def use(
        self,
        parent: Expression,
        index: int,
        expected: Domain,
        rule: str,
        soft: LinkKind = LinkKind.USE,
    ) -> None:
        """The operand is read where ``expected`` says, perhaps as a copy if ``soft`` allows it."""
        self.network.expected[parent, index] = expected
        self.read_count += 1
        operand = parent.operands[index]
        if not is_source(operand):
            kind = self.kind_of(operand, soft)
            self.link(self.network.domains[operand], expected, kind, rule, parent)

    def use_inside(self, parent: Expression, index: int, cell: int, rule: str) -> None:
        """The operand is a part of what ``cell`` is about; functions collapse to it."""
        operand = parent.operands[index]
        domain = self.network.domains.get(operand)
        if isinstance(domain, FunctionDomain):
            self.network.expected[parent, index] = domain
            self.collapse(cell, domain, rule, parent)
        else:
            self.use(parent, index, cell, rule)

    def ask(self, parent: OnDevice | DeviceCopy, requested: int, rule: str) -> None:
        """What is annotated or copied is where ``asked`` is; a call runs there, a value that is
        only named may be copied there."""
        (body,) = parent.operands
        if is_source(body):
            return
        is_fixed = isinstance(parent, OnDevice) and parent.is_fixed
        kind = self.kind_of(body, LinkKind.ANNOTATED)
        kind = LinkKind.HARD if is_fixed or _is_call(body) else kind
        self.link(self.network.domains[body], requested, kind, rule, parent)
        if isinstance(body, OnDevice) and isinstance(body.body, KernelCall):
            self.link(self.network.domains[body.body], requested, LinkKind.PLACE, rule, parent)

    def kind_of(self, operand: Expression, soft: LinkKind) -> LinkKind:
        """``soft`` where a copy may stand between the operand and what reads it."""
        if operand in self.annotated or not self.may_copy(self.types[operand]):
            return LinkKind.HARD
        return soft

    def may_copy(self, type_: Type) -> bool:
        """Whether values of a type can be copied."""
        if type_ not in self.copyable:
            self.copyable[type_] = is_copyable(type_, self.program.data)
        return self.copyable[type_]

    def visit_all(self, function: FunctionLiteral) -> None:
        """All expressions of a global function, operands first; kernels have no expressions."""
        for expression in post_order([function], with_devices):
            if isinstance(expression, FunctionLiteral) and expression not in self.network.domains:
                self.signature(expression)
            self.visit(expression)

    def visit(self, expression: Expression) -> None:
        """The rule of one expression."""
        match expression:
            case Variable():
                self.variable(expression)
            case GlobalReference():
                self.network.domains[expression] = self.globals[expression.name]
            case OperatorCall():
                self.operator_call(expression)
            case FunctionCall():
                self.call(expression)
            case KernelCall():
                self.kernel_call(expression)
            case FunctionLiteral():
                self.function(expression)
            case LetIn():
                self.let(expression)
            case Projection() | ReadReference():
                self.item(expression)
            case IfElse() | MatchData():
                self.choice(expression)
            case Tuple() | Construct() | NewReference():
                self.container(expression)
            case WriteReference():
                self.write(expression)
            case OnDevice():
                self.on_device(expression)
            case DeviceCopy():
                self.device_copy(expression)
            case _:
                raise AssertionError(expression)

    def operator_call(self, call: OperatorCall) -> None:
        """One device for operands and result, a new one at each call; the host reads sizes."""
        if is_source(call):
            self.network.domains[call] = self.network.new_cell()
            return
        operator = find_operator(call.operator)
        assert operator is not None
        cell = self.network.new_cell()
        result = cell
        if operator.on_host or operator.on_attribute:
            result = self.network.new_cell()
            device = self.result_device(call, operator)
            self.pin(result, device, "is where the result is of", call)
        self.network.domains[call] = result
        for index, operand in enumerate(call.arguments):
            if index in operator.host_operands:
                on_host = self.network.new_cell()
                rule = f"is where the host reads operand {index} of"
                self.pin(on_host, self.configuration.named(HOST), rule, call)
                # A parameter that is a size is passed to the host, whatever else reads it.
                is_parameter = isinstance(operand, Variable) and operand.type is not None
                soft = LinkKind.HARD if is_parameter else LinkKind.USE
                self.use(call, index, on_host, f"is operand {index} of", soft)
            elif operator.on_host:
                self.read_shape(call, index)
            else:
                self.use(call, index, cell, f"is operand {index} of")

    def read_shape(self, call: OperatorCall, index: int) -> None:
        """A shape is read where its tensor is: no copy that an annotation allows is made for it."""
        operand = call.arguments[index]
        while isinstance(operand, OnDevice) and not operand.constrain_result:
            operand = operand.body
        self.network.read[call, index] = operand
        cell = self.network.new_cell() if is_source(operand) else self.network.domains[operand]
        self.network.expected[call, index] = cell

    def result_device(self, call: OperatorCall, operator: Operator) -> VirtualDevice:
        """The host, or the declared device that the call names."""
        if operator.on_host:
            return self.configuration.named(HOST)
        return self.program.device(attribute_str(dict(call.attributes), "device"))

    def call(self, call: FunctionCall) -> None:
        """Arguments and result as the function has them, the same at all calls."""
        domain = self.network.domains[call.callee]
        assert isinstance(domain, FunctionDomain)
        self.network.domains[call] = domain.result
        self.network.expected[call, 0] = domain
        for index, parameter in enumerate(domain.parameters, 1):
            self.use(call, index, parameter, f"is argument {index - 1} of")

    def kernel_call(self, call: KernelCall) -> None:
        """Relate arguments and result as ``call`` does; a kernel has one device, and its buffers
        have scopes."""
        if call.kernel not in self.network.kernels:
            self.network.kernels[call.kernel] = self.kernel(call)
        domain = self.network.kernels[call.kernel]
        self.network.domains[call] = domain.result
        for index, parameter in enumerate(domain.parameters):
            self.use(call, index, parameter, f"is argument {index} of")

    def kernel(self, call: KernelCall) -> FunctionDomain:
        """Cells of a kernel, with the scopes of its buffers."""
        kernel = self.program.kernels[call.kernel]
        domain = self.new(kernel.type)
        assert isinstance(domain, FunctionDomain)
        cells = [*domain.parameters, domain.result]
        for cell, scope in zip(cells, get_scopes(kernel), strict=True):
            assert isinstance(cell, int)
            if scope:
                device = VirtualDevice(memory_scope=scope)
                self.pin(cell, device, "is the scope of a buffer of the kernel in", call)
            rule = "belongs to the same kernel as the result of"
            self.link(cell, domain.result, LinkKind.PLACE, rule, call)
        return domain

    def function(self, function: FunctionLiteral) -> None:
        """The result is what the body gives; a primitive function is one call."""
        domain = self.network.domains[function]
        assert isinstance(domain, FunctionDomain)
        if function.primitive:
            self.primitive(function, domain)
            return
        # A function runs where its result is, rather than copies it there.
        self.use(function, 0, domain.result, "is the result of", LinkKind.ANNOTATED)
        self.fix_where_bound(function.body, domain.result)

    def primitive(self, function: FunctionLiteral, domain: FunctionDomain) -> None:
        """All on one device unless declared; scopes apart as soon as one is declared."""
        given = [parameter.device for parameter in function.parameters]
        scoped = any(device.memory_scope for device in (*given, function.device))
        kind = LinkKind.PLACE if scoped else LinkKind.HARD
        for parameter, device in zip(domain.parameters, given, strict=True):
            if not device.device_type:
                rule = "belongs to the same kernel as the result of"
                self.link(parameter, domain.result, kind, rule, function)

    def fix_where_bound(self, value: Expression, bound: Domain) -> None:
        """A value that is annotated where it is bound stays there: a copy would be a second
        choice that nobody asked for."""
        if isinstance(value, OnDevice) and value.is_normal:
            self.pin(result_cell(bound), value.device, "is asked for, where it is bound, by", value)

    def let(self, let: LetIn) -> None:
        """The variable is where the value is; the whole is where the body is."""
        if let.variable not in self.network.domains:
            self.bind(let.variable, self.types[let.value])
        domain = self.network.domains[let.variable]
        self.use(let, 0, domain, f"is the value of %{let.variable.name} in")
        self.fix_where_bound(let.value, domain)
        if let.body in self.annotated:
            self.annotated.add(let)
        self.network.domains[let] = self.network.domains[let.body]

    def item(self, expression: Projection | ReadReference) -> None:
        """What is inside is where the whole is."""
        domain = self.network.domains[expression] = self.new(self.types[expression])
        cell = domain if isinstance(domain, int) else self.network.new_cell()
        rule = "is what an item is taken from by"
        self.use(expression, 0, cell, rule)
        if not isinstance(domain, int):
            self.collapse(cell, domain, rule, expression)

    def choice(self, expression: IfElse | MatchData) -> None:
        """What is decided by is where the result is, functions' results and parameters too."""
        domain = self.network.domains[expression] = self.new(self.types[expression])
        cell = domain if isinstance(domain, int) else self.network.new_cell()
        if not isinstance(domain, int):
            self.collapse(cell, domain, "is a choice of functions by", expression)
        self.use(expression, 0, cell, "decides the result of")
        if isinstance(expression, MatchData):
            for pattern in expression.patterns:
                for variable in pattern.variables:
                    if variable is not None and variable in self.types:
                        rule = f"is where %{variable.name} is taken from by"
                        self.collapse(cell, self.variable(variable), rule, expression)
        for index in range(1, len(expression.operands)):
            self.use(expression, index, domain, "is a possible result of")

    def container(self, expression: Expression) -> None:
        """All parts are where the whole is."""
        cell = self.network.domains[expression] = self.network.new_cell()
        for index in range(len(expression.operands)):
            self.use_inside(expression, index, cell, "is a part of")

    def write(self, write: WriteReference) -> None:
        """The new content is where the reference is."""
        cell = self.network.domains[write] = self.network.new_cell()
        self.use(write, 0, cell, "is written to by")
        self.use_inside(write, 1, cell, "is written by")

    def on_device(self, annotation: OnDevice) -> None:
        """The body, and what reads the annotation, are pinned as the annotation says."""
        self.annotated.add(annotation)
        body = annotation.body
        if is_source(body):
            inner: Domain = self.network.new_cell()
        else:
            inner = self.network.domains[body]
        if not self.may_copy(self.types[body]):
            self.network.domains[annotation] = self.network.expected[annotation, 0] = inner
            if not annotation.device.is_open:
                self.pin(result_cell(inner), annotation.device, "is asked for by", annotation)
            return
        outer = self.network.domains[annotation] = self.network.new_cell()
        if annotation.constrain_result:
            self.pin(outer, annotation.device, "is asked of its reader by", annotation)
        if not annotation.constrain_body:
            self.network.expected[annotation, 0] = inner
            self.link(inner, outer, LinkKind.FREE, "may be copied by", annotation)
            return
        requested = self.network.expected[annotation, 0] = self.network.new_cell()
        self.pin(requested, annotation.device, "is asked for by", annotation)
        self.ask(annotation, requested, "is annotated by")
        if annotation.is_fixed:
            self.link(requested, outer, LinkKind.HARD, "is fixed by", annotation)

    def device_copy(self, copy: DeviceCopy) -> None:
        """Source and destination are pinned, and not linked."""
        self.annotated.add(copy)
        source = self.network.expected[copy, 0] = self.network.new_cell()
        self.pin(source, copy.source, "is the source of", copy)
        self.ask(copy, source, "is copied by")
        destination = self.network.domains[copy] = self.network.new_cell()
        self.pin(destination, copy.destination, "is the destination of", copy)


def _is_call(expression: Expression) -> bool:
    """Whether it runs, and does not only name what is there already."""
    while isinstance(expression, LetIn):
        expression = expression.body
    return isinstance(expression, OperatorCall | FunctionCall | KernelCall)


def _flat(domain: Domain) -> tuple[Domain, ...]:
    assert isinstance(domain, FunctionDomain)
    return (*domain.parameters, domain.result)
