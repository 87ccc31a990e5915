"""``gather_nd``: the last axis of the indices names a position (ONNX GatherND-13).

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
    """x[batch.., indices[batch.., i.., :].., rest..]."""
    data = elements.operand(node, 0)
    batch = node.integer("batch_dims")
    index_shape = elements.types[node.operands[1]].shape
    depth = index_shape[-1]
    assert isinstance(depth, int)
    where = space.indices()
    outer = len(index_shape) - 1
    chosen = tuple(
        wrapped_index(
            elements,
            elements.value(node.operands[1], point(index_shape, (*where[:outer], position))),
            data.type.shape[batch + position],
        )
        for position in range(depth)
    )
    source = point(data.type.shape, (*where[:batch], *chosen, *where[outer:]))
    return Load(elements.buffers.number(data), source.offset(data.view))


def strides_along(node: Node, data: View, indices: TensorType) -> tuple[Dim, ...]:
    """How slices lie along the axes of the result."""
    first, depth = node.integer("batch_dims"), indices.shape[-1]
    assert isinstance(depth, int)
    picked = [PICKED] * (indices.rank - 1 - first)
    return (*data.strides[:first], *picked, *data.strides[first + depth :])
