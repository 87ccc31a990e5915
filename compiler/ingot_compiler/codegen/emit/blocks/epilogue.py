"""The epilogue of a tile of accumulators: the fused statements, once per row and vector.

In: accumulators in registers, the symbols of row and column, statements. Out: IR that stores the
results. Not done here: the statements themselves (``emit.statement``).

A light epilogue runs straight from the registers, copied for every accumulator. A heavy one, or one
whose number of rows is only known at run time, is a loop over rows: the tile goes through the
stack, where it stays in L1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_compiler.codegen.emit.context import EmitContext, Loaded
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.memory import emit_load
from ingot_compiler.codegen.emit.operands import ZERO, i64
from ingot_compiler.codegen.emit.statement import emit_statements
from ingot_compiler.codegen.llvm_value import LlvmValue, element_bits
from ingot_compiler.ir.types import FLOATS, DType
from ingot_compiler.lowering.loops.loop_values import NARROW, Apply, Load, Value
from ingot_compiler.lowering.loops.program import If, Let, LetIndex, Require, Statement, Store
from ingot_runtime.lazy_dataclass import dataclass

_DIRECT_INSTRUCTIONS_MAX = 400  # LLVM is quadratic in a block's length
_MEMORY_INSTRUCTIONS = 2
_HEAVY_INSTRUCTIONS = 30
_LIGHT = frozenset(
    ("abs", "add", "cast", "div", "max", "min", "mul", "neg", "relu", "round", "select", "sub")
)
_QUANTIZE_INSTRUCTIONS = 8


@dataclass(frozen=True, slots=True)
class Rows:
    """``count`` rows of a tile, from ``first`` of ``symbol`` on; only the first ``valid`` (None:
    all) are results."""

    symbol: str
    first: LlvmValue
    count: int
    valid: LlvmValue | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """``vectors`` vectors of columns, from ``first`` of ``symbol`` on; the last one runs under
    ``mask`` (None: all lanes)."""

    symbol: str
    first: LlvmValue
    vectors: int
    lanes: int
    mask: LlvmValue | None


@dataclass(frozen=True, slots=True)
class Results:
    """A tile of accumulators: where it stands, the local that ``statements`` call each of them, and
    its dtype."""

    rows: Rows
    columns: Columns
    name: str
    dtype: DType
    statements: tuple[Statement, ...]


def emit_epilogue(context: EmitContext, results: Results, sums: Sequence[LlvmValue]) -> None:
    """Run the statements for the accumulators `sums`: ``vectors`` of the first row, then of the
    next."""
    rows, vectors = results.rows, results.columns.vectors
    if rows.valid is not None or not is_light(results.statements, len(sums)):
        _emit_through_stack(context, results, sums)
        return
    for row in range(rows.count):
        at = context.writer.add(rows.first, i64(row))
        _emit_row(context, results, at, sums[row * vectors : (row + 1) * vectors])


def load_numbers(context: EmitContext, statements: Sequence[Statement], lanes: int) -> None:
    """Load the floats and zero points that the statements read of fixed elements, before the loops
    around them; they run at least once."""
    w, loaded = context.writer, context.loaded
    wide, single, scalars = dict(loaded.wide), dict(loaded.single), dict(loaded.scalars)
    for place in sorted(set(_fixed_loads(statements))):
        dtype = context.dtypes[place[0]]
        if context.read_only[place[0]] and dtype in (*FLOATS, *NARROW):
            single[place] = value = emit_load(context, *place)
            scalars[value] = value
            if dtype in FLOATS:
                wide[place] = w.splat(value, lanes)
                scalars[wide[place]] = value
    context.bind({})
    context.loaded = Loaded(wide, single, scalars, context.frames[-1])


def _fixed_loads(statements: Sequence[Statement]) -> Iterator[tuple[int, int]]:
    """Buffers and indices of loads that no guard stands around."""
    waiting = [statement.value for statement in statements if isinstance(statement, Let | Store)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Load) and isinstance(value.index, int):
            yield value.buffer, value.index
        elif isinstance(value, Apply) and value.function != "select":
            waiting += value.arguments


def _emit_through_stack(context: EmitContext, results: Results, sums: Sequence[LlvmValue]) -> None:
    """Store the tile, then loop over its rows."""
    w, element, lanes = context.writer, sums[0].element, results.columns.lanes
    tile = w.lane_slot(element, lanes, len(sums))
    for number, value in enumerate(sums):
        place = w.offset(tile, i64(number * lanes), element)
        w.store(value, place, lanes * element_bits(element) // 8)
    emit_stored(context, results, tile, element)


def emit_stored(context: EmitContext, results: Results, tile: LlvmValue, element: str) -> None:
    """Run the statements for accumulators that lie on the stack, row by row."""
    w, rows, columns = context.writer, results.rows, results.columns
    lanes = columns.lanes
    align = lanes * element_bits(element) // 8

    def body(number: LlvmValue) -> None:
        row = w.offset(tile, w.mul(number, i64(columns.vectors * lanes)), element)
        places = [w.offset(row, i64(vector * lanes), element) for vector in range(columns.vectors)]
        values = [w.load(place, element, lanes, align) for place in places]
        _emit_row(context, results, w.add(rows.first, number), values)

    for_each(w, ZERO, rows.valid or i64(rows.count), 1, body, nonempty=True)


def _emit_row(
    context: EmitContext, results: Results, row: LlvmValue, values: Sequence[LlvmValue]
) -> None:
    """Run the statements for one row, vector by vector."""
    columns = results.columns
    with context.scope():
        context.bind({results.rows.symbol: row})
        for vector, value in enumerate(values):
            first = context.writer.add(columns.first, i64(vector * columns.lanes))
            with context.scope():
                mask = columns.mask if vector == columns.vectors - 1 else None
                context.vectorize(columns.symbol, first, mask, lanes=columns.lanes)
                context.define(results.name, value, results.dtype)
                emit_statements(context, results.statements)


def is_light(statements: Sequence[Statement], copies: int) -> bool:
    """Whether so many copies of the statements are few enough instructions for one block."""
    return copies * sum(map(_statement_weight, statements)) <= _DIRECT_INSTRUCTIONS_MAX


def is_light_value(value: Value, copies: int) -> bool:
    """Whether so many copies of a value are few enough instructions for one block."""
    return copies * _value_weight(value) <= _DIRECT_INSTRUCTIONS_MAX


def _statement_weight(statement: Statement) -> int:
    """About how many instructions a statement takes; loops are too many for any block."""
    match statement:
        case Let(_, value) | LetIndex(_, value, _):
            return _value_weight(value)
        case Require(_, value) | Store(_, _, value):
            return _MEMORY_INSTRUCTIONS + _value_weight(value)
        case If():
            return _HEAVY_INSTRUCTIONS + sum(map(_statement_weight, statement.body))
        case _:
            return _DIRECT_INSTRUCTIONS_MAX


def _own_weight(function: str) -> int:
    if function == "quantize":
        return _QUANTIZE_INSTRUCTIONS
    return 1 if function in _LIGHT else _HEAVY_INSTRUCTIONS


def _value_weight(value: Value) -> int:
    match value:
        case Load():
            return _MEMORY_INSTRUCTIONS
        case Apply():
            return _own_weight(value.function) + sum(map(_value_weight, value.arguments))
        case _:
            return 1
