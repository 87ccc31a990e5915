"""Runs a program with the numpy references of its operators: the oracle of plans.

In: a program, arrays for the parameters of its entry, a reader of constants. Out: values. Not done
here: speed.

``interpret_program`` looks at no device. ``interpret_plan`` runs a planned program on devices with
separate memories: every value knows where it is, and a read on another device is an error.

An expression that several read is computed once in each call of the function around it, when it is
read first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ingot_compiler.ir.attributes import Attribute, attribute_ints, attribute_str
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.dims import Sum, evaluate
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.rules.reference_rules import STORAGE_DTYPES
from ingot_compiler.ir.sizes.symbol_terms import bare_symbol
from ingot_compiler.ir.types import TensorType
from ingot_compiler.oracles.memories import Memories, Tensor, require_device
from ingot_compiler.oracles.program_values import (
    Activation,
    Closure,
    DataValue,
    ReferenceValue,
    Steps,
    TupleValue,
    Value,
)
from ingot_compiler.placement.configuration import HOST
from ingot_compiler.placement.virtual_device import UNCONSTRAINED, VirtualDevice, join
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
from ingot_compiler.programs.infer_types import infer_types
from ingot_compiler.programs.kernel_scopes import kernel_operand
from ingot_compiler.programs.operators import find_operator
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.recover_devices import recover_devices
from ingot_compiler.programs.show import show
from ingot_compiler.programs.steps import finish
from ingot_compiler.programs.types import Type


def interpret_program(
    program: Program, inputs: Sequence[Array], read: ConstantReader, entry: str = "main"
) -> tuple[Array, ...]:
    """The tensors of the entry's result, whatever devices the program names."""
    return _Interpreter(program, read, None).run(entry, inputs)


def interpret_plan(
    program: Program, inputs: Sequence[Array], read: ConstantReader, entry: str = "main"
) -> tuple[Array, ...]:
    """Run a program on devices with separate memories; return the tensors of the entry's result.

    Raises:
        VerificationError: a value is read on a device that it is not on.
    """
    devices = recover_devices(program).devices
    return _Interpreter(program, read, devices).run(entry, inputs)


