"""Units that are the lines along one axis of a tensor: one for each point of the other axes.

In: a shape, an axis. Out: a point of a line, and what an operand has there; how many lines there
are. Not done here: what happens along a line (``argument_reduce``, ``cumsum``, ``radix_sort``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_product, symbol
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Operand
from ingot_compiler.lowering.groups.space import Run, Space
from ingot_compiler.lowering.groups.views import Shape
from ingot_compiler.lowering.kinds.program import INDEX
from ingot_compiler.lowering.loops.loop_values import Load

_OWN: Dim = symbol(INDEX)


def other_axes(shape: Shape, axis: int) -> tuple[int, ...]:
    """All axes but one."""
    return tuple(other for other in range(len(shape)) if other != axis)


def point_of_line(shape: Shape, axis: int, index: Dim, line: Dim = _OWN) -> Space:
    """Where ``axis`` has ``index``, in a line: the unit's, if no other is named."""
    return Space(shape, (Run(other_axes(shape, axis), line), Run((axis,), index)))


def load_of_line(
    buffers: GroupBuffers, operand: Operand, axis: int, index: Dim, line: Dim = _OWN
) -> Load:
    """The element of an operand that lies there."""
    place = point_of_line(operand.type.shape, axis, index, line).offset(operand.view)
    return Load(buffers.number(operand), place)


def line_count(shape: Shape, axis: int) -> Dim:
    """How many units there are."""
    return dim_product(tuple(shape[other] for other in other_axes(shape, axis)))
