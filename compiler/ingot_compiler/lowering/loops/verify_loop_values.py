"""Checks the values of a loop program: names, element types, elements that are read.

In: a value, what its statement sees. Out: problems. Not done here: statements (``verify_loops``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_compiler.ir.attributes import Attributes
from ingot_compiler.ir.op_type_error import AttributeNamesError, OpTypeError
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.problem import Problem
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.loops.interpret_scalars import BINARY, UNARY
from ingot_compiler.lowering.loops.loop_scope import LoopScope
from ingot_compiler.lowering.loops.loop_value_text import print_value
from ingot_compiler.lowering.loops.loop_values import (
    NARROW,
    Apply,
    Compare,
    Constant,
    FromIndex,
    Load,
    Local,
    Value,
)

_TYPED = ("cast", "bit_cast")  # their attribute is the type of the result
_ARITIES = {"select": 3, "quantize": 5}
_LIMITS_END = 1 << 16
INTEGERS: tuple[DType, ...] = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool")
"""What a value may be that an index is made of."""
EXTERN_NUMBERS: tuple[DType, ...] = ("i32", "u32", "i64", "u64", "f32", "f64")
"""What a function of a library may be given: C passes narrower numbers in other ways on each
processor."""


def find_value_problems(
    scope: LoopScope, name: str, value: Value, dtypes: Sequence[DType] = ()
) -> Iterator[Problem]:
    """Every problem of a value that a statement called ``name`` reads; ``dtypes``: the types that
    it may have, if not all."""
    yield from _value(scope, name, value)
    found = scope.dtype_of(value)
    if dtypes and found not in dtypes:
        yield scope.problem(name, f"a value of {' or '.join(dtypes)}", found, f"what {name} reads")


def _value(scope: LoopScope, name: str, value: Value) -> Iterator[Problem]:
    match value:
        case Load(buffer, index):
            yield from scope.access(name, buffer, index)
        case FromIndex(index, _):
            yield from scope.sizes(name, index)
        case Compare(_, left, right):
            yield from scope.sizes(name, left, right)
        case Local():
            yield from _local(scope, name, value)
        case Apply():
            yield from _arguments(scope, name, value)
            yield from _apply(scope, name, value)
        case Constant(number, dtype):
            if isinstance(number, bool) != (dtype == "bool"):
                yield scope.problem(name, f"a literal of {dtype}", str(number), "types of literals")


def _local(scope: LoopScope, name: str, value: Local) -> Iterator[Problem]:
    bound = scope.locals.get(value.name)
    if bound is None:
        got = f"%{value.name}, seen are {' '.join(sorted(scope.locals)) or 'none'}"
        yield scope.problem(name, "a value that is named before", got, "names of values")
    elif _register(bound) != _register(value.dtype):
        rule = "a name has the type of its value"
        yield scope.problem(name, f"%{value.name}:{bound}", value.dtype, rule)


def _arguments(scope: LoopScope, name: str, value: Apply) -> Iterator[Problem]:
    """Problems of the arguments of a call; each arm of a ``select`` is evaluated where it is
    chosen."""
    scopes = [scope] * len(value.arguments)
    if value.function == "select" and len(value.arguments) == 3:
        condition = value.arguments[0]
        scopes = [scope, scope.where(condition), scope.where(condition, holds=False)]
    for seen, argument in zip(scopes, value.arguments, strict=True):
        yield from _value(seen, name, argument)


def _apply(scope: LoopScope, name: str, value: Apply) -> Iterator[Problem]:
    """Function and number of arguments, then types."""
    function, count = value.function, len(value.arguments)
    arity = 2 if function in BINARY else _ARITIES.get(function, 1)
    if function not in (*UNARY, *BINARY, *_TYPED, *_ARITIES):
        yield scope.problem(name, "an elementwise core op", function, "names of functions")
    elif count != arity:
        yield scope.problem(name, str(arity), str(count), f"arguments of {function}")
    elif function == "quantize":
        yield from _quantized(scope, name, value)
    else:
        yield from _applied_types(scope, name, value)


def _quantized(scope: LoopScope, name: str, value: Apply) -> Iterator[Problem]:
    """Types, and limits that are known: code moves them before the rounding."""
    *real, zero, low, high = value.arguments
    rule = "arguments of quantize"
    for argument in (*real, low, high):
        if (found := scope.dtype_of(argument)) != "f32":
            yield scope.problem(name, "f32", found, rule)
    for found in (scope.dtype_of(zero), value.dtype):
        if found not in NARROW:
            yield scope.problem(name, " or ".join(NARROW), found, rule)
    match low, high:
        case Constant(least, _), Constant(most, _) if least <= most and _are_whole(least, most):
            pass
        case _:
            got = f"{print_value(low)} and {print_value(high)}"
            yield scope.problem(name, "whole literals in their order", got, rule)


def _are_whole(*numbers: float) -> bool:
    return all(abs(number) < _LIMITS_END and number == int(number) for number in numbers)


def _applied_types(scope: LoopScope, name: str, value: Apply) -> Iterator[Problem]:
    """Types of arguments and of the result: as the core op of that name says."""
    function = value.function
    op = next((op for known, op in OPS_BY_NAME.items() if known == function), None)
    types = [TensorType(scope.dtype_of(argument), ()) for argument in value.arguments]
    attributes: Attributes = {"dtype": value.dtype} if function in _TYPED else {}
    try:
        result = op.infer(types, attributes).results[0].dtype if op else value.dtype
    except AttributeNamesError:  # they are in the function's name
        return
    except OpTypeError as error:
        yield scope.problem(name, str(error.expected), str(error.got), f"arguments of {function}")
        return
    if result != value.dtype:
        yield scope.problem(name, result, value.dtype, f"result of {function}")


def _register(dtype: DType) -> DType:
    """What holds a value of ``dtype`` between load and store."""
    return "f32" if dtype in ("f16", "bf16") else dtype