class _Interpreter:
    def __init__(
        self,
        program: Program,
        read: ConstantReader,
        devices: Mapping[Expression, VirtualDevice] | None,
    ) -> None:
        self.program = program
        self.read = read
        self.devices = devices
        self.types = infer_types(program).types
        self.memories = Memories()
        self.sizes: dict[str, int] = {}
        self.host = UNCONSTRAINED if devices is None else program.device(HOST)
        self.rules = _rules(self)

    def run(self, entry: str, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The arrays in the result of a call of ``entry``."""
        function = self.program.functions[entry]
        arguments: list[Value] = []
        for parameter, array in zip(function.parameters, inputs, strict=True):
            if isinstance(parameter.type, TensorType):
                self.bind_sizes(parameter.type, array)
            device = UNCONSTRAINED if self.devices is None else parameter.device
            arguments.append(self.memories.store(array, device))
        result = finish(self.call(Closure(function, None), arguments, function))
        return tuple(self.arrays(result, function))

    def bind_sizes(self, type_: TensorType, array: Array) -> None:
        """Learn the sizes of an input."""
        for dim, size in zip(type_.shape, array.shape, strict=True):
            name = bare_symbol(dim)
            if name is not None:
                self.sizes.setdefault(name, size)

    def arrays(self, value: Value, reader: Expression) -> list[Array]:
        """The tensors of a value, from left to right."""
        if isinstance(value, Tensor):
            return [self.memories.load(value, value.device, reader)]
        items = value.items if isinstance(value, TupleValue) else ()
        items = value.fields if isinstance(value, DataValue) else items
        return [array for item in items for array in self.arrays(item, reader)]

    def device(self, expression: Expression) -> VirtualDevice:
        """Where an expression runs."""
        return UNCONSTRAINED if self.devices is None else self.devices[expression]

    def require(self, value: Value, device: VirtualDevice, reader: Expression) -> Value:
        """The value, which must be on the device; a function is nowhere."""
        if not isinstance(value, Closure):
            require_device(value.device, device, reader)
        return value

    def value(self, expression: Expression, activation: Activation) -> Steps:
        """The value of an expression in a call, computed when it is read first."""
        found = activation.values.get(expression)
        if found is None:
            found = yield self.rules[type(expression)](expression, activation)
            activation.values[expression] = found
        return found

    def operands(self, expression: Expression, activation: Activation) -> Steps:
        """The operands, in order, as a tuple that is on no device."""
        values: list[Value] = []
        for operand in expression.operands:
            values.append((yield self.value(operand, activation)))  # noqa: PERF401 (a yield)
        return TupleValue(tuple(values), UNCONSTRAINED)

    def variable(self, variable: Expression, activation: Activation) -> Steps:
        """What is bound to it."""
        assert isinstance(variable, Variable)
        return activation.find(variable)
        yield

    def global_function(self, reference: Expression, _activation: Activation) -> Steps:
        """The function of that name."""
        assert isinstance(reference, GlobalReference)
        return Closure(self.program.functions[reference.name], None)
        yield

    def literal(self, function: Expression, activation: Activation) -> Steps:
        """The function, which sees what is around it."""
        assert isinstance(function, FunctionLiteral)
        return Closure(function, activation)
        yield

    def operator(self, call: Expression, activation: Activation) -> Steps:
        """The operator's reference, its operands in the memory where it runs."""
        assert isinstance(call, OperatorCall)
        values = yield self.operands(call, activation)
        assert isinstance(values, TupleValue)
        operator = find_operator(call.operator)
        assert operator is not None
        device = self.device(call)
        arguments: list[Array] = []
        for index, value in enumerate(values.items):
            assert isinstance(value, Tensor)
            where = self.host if index in operator.host_operands else device
            where = value.device if operator.on_host else where  # sizes are known everywhere
            arguments.append(self.memories.load(value, where, call))
        result = self.computed(call, arguments)
        if operator.on_attribute and self.devices is not None:
            requested = self.program.device(attribute_str(dict(call.attributes), "device"))
            require_device(device, join(requested, device) or requested, call)
        return self.stored(result, self.host if operator.on_host else device)

    def computed(self, call: OperatorCall, arguments: Sequence[Array]) -> Array | tuple[Array, ...]:
        """What the reference gives."""
        operator = find_operator(call.operator)
        assert operator is not None
        attributes = {name: self.bound(value) for name, value in call.attributes}
        if call.operator == "constant":
            return self.constant(self.types[call], attributes)
        try:
            made: Array | tuple[Array, ...] = operator.reference(arguments, attributes)
        except (ValueError, IndexError) as error:  # numpy's own refusal
            where = f"{show(call)} at {call.span}"
            raise ModelError("an operator cannot run on these values", where, str(error)) from error
        return made

    def constant(self, type_: Type, attributes: Mapping[str, Attribute]) -> Array:
        """A weight by its number."""
        assert isinstance(type_, TensorType)
        dtype = STORAGE_DTYPES[type_.dtype]
        flat = np.frombuffer(self.read(attribute_str(attributes, "weight")), dtype)
        return flat.reshape(attribute_ints(attributes, "shape"))

    def bound(self, value: Attribute) -> Attribute:
        """An attribute with its sizes as numbers."""
        if isinstance(value, tuple):
            return tuple(map(self.bound, value))
        return evaluate(value, self.sizes) if isinstance(value, Sum) else value

    def stored(self, result: Array | tuple[Array, ...], device: VirtualDevice) -> Value:
        """A result in the memory of a device."""
        if isinstance(result, tuple):
            return TupleValue(tuple(self.stored(item, device) for item in result), device)
        return self.memories.store(result, device)

    def apply(self, expression: Expression, activation: Activation) -> Steps:
        """A call of a closure."""
        values = yield self.operands(expression, activation)
        assert isinstance(values, TupleValue)
        closure, *arguments = values.items
        assert isinstance(closure, Closure)
        result = yield self.call(closure, arguments, expression)
        return self.require(result, self.device(expression), expression)

    def kernel(self, call: Expression, activation: Activation) -> Steps:
        """A call of a kernel: of the function that says what it computes."""
        assert isinstance(call, KernelCall)
        values = yield self.operands(call, activation)
        assert isinstance(values, TupleValue)
        closure = Closure(self.program.kernels[call.kernel].reference, None)
        return (yield self.primitive(closure, values.items, call))

    def call(self, closure: Closure, arguments: Sequence[Value], caller: Expression) -> Steps:
        """The body with the arguments bound, each where the parameter wants it."""
        if closure.function.primitive:
            return (yield self.primitive(closure, arguments, caller))
        activation = Activation(closure.activation)
        for parameter, value in zip(closure.function.parameters, arguments, strict=True):
            if self.devices is not None:
                self.require(value, parameter.device, caller)
            activation.values[parameter] = value
        result = yield self.value(closure.function.body, activation)
        if self.devices is not None:
            self.require(result, closure.function.device, caller)
        return result

    def primitive(self, closure: Closure, arguments: Sequence[Value], caller: Expression) -> Steps:
        """A kernel runs where its call is; nothing in it has a device of its own."""
        inside = _Interpreter(self.program, self.read, None)
        inside.types, inside.sizes = self.types, self.sizes
        activation = Activation(closure.activation)
        for parameter, value in zip(closure.function.parameters, arguments, strict=True):
            assert isinstance(value, Tensor)
            wanted = kernel_operand(parameter.device, self.device(caller), value.device)
            where = value.device if self.devices is None else wanted
            array = self.memories.load(value, where, caller)
            activation.values[parameter] = inside.memories.store(array, UNCONSTRAINED)
        result = finish(inside.value(closure.function.body, activation))
        assert isinstance(result, Tensor)
        return self.stored(inside.arrays(result, caller)[0], self.device(caller))
        yield

    def let(self, expression: Expression, activation: Activation) -> Steps:
        """A chain of bindings, one after the other."""
        while isinstance(expression, LetIn):
            value = yield self.value(expression.value, activation)
            activation.values[expression.variable] = value
            expression = expression.body
        return (yield self.value(expression, activation))

    def container(self, expression: Expression, activation: Activation) -> Steps:
        """A tuple, a data value or a reference, with parts on its own device."""
        values = yield self.operands(expression, activation)
        assert isinstance(values, TupleValue)
        device = self.device(expression)
        parts = tuple(self.require(one, device, expression) for one in values.items)
        if isinstance(expression, Construct):
            return DataValue(expression.constructor, parts, device)
        if isinstance(expression, NewReference):
            return ReferenceValue(parts[0], device)
        return TupleValue(parts, device)

    def projection(self, expression: Expression, activation: Activation) -> Steps:
        """An item of a tuple that is where its reader is."""
        assert isinstance(expression, Projection)
        value = yield self.value(expression.value, activation)
        self.require(value, self.device(expression), expression)
        assert isinstance(value, TupleValue)
        return value.items[expression.index]

    def choice(self, expression: Expression, activation: Activation) -> Steps:
        """The branch that the condition takes."""
        assert isinstance(expression, IfElse)
        value = yield self.value(expression.condition, activation)
        assert isinstance(value, Tensor)
        taken = self.memories.load(value, self.device(expression), expression)
        return (yield self.value(expression.then if taken else expression.otherwise, activation))

    def match(self, expression: Expression, activation: Activation) -> Steps:
        """The arm whose constructor the value has."""
        assert isinstance(expression, MatchData)
        value = yield self.value(expression.value, activation)
        self.require(value, self.device(expression), expression)
        assert isinstance(value, DataValue)
        for pattern, result in zip(expression.patterns, expression.results, strict=True):
            if pattern.constructor == value.constructor:
                for variable, item in zip(pattern.variables, value.fields, strict=True):
                    if variable is not None:
                        activation.values[variable] = item
                return (yield self.value(result, activation))
        raise AssertionError(value.constructor)

    def read_reference(self, expression: Expression, activation: Activation) -> Steps:
        """The content, which is where the reader is."""
        assert isinstance(expression, ReadReference)
        reference = yield self.value(expression.reference, activation)
        assert isinstance(reference, ReferenceValue)
        return self.require(reference.content, self.device(expression), expression)

    def write_reference(self, expression: Expression, activation: Activation) -> Steps:
        """A new content, on the device of the reference."""
        assert isinstance(expression, WriteReference)
        reference = yield self.value(expression.reference, activation)
        value = yield self.value(expression.value, activation)
        assert isinstance(reference, ReferenceValue)
        reference.content = self.require(value, reference.device, expression)
        return TupleValue((), self.device(expression))

    def annotation(self, expression: Expression, activation: Activation) -> Steps:
        """The body; in a plan it is on the device."""
        assert isinstance(expression, OnDevice)
        value = yield self.value(expression.body, activation)
        return self.require(value, self.device(expression), expression)

    def copy(self, expression: Expression, activation: Activation) -> Steps:
        """The value on the other device."""
        assert isinstance(expression, DeviceCopy)
        value = yield self.value(expression.value, activation)
        if self.devices is None:
            return value
        return self.copied(value, expression)

    def copied(self, value: Value, copy: DeviceCopy) -> Value:
        """A value with all that is in it."""
        match value:
            case Tensor():
                return self.memories.copy(value, copy.source, copy.destination, copy)
            case TupleValue():
                self.require(value, copy.source, copy)
                items = tuple(self.copied(item, copy) for item in value.items)
                return TupleValue(items, copy.destination)
            case DataValue():
                self.require(value, copy.source, copy)
                fields = tuple(self.copied(item, copy) for item in value.fields)
                return DataValue(value.constructor, fields, copy.destination)
            case _:
                raise AssertionError(value)


_Rule = Callable[[Expression, Activation], Steps]


def _rules(interpreter: _Interpreter) -> dict[type[Expression], _Rule]:
    return {
        Variable: interpreter.variable,
        GlobalReference: interpreter.global_function,
        OperatorCall: interpreter.operator,
        FunctionCall: interpreter.apply,
        KernelCall: interpreter.kernel,
        FunctionLiteral: interpreter.literal,
        LetIn: interpreter.let,
        Tuple: interpreter.container,
        Construct: interpreter.container,
        NewReference: interpreter.container,
        Projection: interpreter.projection,
        IfElse: interpreter.choice,
        MatchData: interpreter.match,
        ReadReference: interpreter.read_reference,
        WriteReference: interpreter.write_reference,
        OnDevice: interpreter.annotation,
        DeviceCopy: interpreter.copy,
    }
