"""Finds the type of every expression of a program.

In: a program, whose functions state the types of their parameters and results. Out: types by
expression, and what is wrong. Not done here: names and devices (``verify_program``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from ingot_compiler.ir.attributes import Attribute, attribute_str
from ingot_compiler.ir.op_type_error import OpTypeError, require
from ingot_compiler.ir.types import TensorType
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
    Pattern,
    Projection,
    ReadReference,
    Tuple,
    Variable,
    WriteReference,
)
from ingot_compiler.programs.operators import find_operator
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.show import show
from ingot_compiler.programs.types import (
    UNIT,
    DataType,
    FunctionType,
    ReferenceType,
    TupleType,
    Type,
)
from ingot_compiler.programs.walk import post_order
from ingot_runtime.lazy_dataclass import dataclass

_BOOL = TensorType("bool", ())


@dataclass(frozen=True, slots=True)
class TypeProblem:
    """An expression that has no type, and why."""

    expression: Expression
    rule: str
    expected: str
    got: str


@dataclass(frozen=True, slots=True)
class ProgramTypes:
    """The type of each expression; ``problems`` says which have none."""

    types: dict[Expression, Type]
    problems: tuple[TypeProblem, ...]


def infer_types(program: Program) -> ProgramTypes:
    """The types of all expressions, those in kernels included."""
    inference = _Inference(program)
    references = (kernel.reference for kernel in program.kernels.values())
    inference.run([*program.functions.values(), *references])
    return ProgramTypes(inference.types, tuple(inference.problems))


def function_type(function: FunctionLiteral) -> FunctionType:
    """The type that a literal states."""
    parameters = tuple(parameter.type or UNIT for parameter in function.parameters)
    return FunctionType(parameters, function.result_type)


_Key = tuple[str, tuple[Type, ...], tuple[tuple[str, Attribute], ...]]


@dataclass(slots=True)
class _Inference:
    program: Program
    types: dict[Expression, Type] = field(default_factory=dict[Expression, Type])
    problems: list[TypeProblem] = field(default_factory=list[TypeProblem])
    values: dict[Variable, Expression] = field(default_factory=dict[Variable, Expression])
    fields: dict[Variable, Type] = field(default_factory=dict[Variable, Type])
    known: dict[_Key, Type] = field(default_factory=dict["_Key", Type])

    def run(self, roots: Sequence[Expression]) -> None:
        constructors = self.program.constructors()
        for expression in post_order(roots):  # all binders, before any reader is looked at
            if isinstance(expression, LetIn):
                self.values[expression.variable] = expression.value
            elif isinstance(expression, MatchData):
                for pattern in expression.patterns:
                    if pattern.constructor in constructors:
                        types = constructors[pattern.constructor][1].fields
                        self.fields.update(_bound(pattern, types))
        for expression in post_order(roots):
            self.visit(expression)

    def visit(self, expression: Expression) -> None:
        """Give the expression a type, unless one of its operands has none."""
        operands = [self.types.get(operand) for operand in expression.operands]
        known = [type_ for type_ in operands if type_ is not None]
        if len(known) < len(operands):
            return
        try:
            type_ = self.rule(expression, known)
        except OpTypeError as error:
            rule = show(expression, 1)
            problem = TypeProblem(expression, rule, str(error.expected), str(error.got))
            self.problems.append(problem)
        else:
            self.types[expression] = type_

    def rule(self, expression: Expression, operands: Sequence[Type]) -> Type:
        """The type of an expression whose operands have types."""
        match expression:
            case Variable():
                return self.variable(expression)
            case GlobalReference():
                return self.global_type(expression)
            case OperatorCall():
                return self.operator_call(expression, tuple(operands))
            case FunctionCall():
                return _applied(operands[0], operands[1:])
            case KernelCall():
                return self.kernel_call(expression, operands)
            case FunctionLiteral():
                _require_same(expression.result_type, operands[0], "a body")
                return function_type(expression)
            case LetIn() | OnDevice() | DeviceCopy():
                return operands[-1]
            case Tuple():
                return TupleType(tuple(operands))
            case Construct():
                return self.construct(expression, operands)
            case MatchData():
                return self.match(expression, operands)
            case _:
                return _of_references(expression, operands)

    def variable(self, variable: Variable) -> Type:
        """Declared, of a field, of the value, or as a literal that calls itself states it."""
        if variable.type is not None:
            return variable.type
        if variable in self.fields:
            return self.fields[variable]
        value = self.values.get(variable)
        require(value is not None, "a variable that something binds", f"%{variable.name}")
        if isinstance(value, FunctionLiteral):
            return function_type(value)
        found = self.types.get(value) if value is not None else None
        if found is None:
            raise OpTypeError("a value that does not read itself", f"%{variable.name}")
        return found

    def operator_call(self, call: OperatorCall, operands: tuple[Type, ...]) -> Type:
        """By the operator's rule; equal layers are looked at once."""
        key = call.operator, operands, call.attributes
        if key not in self.known:
            operator = find_operator(call.operator)
            if operator is None:
                raise OpTypeError("an operator", call.operator)
            self.known[key] = operator.infer(operands, dict(call.attributes))
            if operator.on_attribute:
                name = attribute_str(dict(call.attributes), "device")
                declared = [one.name for one in self.program.devices]
                require(name in declared, f"a device out of {', '.join(declared) or 'none'}", name)
        return self.known[key]

    def global_type(self, reference: GlobalReference) -> Type:
        """What the function states."""
        function = self.program.functions.get(reference.name)
        if function is None:
            names = ", ".join(f"@{name}" for name in self.program.functions)
            raise OpTypeError(f"a function out of {names}", f"@{reference.name}")
        return function_type(function)

    def kernel_call(self, call: KernelCall, operands: Sequence[Type]) -> Type:
        """What the kernel states."""
        kernel = self.program.kernels.get(call.kernel)
        if kernel is None:
            names = ", ".join(f"@{name}" for name in self.program.kernels) or "none"
            raise OpTypeError(f"a kernel out of {names}", f"@{call.kernel}")
        return _applied(kernel.type, operands)

    def construct(self, call: Construct, operands: Sequence[Type]) -> Type:
        """The data type of the constructor."""
        found = self.program.constructors().get(call.constructor)
        if found is None:
            raise OpTypeError("a constructor that a data type has", call.constructor)
        _require_all(found[1].fields, operands, "fields")
        return DataType(found[0].name)

    def match(self, match: MatchData, operands: Sequence[Type]) -> Type:
        """The type that all results have; the patterns are all constructors of one data type."""
        constructors = self.program.constructors()
        for pattern in match.patterns:
            found = constructors.get(pattern.constructor)
            name = found[0].name if found else "no data type"
            require(operands[0] == DataType(name), f"a pattern of {operands[0]}", f"one of {name}")
        given = sorted(pattern.constructor for pattern in match.patterns)
        data = [data for data in self.program.data if DataType(data.name) == operands[0]]
        require(len(data) == 1, "a value of a data type", operands[0])
        wanted = sorted(constructor.name for constructor in data[0].constructors)
        require(given == wanted, f"a pattern for each of {' '.join(wanted)}", " ".join(given))
        require(len(operands) > 1, "a pattern", "none")
        for result in operands[2:]:
            _require_same(operands[1], result, "results")
        return operands[1]


