"""What becomes of a tile of accumulators: the fused statements, once per row and vector.

In: accumulators in registers, the symbols of row and column, statements. Out: IR that stores the
results.
Not done here: the statements themselves (``emit.statement``).

A light epilogue runs straight from the registers, copied for every accumulator. A heavy one, or one
whose number of rows is only known at run time, is a loop over rows: the tile goes through the
stack, where it stays in L1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ingot_compiler.backends.host.emit.context import EmitContext
from ingot_compiler.backends.host.emit.statement import emit_statements
from ingot_compiler.backends.host.llvm_value import LlvmValue, constant, element_bits
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops import (
    Apply,
    Attention,
    Contraction,
    Depthwise,
    DepthwisePlane,
    For,
    If,
    Let,
    LetIndex,
    Load,
    Reduce,
    Require,
    Statement,
    Store,
    Transpose,
    Value,
)  # fmt: skip

DIRECT_INSTRUCTIONS_MAX = 400  # LLVM is quadratic in a block's length
_MEMORY_INSTRUCTIONS = 2
_HEAVY_INSTRUCTIONS = 30
_LIGHT = frozenset(
    ("abs", "add", "cast", "div", "max", "min", "mul", "neg", "relu", "select", "sub")
)


@dataclass(frozen=True, slots=True)
class Results:
    """Where a tile of accumulators stands: rows ``first_row`` .. of symbol ``row``, vectors from
    ``first_column`` of symbol ``column``; the last vector runs under ``mask``, and only the first
    ``valid`` rows (None: all) are results."""

    row: str
    first_row: LlvmValue
    rows: int
    valid: LlvmValue | None
    column: str
    first_column: LlvmValue
    vectors: int
    lanes: int
    mask: LlvmValue | None
    name: str
    dtype: DType
    statements: tuple[Statement, ...]


def emit_epilogue(context: EmitContext, results: Results, sums: Sequence[LlvmValue]) -> None:
    """Run the statements for the accumulators `sums`: ``vectors`` of the first row, then of the
    next."""
    weight = sum(map(statement_weight, results.statements))
    if results.valid is None and weight * len(sums) <= DIRECT_INSTRUCTIONS_MAX:
        for row in range(results.rows):
            at = context.writer.add(results.first_row, constant(row, "i64"))
            _emit_row(
                context, results, at, sums[row * results.vectors : (row + 1) * results.vectors]
            )
    else:
        _emit_through_stack(context, results, sums)


def _emit_through_stack(context: EmitContext, results: Results, sums: Sequence[LlvmValue]) -> None:
    """Store the tile, then loop over its rows."""
    w, element, lanes = context.writer, sums[0].element, results.lanes
    tile = w.slot(element, len(sums) * lanes)
    align = lanes * element_bits(element) // 8
    for number, value in enumerate(sums):
        w.store(value, w.offset(tile, constant(number * lanes, "i64"), element), align)

    def body(number: LlvmValue, _: tuple[LlvmValue, ...]) -> Sequence[LlvmValue]:
        row = w.offset(tile, w.mul(number, constant(results.vectors * lanes, "i64")), element)
        places = [
            w.offset(row, constant(vector * lanes, "i64"), element)
            for vector in range(results.vectors)
        ]
        values = [w.load(place, element, lanes, align) for place in places]
        _emit_row(context, results, w.add(results.first_row, number), values)
        return ()

    w.loop(
        constant(0, "i64"),
        results.valid or constant(results.rows, "i64"),
        1,
        (),
        body,
        nonempty=True,
    )


def _emit_row(
    context: EmitContext, results: Results, row: LlvmValue, values: Sequence[LlvmValue]
) -> None:
    """Run the statements for one row, vector by vector."""
    with context.scope():
        context.bind({results.row: row})
        for vector, value in enumerate(values):
            first = context.writer.add(
                results.first_column, constant(vector * results.lanes, "i64")
            )
            with context.scope():
                mask = results.mask if vector == results.vectors - 1 else None
                context.vectorize(results.column, first, mask, lanes=results.lanes)
                context.define(results.name, value, results.dtype)
                emit_statements(context, results.statements)


def statement_weight(statement: Statement) -> int:
    """About how many instructions a statement takes."""
    match statement:
        case Let() | LetIndex():
            return _value_weight(statement.value)
        case Require():
            return _MEMORY_INSTRUCTIONS + _value_weight(statement.condition)
        case Store():
            return _MEMORY_INSTRUCTIONS + _value_weight(statement.value)
        case If():
            return _HEAVY_INSTRUCTIONS + sum(map(statement_weight, statement.body))
        case (
            For()
            | Reduce()
            | Contraction()
            | Depthwise()
            | DepthwisePlane()
            | Attention()
            | Transpose()
        ):
            return DIRECT_INSTRUCTIONS_MAX


def _value_weight(value: Value) -> int:
    match value:
        case Load():
            return _MEMORY_INSTRUCTIONS
        case Apply():
            own = 1 if value.function in _LIGHT else _HEAVY_INSTRUCTIONS
            return own + sum(map(_value_weight, value.arguments))
        case _:
            return 1
