"""``gather_elements``: one index per result element along one axis (ONNX GatherElements-13).

In: a node. Out: its element. Not done here: errors for indices out of range (clamped; ``require``
reports).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import View
from ingot_compiler.lowering.groups.space import Space, point
from ingot_compiler.lowering.loops.loop_values import Load, Value
from ingot_compiler.lowering.ops.element import PICKED, ElementScope
from ingot_compiler.lowering.ops.gather import wrapped_index


def element(elements: ElementScope, node: Node, space: Space) -> Value:
    """x[i0, .., indices[i0, .., ik], .., ik]."""
    data = elements.operand(node, 0)
    axis = node.integer("axis")
    chosen = wrapped_index(elements, elements.value(node.operands[1], space), data.type.shape[axis])
    where = list(space.indices())
    where[axis] = chosen
    return Load(
        elements.buffers.number(data), point(data.type.shape, tuple(where)).offset(data.view)
    )


def strides_along(node: Node, data: View, indices: TensorType) -> tuple[Dim, ...]:
    """How the tensor lies along the axes of the result."""
    axis = node.integer("axis")
    del indices
    return (*data.strides[:axis], PICKED, *data.strides[axis + 1 :])
