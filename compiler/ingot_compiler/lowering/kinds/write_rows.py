"""``write_rows``: rows written into a cache, or a copy of it, that its buffer holds already.

In: a group anchored by it. Out: its loop program. Not done here: the copy (``fusion.hold``), errors
for places out of range (clamped; ``require`` reports).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import dim_product, symbol
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.space import Run, Space, point
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops.program import For, LoopProgram, Store
from ingot_compiler.lowering.ops.indexing import wrapped_index


def lower_write_rows(group: Group, target: KernelTarget) -> LoopProgram:
    """Units are positions before the axis: rows of different units never meet. Each takes its rows in
    order, the elements of one in lanes."""
    del target
    anchor, result = group.nodes[group.anchor], group.results[0]
    operands = {operand.value: operand for operand in group.operands}
    places, rows = (operands[value] for value in anchor.operands[1:])
    axis, shape = anchor.integer("axis"), rows.type.shape
    before, behind = tuple(range(axis)), tuple(range(axis + 1, len(shape)))
    runs = Run(before, symbol("p")), Run((axis,), symbol("i")), Run(behind, symbol("j"))
    where = list(Space(shape, runs).indices())
    buffers = GroupBuffers(group)
    elements = Elements(group, buffers)
    entry = where[0] if axis and places.type.shape[0] != 1 else 0
    place = elements.value(places.value, point(places.type.shape, (entry, symbol("i"))))
    where[axis] = wrapped_index(elements, place, result.type.shape[axis])
    prepared = elements.take()
    index = point(result.type.shape, tuple(where)).offset(result.view)
    value = elements.value(rows.value, Space(shape, runs))
    store = Store(buffers.number(result), index, value)
    width = dim_product(shape[axis + 1 :])
    row = For("j", width, "vector", (*elements.take(), store))
    loop = For("i", shape[axis], "serial", (*prepared, row))
    units = dim_product(shape[:axis])
    return finish_program(buffers, (loop,), units, grain_for(shape[axis] * width))


WRITE_ROWS = Kind("write_rows", one_kernel(lower_write_rows), takes_followers=False)
