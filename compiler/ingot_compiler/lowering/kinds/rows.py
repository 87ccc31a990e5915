"""Row kernels: softmax, layer normalisation and their kin, with the row in cache and neighbours
fused before and after.

In: a group anchored by one of ``ROW_BODIES``. Out: its loop program: units are rows, or
many of them in lanes. Not done here: what is computed along a row (``row_bodies``), normalisation
over channels of an image (``group_norm`` has its own kind).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import dim_mul, dim_product, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.space import Run, Space
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, one_kernel
from ingot_compiler.lowering.kinds.line_lanes import LineLanes
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.kinds.row_bodies import ROW_BODIES, RowScope
from ingot_compiler.lowering.loops.program import For, LoopProgram

_LANES_MIN = 5  # rows that lie together: with fewer, most lanes would be idle


def row_axes(node: Node, rank: int) -> tuple[int, ...]:
    """Axes that a row op works along: one for softmax, all from ``axis`` on for the norms."""
    axis = node.integer("axis")
    return tuple(range(axis, rank)) if node.op in ("layer_norm", "rms_norm") else (axis,)


def lower_rows(group: Group, target: KernelTarget) -> LoopProgram:
    """Statements for the row's scalars, then one vector loop that stores."""
    del target
    anchor, types = group.nodes[group.anchor], dict(group.types)
    shape, dtype = types[anchor.results[0]].shape, types[anchor.operands[0]].dtype
    along = row_axes(anchor, len(shape))
    lines = _lines_in_lanes(group, along)
    kept = tuple(axis for axis in range(len(shape)) if axis not in along)
    extent = dim_product(tuple(shape[axis] for axis in along))
    buffers = GroupBuffers(group)

    def space(variable: str) -> Space:
        if lines is not None:
            return lines.place(symbol(variable))
        return Space(shape, (Run(kept, symbol("p")), Run(along, symbol(variable))))

    outer = Elements(group, buffers)
    row = RowScope(group, anchor, space, extent, dtype, outer, in_lanes=lines is None)
    before, element = ROW_BODIES[anchor.op](row)
    body, value = element("j")
    epilogue = Elements(group, buffers)
    epilogue.counter = row.outer.counter
    epilogue.given[anchor.results[0]] = epilogue.let(value, dtype)
    stored = epilogue.stored(group.results[0], space("j"))
    if lines is not None:
        loop = For("j", extent, "serial", (*body, *stored))
        grain = grain_for(dim_mul(extent, 4 * lines.lines_of_unit))
        return finish_program(buffers, lines.in_lanes((*before, loop)), lines.unit_count, grain)
    loop = For("j", extent, "vector", (*body, *stored))
    units = dim_product(tuple(shape[axis] for axis in kept))
    return finish_program(buffers, (*before, loop), units, grain_for(dim_mul(extent, 4)))


def _lines_in_lanes(group: Group, along: tuple[int, ...]) -> LineLanes | None:
    """Rows that run beside each other, where those of every operand and result lie together, and
    their elements apart."""
    shape = group.results[0].type.shape
    whole = [each for each in (*group.operands, *group.results) if each.type.shape == shape]
    if len(along) != 1:
        return None
    found = {LineLanes.of(operand, along[0]) for operand in whole}
    lines = found.pop()
    enough = typical(lines.lane_count) >= _LANES_MIN and typical(shape[along[0]]) > 1
    return lines if not found and enough else None


ROWS = Kind("rows", one_kernel(lower_rows))
