"""The values of a loop program as text, and the elements and ranges that statements name.

In: a value; a reader that stands before one. Out: text; the value. Not done here: statements
(``print_loops``), whether what a value names is there (``verify_loop_values``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from ingot_compiler.ir.dims import Dim, format_dim
from ingot_compiler.ir.text.read_terms import at_float, read_dim, read_dtype, read_float
from ingot_compiler.ir.text.text_reader import Reader
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops.loop_values import (
    Address,
    Apply,
    Compare,
    Comparison,
    Constant,
    ExternArgument,
    FromIndex,
    Load,
    Local,
    Value,
)

_SIGNS: Mapping[Comparison, str] = {"less": "<", "less_equal": "<=", "equal": "=="}
_COMPARISONS: Mapping[str, Comparison] = {sign: function for function, sign in _SIGNS.items()}
_NUMBERS: Mapping[str, float | bool] = {
    "true": True,
    "false": False,
    "NaN": math.nan,
    "Infinity": math.inf,
}


def print_value(value: Value) -> str:
    """Print one value: ``add(b0[i], 1.0:f32)``."""
    match value:
        case Load(buffer, index):
            return print_access(buffer, index)
        case Constant(number, dtype):
            return f"{json.dumps(number)}:{dtype}"
        case FromIndex(index, dtype):
            return f"({format_dim(index)}):{dtype}"
        case Compare(function, left, right):
            return f"({format_dim(left)} {_SIGNS[function]} {format_dim(right)})"
        case Local(name, dtype):
            return f"%{name}:{dtype}"
        case Apply(function, arguments, dtype):
            return f"{function}({', '.join(map(print_value, arguments))}):{dtype}"


def print_argument(argument: ExternArgument) -> str:
    """Print an argument of a call: ``b0[i]`` is the address of that element."""
    if isinstance(argument, Address):
        return print_access(argument.buffer, argument.index)
    return print_value(argument)


def print_access(buffer: int, index: Dim) -> str:
    """Print an element of a buffer: ``b0[i]``."""
    return f"b{buffer}[{format_dim(index)}]"


def read_value(reader: Reader) -> Value:
    """``%v:f32``, ``b0[INDEX]``, ``1.0:f32``, ``(INDEX):i64``, ``(INDEX < INDEX)`` or
    ``add(VALUE, VALUE):f32``."""
    with reader.nested():
        if reader.token.kind == "VALUE":
            return Local(reader.take().text[1:], read_type_behind(reader))
        if reader.accept("("):
            return _index_value(reader)
        if _at_number(reader):
            return _constant(reader)
        if reader.ahead() == "[":
            return Load(*read_access(reader))
        function = reader.name("a value")
        reader.expect("(")
        arguments = reader.items(lambda: read_value(reader), ")")
        return Apply(function, arguments, read_type_behind(reader))


def read_argument(reader: Reader) -> ExternArgument:
    """``b0[INDEX]``, the address of that element; ``1.0:f32``; ``(INDEX):i64``."""
    start, value = reader.token, read_value(reader)
    match value:
        case Load(buffer, index):
            return Address(buffer, index)
        case Constant() | FromIndex():
            return value
        case _:
            raise reader.fail("expected an element of a buffer, a number or an index", start)


def read_type_behind(reader: Reader) -> DType:
    """``: f32``."""
    reader.expect(":")
    return read_dtype(reader)


def read_access(reader: Reader) -> tuple[int, Dim]:
    """``b0[INDEX]``."""
    buffer = reader.buffer()
    reader.expect("[")
    index = read_dim(reader)
    reader.expect("]")
    return buffer, index


def read_range(reader: Reader) -> tuple[str, Dim]:
    """``i in EXTENT``."""
    name = reader.name()
    reader.expect("in")
    return name, read_dim(reader)


def _index_value(reader: Reader) -> FromIndex | Compare:
    left = read_dim(reader)
    if reader.accept(")"):
        return FromIndex(left, read_type_behind(reader))
    if reader.token.text not in _COMPARISONS:
        raise reader.fail(f'expected ")" or one of {" ".join(_COMPARISONS)}, got {reader.token}')
    function = _COMPARISONS[reader.take().text]
    right = read_dim(reader)
    reader.expect(")")
    return Compare(function, left, right)


def _at_number(reader: Reader) -> bool:
    token = reader.token
    return at_float(reader) or token.kind == "INTEGER" or token.text in ("-", *_NUMBERS)


def _constant(reader: Reader) -> Constant:
    number: bool | float
    if reader.ahead() == "Infinity":
        reader.expect("-", "Infinity")
        number = -math.inf
    elif reader.token.text in _NUMBERS:
        number = _NUMBERS[reader.take().text]
    else:
        number = read_float(reader) if at_float(reader) else reader.integer()
    return Constant(number, read_type_behind(reader))
