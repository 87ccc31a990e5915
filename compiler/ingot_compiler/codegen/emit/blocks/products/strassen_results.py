"""Results of one tile from Strassen's seven products, and their epilogue.

In: a unit whose products are there, a column. Out: results on the stack, whether one of them is not
finite; IR that runs the epilogue. Not done here: the epilogue itself (``epilogue``).

A number of A or B that is not finite, or an overflow on the way, makes each result that depends on
it one: infinities and NaN never leave a sum.
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.blocks.epilogue import (
    Columns,
    Results,
    Rows,
    emit_stored,
)
from ingot_compiler.codegen.emit.blocks.products.strassen_factors import summed
from ingot_compiler.codegen.emit.blocks.products.strassen_unit import StrassenUnit
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64, zeros
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.lowering.loops.strassen import PRODUCTS, RESULTS


def emit_results(unit: StrassenUnit) -> LlvmValue:
    """Add the products; the i1 holds where a result is not finite."""
    w, lanes, zero = unit.writer, unit.lanes, zeros("float", unit.lanes)

    def row(number: LlvmValue, carried: Operands) -> Operands:
        (check,) = carried
        for vector in range(unit.tile.vectors):
            for block, value in enumerate(_blocks(unit, number, vector)):
                down, beside = divmod(block, 2)
                line = w.add(number, i64(down * unit.height))
                at = (beside * unit.tile.vectors + vector) * lanes
                place = w.add(w.mul(line, i64(unit.width)), i64(at))
                w.store(value, w.offset(unit.results, place, "float"))
                check = w.fma(value, zero, check)
        return (check,)

    (check,) = w.loop(ZERO, i64(unit.height), 1, (zero,), row)
    return w.any_lane(w.compare("uno", check, check))


def _blocks(unit: StrassenUnit, row: LlvmValue, vector: int) -> list[LlvmValue]:
    """A vector of each block of the result."""
    w, lanes = unit.writer, unit.lanes
    at = w.add(w.mul(row, i64(unit.tile.vectors * lanes)), i64(vector * lanes))
    products = [
        w.load(w.offset(unit.product(number), at, "float"), "float", lanes)
        for number in range(len(PRODUCTS))
    ]
    return [summed(w, side, products) for side in RESULTS]


def emit_stored_results(unit: StrassenUnit, column: LlvmValue) -> None:
    """Run the epilogue for the results of the tile whose first column is ``column``."""
    s = unit.statement
    columns = Columns(s.column, column, 2 * unit.tile.vectors, unit.lanes, None)
    rows = Rows(s.row, unit.start, s.tile.rows)
    results = Results(rows, columns, s.accumulator, s.dtype, s.epilogue)
    emit_stored(unit.context, results, unit.results, "float")
