"""How many lanes a vector loop has: those of f32, and more at first where all that it works on is
narrower.

In: a loop's body and the buffers' element types. Out: a number of lanes. Not done here: the loop
(``for_loop``), contractions.

Loops that see f64 or i64 keep the lanes of f32, two registers for a vector: the order of their sums
would change, and nothing would be faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_compiler.backends.host.emit.context import EmitContext
from ingot_compiler.backends.host.tiles import lanes_of
from ingot_compiler.ir.dims import Dim, coefficient
from ingot_compiler.ir.types import FLOATS, DType, dtype_size_bits
from ingot_compiler.lowering.loops import Apply, Constant, Let, Load, Local, Statement, Store, Value


def wide_lanes(context: EmitContext, variable: str, body: Sequence[Statement]) -> int:
    """Lanes of whole vectors of the widest element type in a body of narrow integers and bools;
    else those of f32."""
    found = list(_dtypes_of_body(context, variable, body))
    widths = [
        dtype_size_bits(dtype) for dtype in found if dtype is not None and dtype not in FLOATS
    ]
    if not widths or len(widths) < len(found) or max(widths) >= dtype_size_bits("f32"):
        return context.lanes
    return min(lanes_of(dtype, context.target) for dtype in found if dtype is not None)


def _dtypes_of_body(
    context: EmitContext, variable: str, body: Sequence[Statement]
) -> Iterator[DType | None]:
    """Every element type that a body works on; None for what has no such form."""
    for statement in body:
        match statement:
            case Let(_, value):
                yield from _dtypes_of_value(context, variable, value)
            case Store(buffer, index, value):
                yield context.dtypes[buffer] if _is_contiguous(index, variable) else None
                yield from _dtypes_of_value(context, variable, value)
            case _:
                yield None


def _dtypes_of_value(context: EmitContext, variable: str, value: Value) -> Iterator[DType | None]:
    match value:
        case Load(buffer, index):
            yield context.dtypes[buffer] if _is_contiguous(index, variable) else None
        case Constant(_, dtype) | Local(_, dtype):
            yield dtype
        case Apply(_, arguments, dtype):
            yield dtype
            for argument in arguments:
                yield from _dtypes_of_value(context, variable, argument)
        case _:
            yield None


def _is_contiguous(index: Dim, variable: str) -> bool:
    return coefficient(index, variable) in (0, 1)
