"""Reductions over any axes of any layout, with elementwise neighbours fused before and after.

In: a group anchored by ``reduce``. Out: its loop program. Not done here: argmax and cumsum (their own kinds).

A kept axis that is contiguous in the operand runs in lanes (each lane sums its own column in order); otherwise the
innermost reduced axis is spread over lanes.
"""

from __future__ import annotations

from typing import Literal as OneOf

from ingot_compiler.ir.dims import Dim, dim_min, dim_mul, dim_product, symbol
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops import Apply, For, FromIndex, Local, LoopProgram, Reduce, Statement, Store, Value
from ingot_compiler.lowering.space import Run, Space
from ingot_compiler.lowering.typical import typical
from ingot_compiler.lowering.views import storage_order

ReduceFunction = OneOf["sum", "product", "max", "min"]
_FUNCTIONS: dict[str, ReduceFunction] = {
    "max": "max",
    "mean": "sum",
    "min": "min",
    "product": "product",
    "sum": "sum",
}


def nested_reduce(
    name: str,
    function: ReduceFunction,
    axes: list[tuple[str, Dim]],
    dtype: DType,
    inner: tuple[tuple[Statement, ...], Value],
    *,
    lanes: bool,
) -> Reduce:
    """Reduce over several loop variables, outermost first; only the innermost may use lanes."""
    body, value = inner
    (variable, extent), *outer = reversed(axes)
    own = [name, *(f"{name}_{level}" for level in range(1, len(axes)))]
    statement = Reduce(own[-1], function, variable, extent, dtype, body, value, lanes)
    for level, (variable, extent) in reversed(list(enumerate(reversed(outer)))):
        statement = Reduce(own[level], function, variable, extent, dtype, (statement,), Local(own[level + 1], dtype))
    return statement


def _while_inner_runs(axes: list[tuple[str, Dim]]) -> list[tuple[str, Dim]]:
    """The same loops, of which an outer one does not run where an inner one has nothing to do."""
    found: list[tuple[str, Dim]] = []
    some: Dim = 1
    for variable, extent in reversed(axes):
        found.insert(0, (variable, dim_mul(extent, some)))
        some = dim_mul(some, dim_min(extent, 1))
    return found


def lower_reduce(group: Group, target: KernelTarget) -> LoopProgram:
    """Units are the kept positions outside the vector axis."""
    del target
    anchor = group.nodes[group.anchor]
    types = dict(group.types)
    source = types[anchor.operands[0]]
    result_type = types[anchor.results[0]]
    reduced = tuple(sorted(anchor.ints("axes")))
    kept = tuple(axis for axis in range(source.rank) if axis not in reduced and source.shape[axis] != 1)
    order = _operand_order(group)
    lane_axis = _lane_axis(group, kept)
    outer = tuple(axis for axis in kept if axis != lane_axis)
    variables = {axis: f"axis{axis}" for axis in reduced}
    runs = [Run(outer, symbol("p")), *(Run((axis,), symbol(variables[axis])) for axis in reduced)]
    if lane_axis is not None:
        runs.append(Run((lane_axis,), symbol("j")))
    buffers = GroupBuffers(group)
    elements = Elements(group, buffers)
    function = anchor.text("function")
    dtype = result_type.dtype
    value = elements.value(anchor.operands[0], Space(source.shape, tuple(runs)))
    loops = _while_inner_runs([(variables[axis], source.shape[axis]) for axis in order if axis in reduced])
    statements: list[Statement] = []
    total: Value
    if loops:
        inner = elements.take(), value
        statements.append(nested_reduce("total", _FUNCTIONS[function], loops, dtype, inner, lanes=lane_axis is None))
        total = Local("total", dtype)
    else:
        total = value
    if function == "mean":
        count = dim_product(tuple(source.shape[axis] for axis in reduced))
        total = elements.let(Apply("div", (total, FromIndex(count, dtype)), dtype), dtype)
    statements += elements.take()
    statements += _store(group, buffers, elements, total, _result_space(group, outer, lane_axis))
    body: tuple[Statement, ...] = tuple(statements)
    if lane_axis is not None:
        body = (For("j", source.shape[lane_axis], "vector", body),)
    work = dim_product(tuple(source.shape[axis] for axis in reduced))
    if lane_axis is not None:
        work = dim_mul(work, source.shape[lane_axis])
    return finish_program(buffers, body, dim_product(tuple(source.shape[axis] for axis in outer)), grain_for(work))


def _operand_order(group: Group) -> tuple[int, ...]:
    shape = dict(group.types)[group.nodes[group.anchor].operands[0]].shape
    for operand in group.operands:
        if operand.type.shape == shape:
            return storage_order(operand.view, shape)
    return tuple(range(len(shape)))


def _lane_axis(group: Group, kept: tuple[int, ...]) -> int | None:
    """The kept axis with stride 1 in an operand of the full shape, if it is not tiny."""
    shape = dict(group.types)[group.nodes[group.anchor].operands[0]].shape
    for operand in group.operands:
        if operand.type.shape == shape:
            for axis in kept:
                if operand.view.strides[axis] == 1 and typical(shape[axis]) > 1:
                    return axis
    return None


def _result_space(group: Group, outer: tuple[int, ...], lane_axis: int | None) -> Space:
    """The result's point: reduced axes are of size 1 or gone."""
    anchor = group.nodes[group.anchor]
    types = dict(group.types)
    rank = types[anchor.operands[0]].rank
    reduced = set(anchor.ints("axes"))
    result = types[anchor.results[0]]
    if result.rank == rank:
        place = {axis: axis for axis in range(rank)}
    else:
        place = {axis: i for i, axis in enumerate(axis for axis in range(rank) if axis not in reduced)}
    runs = [Run(tuple(place[axis] for axis in outer), symbol("p"))]
    if lane_axis is not None:
        runs.append(Run((place[lane_axis],), symbol("j")))
    return Space(result.shape, tuple(runs))


def _store(
    group: Group, buffers: GroupBuffers, elements: Elements, total: Value, space: Space
) -> tuple[Statement, ...]:
    anchor = group.nodes[group.anchor]
    result = group.results[0]
    elements.given[anchor.results[0]] = total
    value = elements.value(result.value, space)
    return (*elements.take(), Store(buffers.number(result), space.offset_of(result.view, result.type.shape), value))


REDUCE = Kind("reduce", one_kernel(lower_reduce), ResultLayout.ROW_MAJOR)
