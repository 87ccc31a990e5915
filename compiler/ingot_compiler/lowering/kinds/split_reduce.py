"""A reduction of very many elements to few results as two launches: partial results of fixed
chunks, then the final pass.

In: a group anchored by ``reduce``. Out: its two loop programs, the workspace between them, the
sizes for which they are worth while. Not done here: the reduction in one launch (``reduce``).

The reduced elements are counted in the order in which they lie; chunk ``c`` holds the elements from
``c * CHUNK_ELEMENTS`` on. So the partial results depend on sizes alone, not on the number of
threads.
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.ir.dims import (
    Dim,
    dim_add,
    dim_floordiv,
    dim_max,
    dim_min,
    dim_mul,
    dim_product,
    symbol,
)
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand, View
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.lowering.groups.space import Run, Space, ceil_div
from ingot_compiler.lowering.groups.views import lies_as_one
from ingot_compiler.lowering.kinds.launches_in_turn import WORKSPACE, launches_in_turn
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.kinds.reduction import LANE, Reduction, in_lanes, store_total
from ingot_compiler.lowering.kinds.touched_views import is_elementwise
from ingot_compiler.lowering.loops.loop_values import Load, Local
from ingot_compiler.lowering.loops.program import LoopProgram, Reduce, Store

CHUNK_ELEMENTS = 16384
SPLIT_ELEMENTS_MIN = 16 * CHUNK_ELEMENTS  # fewer are not worth another launch and waking a thread
SPLIT_UNITS_MAX = 8  # with more results than that threads have enough to do
_WIDE = frozenset(
    ("f32", "f64", "i32", "i64", "u32", "u64")
)  # sums of others are wider than what a buffer of their type holds


def may_split(reduction: Reduction) -> bool:
    """Whether the elements can be counted in the order in which they lie, and partial results can
    be stored."""
    group = reduction.group
    in_place = {operand.buffer for operand in group.operands} & {
        result.buffer for result in group.results
    }
    return reduction.result.dtype in _WIDE and not in_place and is_one_run(reduction)


def is_one_run(reduction: Reduction) -> bool:
    """Whether the elements can be counted in the order in which they lie: nothing but elementwise
    ops before the reduction, all of whose operands lie in that order, or are one element."""
    group, shape = reduction.group, reduction.source.shape
    if not reduction.reduced:
        return False
    before = _needed(group, reduction.anchor.operands[0])
    nodes = [node for node in group.nodes if before & set(node.results)]
    if not all(is_elementwise(group, node) for node in nodes):
        return False
    operands = [operand for operand in group.operands if operand.value in before]
    whole = [operand for operand in operands if operand.type.shape == shape]
    single = [operand for operand in operands if operand.type.element_count == 1]
    return len(whole) + len(single) == len(operands) > len(single) and all(
        lies_as_one(operand.view, shape, reduction.reduced) for operand in whole
    )


def is_worth_while(reduction: Reduction) -> Dim:
    """1 for sizes where two launches are faster than one, else 0: many elements, few results."""
    many = dim_add(reduction.element_count, 1 - SPLIT_ELEMENTS_MIN)
    few = dim_add(SPLIT_UNITS_MAX + 1, dim_mul(reduction.unit_count, -1))
    return dim_mul(_is_positive(many), _is_positive(few))


def lower_split(reduction: Reduction) -> LoweredGroup:
    """The launch of the chunks, then that of the results."""
    group = reduction.group
    chunks, width = _chunk_count(reduction), reduction.lane_count
    count = dim_product(
        (reduction.unit_count, chunks, width, is_worth_while(reduction))
    )  # none where it is not used
    tensor_type = TensorType(reduction.result.dtype, (count,))
    partials = Operand(WORKSPACE, tensor_type, WORKSPACE, View((1,)))
    before, behind = _needed(group, reduction.anchor.operands[0]), _needed_behind(reduction)
    first = replace(group, operands=_of(group, before), results=(partials,))
    last = replace(group, operands=(partials, *_of(group, behind)))
    programs = _chunk_program(reduction, first, partials), _final_program(reduction, last, partials)
    return launches_in_turn(group, (first, last), programs, partials)


def _chunk_program(reduction: Reduction, group: Group, partials: Operand) -> LoopProgram:
    """Units are (chunk, result): neighbours in memory are neighbours in time where there is one
    result."""
    unit, chunk = (
        symbol(INDEX) % reduction.unit_count,
        dim_floordiv(symbol(INDEX), reduction.unit_count),
    )
    start = dim_mul(chunk, CHUNK_ELEMENTS)
    runs = [Run(reduction.outer, unit), Run(reduction.reduced, start + symbol("element"))]
    if reduction.lane_axis is not None:
        runs.append(Run((reduction.lane_axis,), symbol(LANE)))
    buffers = GroupBuffers(group)
    elements = Elements(group, buffers)
    value = elements.value(reduction.anchor.operands[0], Space(reduction.source.shape, tuple(runs)))
    extent = dim_min(CHUNK_ELEMENTS, dim_add(reduction.element_count, dim_mul(start, -1)))
    dtype, lanes = reduction.result.dtype, reduction.lane_axis is None
    total = Reduce(
        "total", reduction.function, "element", extent, dtype, elements.take(), value, lanes
    )
    place = dim_mul(dim_mul(unit, _chunk_count(reduction)) + chunk, reduction.lane_count)
    place = place if lanes else place + symbol(LANE)
    body = (total, Store(buffers.number(partials), place, Local("total", dtype)))
    units = dim_mul(_chunk_count(reduction), reduction.unit_count)
    work = dim_mul(reduction.lane_count, CHUNK_ELEMENTS)
    return finish_program(buffers, in_lanes(reduction, body), units, grain_for(work))


def _final_program(reduction: Reduction, group: Group, partials: Operand) -> LoopProgram:
    """Units are the results, as in one launch; the reduction is over chunks."""
    buffers = GroupBuffers(group)
    chunks, lanes = _chunk_count(reduction), reduction.lane_axis is None
    place = dim_mul(dim_mul(symbol(INDEX), chunks) + symbol("chunk"), reduction.lane_count)
    place = place if lanes else place + symbol(LANE)
    dtype = reduction.result.dtype
    partial = Load(buffers.number(partials), place)
    total = Reduce("total", reduction.function, "chunk", chunks, dtype, (), partial, lanes)
    elements = Elements(group, buffers)
    body = (total, *store_total(reduction, group, elements, Local("total", dtype)))
    work = dim_mul(chunks, reduction.lane_count)
    return finish_program(buffers, in_lanes(reduction, body), reduction.unit_count, grain_for(work))


def _chunk_count(reduction: Reduction) -> Dim:
    return ceil_div(reduction.element_count, CHUNK_ELEMENTS)


def _is_positive(dim: Dim) -> Dim:
    return dim_min(dim_max(dim, 0), 1)


def _needed(group: Group, value: int, computed: int = -1) -> set[int]:
    """The values that a value is computed from inside the group, and itself; ``computed`` is there
    already."""
    makers = {result: node for node in group.nodes for result in node.results if result != computed}
    found: set[int] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if value not in found:
            found.add(value)
            waiting += makers[value].operands if value in makers else ()
    return found


def _needed_behind(reduction: Reduction) -> set[int]:
    result = reduction.group.results[0].value
    return _needed(reduction.group, result, reduction.anchor.results[0])


def _of(group: Group, values: set[int]) -> tuple[Operand, ...]:
    return tuple(operand for operand in group.operands if operand.value in values)
