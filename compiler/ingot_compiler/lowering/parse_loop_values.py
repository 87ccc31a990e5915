"""Reads the values of a loop program, and the elements and ranges that its statements name.

In: a reader that stands before a value. Out: the value. Not done here: statements
(``parse_loops``), whether what a value names is there (``verify_loop_values``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.read_terms import at_float, read_dim, read_dtype, read_float
from ingot_compiler.ir.text_reader import Reader
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loop_values import (
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

_COMPARISONS: Mapping[str, Comparison] = {"<": "less", "<=": "less_equal", "==": "equal"}
_NUMBERS: Mapping[str, float | bool] = {
    "true": True,
    "false": False,
    "NaN": math.nan,
    "Infinity": math.inf,
}


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