def _bound(pattern: Pattern, types: Iterable[Type]) -> dict[Variable, Type]:
    pairs = zip(pattern.variables, types, strict=False)
    return {variable: type_ for variable, type_ in pairs if variable is not None}


def _applied(callee: Type, arguments: Sequence[Type]) -> Type:
    if not isinstance(callee, FunctionType):
        raise OpTypeError("a function", callee)
    _require_all(callee.parameters, arguments, "arguments")
    return callee.result


def _of_references(expression: Expression, operands: Sequence[Type]) -> Type:
    match expression, operands:
        case Projection(), [TupleType(items)] if 0 <= expression.index < len(items):
            return items[expression.index]
        case IfElse(), [condition, then, otherwise]:
            require(condition == _BOOL, f"a condition of type {_BOOL}", condition)
            _require_same(then, otherwise, "branches")
            return then
        case NewReference(), [content]:
            return ReferenceType(content)
        case ReadReference(), [ReferenceType(content)]:
            return content
        case WriteReference(), [ReferenceType(content), value]:
            _require_same(content, value, "a content")
            return UNIT
        case _:
            expected = (
                f"a tuple with an item {expression.index}"
                if isinstance(expression, Projection)
                else "a reference"
            )
            raise OpTypeError(expected, operands[0])


def _require_all(wanted: Sequence[Type], given: Sequence[Type], what: str) -> None:
    require(len(wanted) == len(given), f"{len(wanted)} {what}", len(given))
    for one, other in zip(wanted, given, strict=True):
        _require_same(one, other, what)


def _require_same(wanted: Type, given: Type, what: str) -> None:
    require(wanted == given, f"{what} of type {wanted}", given)
