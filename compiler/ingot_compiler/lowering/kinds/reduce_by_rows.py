"""Sums over rows of a matrix that leaves the cache, whose columns are in lanes: some rows at once
are added to the totals of all columns, which stay in the first cache.

In: a reduction. Out: its loop program, the sizes for which it is worth while. Not done here: one
column of vectors after the other (``reduce``).

Columns read all rows again and again, each time a short piece of a row, which memory is not read
ahead for. A column adds in the same order here, so its bits are the same.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import (
    Dim,
    dim_add,
    dim_floordiv,
    dim_max,
    dim_min,
    dim_mod,
    dim_mul,
    symbol,
)
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.ir.types import dtype_size_bits
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Operand
from ingot_compiler.lowering.groups.space import Run, Space
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.kinds.reduction import LANE, Reduction, store_total
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Load, Local, Value
from ingot_compiler.lowering.loops.program import For, Let, LoopProgram, Statement, Store

_TOGETHER = 8  # rows
_ROWS_MIN = 256
_LARGE_BYTES = 1 << 20  # of a matrix that columns would read from behind the second cache
_ROW_BYTES = 1024, 16384  # least, and most: some rows and the totals fit the first cache


def rows_are_worth_while(reduction: Reduction) -> Dim:
    """1 for sizes where it is faster, else 0."""
    x, count = _matrix(reduction), reduction.element_count
    if x is None or (isinstance(count, int) and count < _ROWS_MIN):
        return 0
    row = dim_mul(reduction.lane_count, dtype_size_bits(x.type.dtype) // 8)
    least, most = _ROW_BYTES
    is_large = _is_at_least(dim_mul(row, count), _LARGE_BYTES)
    is_short = dim_add(1, dim_mul(-1, _is_at_least(row, most + 1)))
    return dim_mul(is_large, dim_mul(_is_at_least(row, least), is_short))


def lower_by_rows(reduction: Reduction) -> LoopProgram:
    """Totals of 0, then rounds of some rows, then those that are left, then what follows."""
    group, dtype, count = reduction.group, reduction.result.dtype, reduction.element_count
    x, buffers = _matrix(reduction), GroupBuffers(group)
    assert x is not None
    source, stored = buffers.number(x), buffers.number(group.results[0])
    place = reduction.result_space().offset(group.results[0].view)

    def added(first: Dim, rows: int) -> tuple[Statement, ...]:
        total: Value = Load(stored, place)
        statements: list[Statement] = []
        for number in range(rows):
            own = Load(source, _point(reduction, first + number).offset(x.view))
            statements.append(Let(f"t{number}", Apply("add", (total, own), dtype)))
            total = Local(f"t{number}", dtype)
        return (*statements, Store(stored, place, total))

    def in_lanes(*body: Statement) -> For:
        return For(LANE, reduction.lane_extent, "vector", body)

    rounds, rest = dim_floordiv(count, _TOGETHER), dim_mod(count, _TOGETHER)
    last = dim_mul(rounds, _TOGETHER) + symbol("i")
    body = [
        in_lanes(Store(stored, place, Constant(0.0, dtype))),
        For("g", rounds, "serial", (in_lanes(*added(symbol("g") * _TOGETHER, _TOGETHER)),)),
        *((For("i", rest, "serial", (in_lanes(*added(last, 1)),)),) if rest != 0 else ()),
    ]
    if len(group.nodes) > 1 or reduction.anchor.text("function") == "mean":
        elements = Elements(group, buffers)
        behind = store_total(reduction, group, elements, Load(stored, place))
        body.append(in_lanes(*behind))
    grain = grain_for(dim_mul(count, reduction.lane_count))
    return finish_program(buffers, tuple(body), reduction.unit_count, grain)


def _matrix(reduction: Reduction) -> Operand | None:
    """The operand, if it is summed as it is, into a result that can hold the totals."""
    group, anchor = reduction.group, reduction.anchor
    lane, (result, *others) = reduction.lane_axis, group.results
    x = next((each for each in group.operands if each.value == anchor.operands[0]), None)
    if x is None or others or lane is None or len(reduction.reduced) != 1:
        return None
    is_plain = reduction.function == "sum" and x.view.strides[lane] == 1
    types = {x.type.dtype, result.type.dtype, reduction.result.dtype}
    is_apart = result.buffer not in {operand.buffer for operand in group.operands}
    place = reduction.result_space().offset(result.view)
    lies_together = coefficient(place, LANE) == 1
    fits = types in ({"f32"}, {"f64"})
    return x if is_plain and is_apart and lies_together and fits else None


def _point(reduction: Reduction, row: Dim) -> Space:
    (axis,), lane = reduction.reduced, reduction.lane_axis
    assert lane is not None
    runs = Run(reduction.outer, reduction.unit), Run((axis,), row), Run((lane,), reduction.lane)
    return Space(reduction.source.shape, runs)


def _is_at_least(dim: Dim, least: int) -> Dim:
    return dim_min(1, dim_max(0, dim_add(dim, 1 - least)))
