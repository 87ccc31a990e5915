"""Reductions over any axes of any layout, with elementwise neighbours fused before and after.

In: a group anchored by ``reduce``. Out: its launches. Not done here: argmax and cumsum (their own
kinds).

A kept axis that is contiguous in the operand runs in lanes (each lane sums its own column in
order); otherwise the innermost reduced axis is spread over lanes. Very many elements with few
results are two launches (``split_reduce``).
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.ir.dims import Dim, dim_min, dim_mul, dim_product, symbol
from ingot_compiler.ir.sizes.symbol_terms import bare_symbol
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup, choose, one_launch
from ingot_compiler.lowering.groups.space import Run, Space
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.kinds.reduce_by_rows import lower_by_rows, rows_are_worth_while
from ingot_compiler.lowering.kinds.reduce_short_rows import sums_of_short_rows
from ingot_compiler.lowering.kinds.reduction import (
    ReduceFunction,
    Reduction,
    in_blocks,
    in_lanes,
    store_total,
)
from ingot_compiler.lowering.kinds.split_reduce import (
    is_one_run,
    is_worth_while,
    lower_split,
    may_split,
)
from ingot_compiler.lowering.loops.loop_values import Local, Value
from ingot_compiler.lowering.loops.program import LoopProgram, Reduce, Statement
from ingot_compiler.lowering.loops.substitute_indices import substitute_indices

_UNROLLED_MAX = 4  # elements of a result that lie together


def nested_reduce(
    name: str,
    function: ReduceFunction,
    axes: list[tuple[str, Dim]],
    dtype: DType,
    inner: tuple[tuple[Statement, ...], Value],
    *,
    lanes: bool,
    unroll: bool = False,
) -> Reduce:
    """Reduce over several loop variables, outermost first; only the innermost may use lanes.
    ``unroll``: all of known extents, as steps one after the other."""
    body, value = inner
    (variable, extent), *outer = reversed(axes)
    own = [name, *(f"{name}_{level}" for level in range(1, len(axes)))]
    statement = Reduce(own[-1], function, variable, extent, dtype, body, value, lanes, unroll)
    for level, (variable, extent) in reversed(list(enumerate(reversed(outer)))):
        statement = Reduce(
            own[level],
            function,
            variable,
            extent,
            dtype,
            (statement,),
            Local(own[level + 1], dtype),
            unroll=unroll,
        )
    return statement


def _while_inner_runs(axes: list[tuple[str, Dim]]) -> list[tuple[str, Dim]]:
    """Return the loops so that an outer one does not run where an inner one has nothing to do."""
    found: list[tuple[str, Dim]] = []
    some: Dim = 1
    for variable, extent in reversed(axes):
        found.insert(0, (variable, dim_mul(extent, some)))
        some = dim_mul(some, dim_min(extent, 1))
    return found


def lower_reduce(group: Group, target: KernelTarget) -> LoweredGroup:
    """One launch, or two where that is worth while; where the sizes of the call decide it, ``main``
    chooses."""
    reduction = Reduction.of(group)
    split = is_worth_while(reduction) if may_split(reduction) else 0
    if split == 1:
        return lower_split(reduction)
    whole = _at_once(reduction, target)
    lowered = whole if split == 0 else choose(split, lower_split(reduction), whole)
    if (short := reduction.of_short_rows()) is not None:
        many, rows = short
        of_rows = sums_of_short_rows(rows) if rows.function == "sum" else _whole(rows, target)
        return choose(many, lowered, one_launch(of_rows))
    lane = bare_symbol(reduction.lane_count)
    if lane is None:
        return lowered
    # Of one result in lanes, all lanes but one would wait: the elements go there instead.
    single = lower_reduce(substitute_indices(group, {lane: 1}), target)
    if lowered.steps.workspace:  # of one lane it is as large
        single = replace(single, steps=replace(single.steps, workspace=lowered.steps.workspace))
    apart = reduction.lane_count - 1
    return choose(dim_mul(apart, apart), lowered, single)


def _at_once(reduction: Reduction, target: KernelTarget) -> LoweredGroup:
    """One launch, of columns or of rows."""
    by_rows = rows_are_worth_while(reduction)
    if by_rows == 0:
        return one_launch(_whole(reduction, target))
    rows = one_launch(lower_by_rows(reduction))
    return rows if by_rows == 1 else choose(by_rows, rows, one_launch(_whole(reduction, target)))


def _whole(reduction: Reduction, target: KernelTarget) -> LoopProgram:
    """Units are the kept positions outside the vector axis, or some of them together."""
    reduction = in_blocks(reduction, target)
    group, shape = reduction.group, reduction.source.shape
    inner_runs = _runs(reduction)
    runs = [Run(reduction.outer, reduction.unit), *inner_runs]
    if reduction.lane_axis is not None:
        runs.append(Run((reduction.lane_axis,), reduction.lane))
    buffers = GroupBuffers(group)
    elements = Elements(group, buffers)
    value = elements.value(reduction.anchor.operands[0], Space(shape, tuple(runs)))
    loops = _while_inner_runs(
        [
            (f"axis{run.axes[-1]}", dim_product(tuple(shape[axis] for axis in run.axes)))
            for run in inner_runs
        ]
    )
    statements: list[Statement] = []
    if loops:
        inner, dtype = (elements.take(), value), reduction.result.dtype
        lanes = reduction.lane_axis is None
        unroll = reduction.is_apart and reduction.element_count in range(1, _UNROLLED_MAX + 1)
        statements.append(
            nested_reduce(
                "total", reduction.function, loops, dtype, inner, lanes=lanes, unroll=unroll
            )
        )
        value = Local("total", dtype)
    body = (*statements, *reduction.behind(store_total(reduction, group, elements, value)))
    work = dim_mul(reduction.element_count, dim_mul(reduction.lane_count, reduction.together))
    return finish_program(buffers, in_lanes(reduction, body), reduction.unit_count, grain_for(work))


def _runs(reduction: Reduction) -> list[Run]:
    """The reduced axes, outermost first: one run of all where their elements lie as one and are in
    lanes, so that whole vectors cross the ends of short rows."""
    if reduction.lane_axis is None and len(reduction.reduced) > 1 and is_one_run(reduction):
        return [Run(reduction.reduced, symbol(f"axis{reduction.reduced[-1]}"))]
    return [Run((axis,), symbol(f"axis{axis}")) for axis in reduction.reduced]


REDUCE = Kind("reduce", lower_reduce, ResultLayout.ROW_MAJOR)
