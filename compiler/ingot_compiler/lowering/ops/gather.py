"""``gather``: take slices along one axis by index (ONNX Gather-13).

In: a node. Out: its element. Not done here: an error for an index out of range (``require``): it is
clamped, so that no index can leave the tensor.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import View
from ingot_compiler.lowering.groups.space import Space, point
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, FromIndex, Load, Value
from ingot_compiler.lowering.ops.element import PICKED, ElementScope

_U8_MAX = 255


def wrapped_index(elements: ElementScope, index: Value, extent: Dim) -> Dim:
    """An index that counts from the end when negative, clamped into ``[0, extent)``."""
    wide = elements.let(Apply("cast", (index,), "i64"), "i64")
    size = FromIndex(extent, "i64")
    zero = Constant(0, "i64")
    from_end = Apply("add", (wide, size), "i64")
    chosen = Apply("select", (Apply("less", (wide, zero), "bool"), from_end, wide), "i64")
    last = Apply("sub", (size, Constant(1, "i64")), "i64")
    return elements.let_index(Apply("max", (Apply("min", (chosen, last), "i64"), zero), "i64"))


def element(elements: ElementScope, node: Node, space: Space) -> Value:
    """x[.., indices[..], ..]."""
    data = elements.operand(node, 0)
    axis = node.integer("axis")
    index_shape = elements.types[node.operands[1]].shape
    where = space.indices()
    at = point(index_shape, where[axis : axis + len(index_shape)])
    index, extent = elements.value(node.operands[1], at), data.type.shape[axis]
    if elements.dtype(node.operands[1]) == "u8" and isinstance(extent, int) and extent > _U8_MAX:
        chosen = elements.let_index(index)  # is in the tensor
    else:
        chosen = wrapped_index(elements, index, extent)
    source = point(data.type.shape, (*where[:axis], chosen, *where[axis + len(index_shape) :]))
    return Load(elements.buffers.number(data), source.offset(data.view))


def strides_along(node: Node, data: View, indices: TensorType) -> tuple[Dim, ...]:
    """How slices lie along the axes of the result."""
    axis = node.integer("axis")
    return (*data.strides[:axis], *[PICKED] * indices.rank, *data.strides[axis + 1 :])
