"""The values of a loop program as text.

In: a value. Out: text that ``parse_loop_values`` reads back. Not done here: statements
(``print_loops``).
"""

from __future__ import annotations

import json

from ingot_compiler.ir.dims import Dim, format_dim
from ingot_compiler.lowering.loop_values import (
    Address,
    Apply,
    Compare,
    Constant,
    ExternArgument,
    FromIndex,
    Load,
    Local,
    Value,
)

_SIGNS = {"less": "<", "less_equal": "<=", "equal": "=="}


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
