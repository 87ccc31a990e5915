"""Ops that read a tensor at indices: ``gather``, ``gather_elements``, ``gather_nd`` (ONNX Gather-13,
GatherElements-13, GatherND-13).

In: a node and a point of its result. Out: its element. Not done here: an error for an index out of
range (``require``): it is clamped, so that no index can leave the tensor.
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


def gather(elements: ElementScope, node: Node, space: Space) -> Value:
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


def gather_strides(node: Node, data: View, indices: TensorType) -> tuple[Dim, ...]:
    """How slices lie along the axes of the result."""
    axis = node.integer("axis")
    return (*data.strides[:axis], *[PICKED] * indices.rank, *data.strides[axis + 1 :])


def gather_elements(elements: ElementScope, node: Node, space: Space) -> Value:
    """x[i0, .., indices[i0, .., ik], .., ik]."""
    data = elements.operand(node, 0)
    axis = node.integer("axis")
    chosen = wrapped_index(elements, elements.value(node.operands[1], space), data.type.shape[axis])
    where = list(space.indices())
    where[axis] = chosen
    return Load(
        elements.buffers.number(data), point(data.type.shape, tuple(where)).offset(data.view)
    )


def gather_elements_strides(node: Node, data: View, indices: TensorType) -> tuple[Dim, ...]:
    """How the tensor lies along the axes of the result."""
    axis = node.integer("axis")
    del indices
    return (*data.strides[:axis], PICKED, *data.strides[axis + 1 :])


def gather_nd(elements: ElementScope, node: Node, space: Space) -> Value:
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


def gather_nd_strides(node: Node, data: View, indices: TensorType) -> tuple[Dim, ...]:
    """How slices lie along the axes of the result."""
    first, depth = node.integer("batch_dims"), indices.shape[-1]
    assert isinstance(depth, int)
    picked = [PICKED] * (indices.rank - 1 - first)
    return (*data.strides[:first], *picked, *data.strides[first + depth :])
