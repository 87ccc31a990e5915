"""``scatter_elements`` and ``scatter_nd``: updates written into a copy that an earlier kernel made.

In: a group anchored by one of them; its result buffer already holds the data. Out: its loop
program. Not done here: the copy, errors for indices out of range (clamped; ``require`` reports).
Updates that meet are applied in index order.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_product, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.space import Run, Space, point
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops.loop_values import Apply, Load, Value
from ingot_compiler.lowering.loops.program import For, LoopProgram, Store
from ingot_compiler.lowering.ops.indexing import wrapped_index


def _combined(node: Node, buffer: int, index: Dim, update: Value, dtype: DType) -> Value:
    reduction = node.text("reduction")
    return update if reduction == "none" else Apply(reduction, (Load(buffer, index), update), dtype)


def _parts(group: Group) -> tuple[Node, Operand, Operand, Operand]:
    anchor = group.nodes[group.anchor]
    operands = {operand.value: operand for operand in group.operands}
    return anchor, operands[anchor.operands[1]], operands[anchor.operands[2]], group.results[0]


def lower_scatter_elements(group: Group, target: KernelTarget) -> LoopProgram:
    """Units are positions of the indices outside ``axis``: updates of different units never
    meet."""
    del target
    anchor, indices, updates, result = _parts(group)
    axis = anchor.integer("axis")
    shape = indices.type.shape
    kept = tuple(other for other in range(len(shape)) if other != axis)
    space = Space(shape, (Run(kept, symbol("p")), Run((axis,), symbol("i"))))
    buffers = GroupBuffers(group)
    elements = Elements(group, buffers)
    chosen = wrapped_index(elements, elements.value(indices.value, space), result.type.shape[axis])
    where = list(space.indices())
    where[axis] = chosen
    index = point(result.type.shape, tuple(where)).offset(result.view)
    update = elements.value(updates.value, space)
    number = buffers.number(result)
    value = _combined(anchor, number, index, update, result.type.dtype)
    loop = For("i", shape[axis], "serial", (*elements.take(), Store(number, index, value)))
    units = dim_product(tuple(shape[other] for other in kept))
    return finish_program(buffers, (loop,), units, grain_for(shape[axis] * 4))


def lower_scatter_nd(group: Group, target: KernelTarget) -> LoopProgram:
    """One unit: positions in order, the slice that each names in lanes."""
    del target
    anchor, indices, updates, result = _parts(group)
    *outer, depth = indices.type.shape
    assert isinstance(depth, int)
    rank = result.type.rank
    buffers = GroupBuffers(group)
    elements = Elements(group, buffers)
    position = Space(tuple(outer), (Run(tuple(range(len(outer))), symbol("i")),)).indices()
    chosen = tuple(
        wrapped_index(
            elements,
            elements.value(indices.value, point(indices.type.shape, (*position, axis))),
            result.type.shape[axis],
        )
        for axis in range(depth)
    )
    before = elements.take()
    rest = tuple(result.type.shape[depth:])
    inner = Space(rest, (Run(tuple(range(len(rest))), symbol("j")),)).indices() if rest else ()
    assert len(inner) == rank - depth
    index = point(result.type.shape, (*chosen, *inner)).offset(result.view)
    source = point(updates.type.shape, (*position, *inner))
    update = elements.value(updates.value, source)
    number = buffers.number(result)
    value = _combined(anchor, number, index, update, result.type.dtype)
    slice_loop = For(
        "j", dim_product(rest), "vector", (*elements.take(), Store(number, index, value))
    )
    body = (For("i", dim_product(tuple(outer)), "serial", (*before, slice_loop)),)
    return finish_program(buffers, body, 1, 1)


SCATTER_ELEMENTS = Kind(
    "scatter_elements", one_kernel(lower_scatter_elements), takes_followers=False
)
SCATTER_ND = Kind("scatter_nd", one_kernel(lower_scatter_nd), takes_followers=False)
