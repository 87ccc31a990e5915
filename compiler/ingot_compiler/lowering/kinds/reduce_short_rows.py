"""Sums of rows that a run finds to be short, whose rows are in lanes.

In: a reduction whose lanes are its rows. Out: its loop program. Not done here: for which sizes it
runs (``reduction``), rows of any length (``reduce``).

A short row whose elements are in lanes leaves most of a vector empty, and halves it again and
again. The order of the additions is that of those halves, so that the bits are the same.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_min, dim_mul
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.space import Run, Space
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.kinds.reduction import SHORT_SUM, Reduction, in_lanes, store_total
from ingot_compiler.lowering.loops.loop_values import Apply, Compare, Constant, Value
from ingot_compiler.lowering.loops.program import LoopProgram


def sums_of_short_rows(reduction: Reduction) -> LoopProgram:
    """Elements behind the end are 0; one 0 more is what a sum starts at."""
    group, dtype, count = reduction.group, reduction.result.dtype, reduction.element_count
    buffers = GroupBuffers(group)
    elements, zero = Elements(group, buffers), Constant(0.0, dtype)

    def element(number: int) -> Value:
        at = _point(reduction, dim_min(number, count - 1))
        found = elements.value(reduction.anchor.operands[0], at)
        return Apply("select", (Compare("less", number, count), found, zero), dtype)

    terms = [element(number) for number in range(SHORT_SUM)]
    while len(terms) > 1:
        half = len(terms) // 2
        pairs = zip(terms[:half], terms[half:], strict=True)
        terms = [elements.let(Apply("add", pair, dtype), dtype) for pair in pairs]
    total = elements.let(Apply("add", (*terms, zero), dtype), dtype)
    body = in_lanes(reduction, store_total(reduction, group, elements, total))
    work = dim_mul(SHORT_SUM, reduction.lane_count)
    return finish_program(buffers, body, reduction.unit_count, grain_for(work))


def _point(reduction: Reduction, place: Dim) -> Space:
    (axis,), lane = reduction.reduced, reduction.lane_axis
    assert lane is not None
    runs = Run(reduction.outer, reduction.unit), Run((axis,), place), Run((lane,), reduction.lane)
    return Space(reduction.source.shape, runs)
