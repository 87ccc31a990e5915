"""The number of lanes of a vector loop: that of f32, or more at first where all that it works on is
narrower, or where each lane has its own sums.

In: a loop's body and the buffers' element types. Out: a number of lanes. Not done here: the loop
(``for_loop``), contractions.

Loops that see f64 or i64 keep the lanes of f32, two registers for a vector: the order of their sums
would change, and nothing would be faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_compiler.codegen.emit.byte_tables import has_byte_tables
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.lane_index import is_stretch
from ingot_compiler.codegen.emit.sums_beside import has_sums_beside
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.dims import Call, Dim, from_terms, lone_atom, symbol, symbol_set, terms_of
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.ir.types import FLOATS, DType, dtype_size_bits
from ingot_compiler.kernels.tiles import lanes_of
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Load, Local, Value
from ingot_compiler.lowering.loops.program import For, Let, LetIndex, Statement, Store

_SUMS_BESIDE = 4  # registers: 0.7 of the time of 2 with 256 bits; 8 gain nothing
_REPEATED = (2, 4, 8)  # of which every target's lanes of narrow integers are multiples


def wide_lanes(
    context: EmitContext, variable: str, extent: LlvmValue, body: Sequence[Statement]
) -> int:
    """Lanes of whole vectors of the widest element type in a body of narrow integers and bools, of
    several registers in one with sums; else those of f32."""
    if context.target.team_units == 1 and has_sums_beside(context, variable, body):
        return _lanes_of_sums(context, extent.integer, body)
    found = list(_dtypes_of_body(context, variable, body))
    widths = [
        dtype_size_bits(dtype) for dtype in found if dtype is not None and dtype not in FLOATS
    ]
    if not widths or len(widths) < len(found) or max(widths) >= dtype_size_bits("f32"):
        return context.lanes
    return min(lanes_of(dtype, context.target) for dtype in found if dtype is not None)


def _lanes_of_sums(context: EmitContext, extent: int | None, body: Sequence[Statement]) -> int:
    """Lanes of as many registers as the sums of all copies of the body fill half of."""
    lanes, registers = context.lanes, context.target.vector_register_count // 2
    copies = [each.extent for each in body if isinstance(each, For) and each.kind == "unroll"]
    count = _SUMS_BESIDE
    while count > 1 and any(isinstance(each, int) and each * count > registers for each in copies):
        count //= 2
    while count > 1 and extent is not None and extent < lanes * count:
        count //= 2
    return lanes * count


def _dtypes_of_body(
    context: EmitContext, variable: str, body: Sequence[Statement]
) -> Iterator[DType | None]:
    """Every element type that a body works on; None for what has no such form."""
    for statement in body:
        match statement:
            case Let(_, value):
                yield from _dtypes_of_value(context, variable, value)
            case LetIndex(_, value, _) if has_byte_tables(context.target):
                found = list(_dtypes_of_value(context, variable, value))
                yield from found if found[0] == "u8" else (None,)
            case Store(buffer, index, value):
                yield context.dtypes[buffer] if _is_contiguous(index, variable) else None
                yield from _dtypes_of_value(context, variable, value)
            case _:
                yield None


def _dtypes_of_value(context: EmitContext, variable: str, value: Value) -> Iterator[DType | None]:
    match value:
        case Load(buffer, index):
            is_whole = _is_contiguous(index, variable) or _is_repeated(index, variable)
            yield context.dtypes[buffer] if is_whole else None
        case Constant(_, dtype) | Local(_, dtype):
            yield dtype
        case Apply(_, arguments, dtype):
            yield dtype
            for argument in arguments:
                yield from _dtypes_of_value(context, variable, argument)
        case _:
            yield None


def _is_contiguous(index: Dim, variable: str) -> bool:
    stride = coefficient(index, variable)
    return stride is not None and (stride in (0, 1) or is_stretch(stride))


def _is_repeated(index: Dim, variable: str) -> bool:
    """Whether one element is that of two lanes, or of another power of two, beside what all lanes
    share."""
    moving = [
        (monomial, factor)
        for monomial, factor in terms_of(index)
        if variable in symbol_set(from_terms({monomial: factor}))
    ]
    atom = lone_atom(from_terms(dict(moving)))
    if not isinstance(atom, Call) or atom.function != "floordiv" or atom.right not in _REPEATED:
        return False
    return atom.left == symbol(variable)
