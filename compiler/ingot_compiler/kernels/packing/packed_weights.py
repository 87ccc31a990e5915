"""Weights as the kernels with register tiles read them.

In: a node, the fuser. Out: a leaf for the packed weights. Not done here: the packing itself
(``packing``), who asks for it (``anchors``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_mul
from ingot_compiler.ir.graph import Graph, Node, make_attributes
from ingot_compiler.ir.rules.window_rules import BYTES
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.kernels.packing import packing
from ingot_compiler.kernels.packing.weight_parts import greatest_magnitude, weight_part
from ingot_compiler.kernels.packing.winograd_weights import winograd_weights
from ingot_compiler.kernels.tiles import (
    factors_together,
    panel_columns,
    rows_together,
    sum_dtype,
)
from ingot_compiler.kernels.winograd_tiles import WinogradShape
from ingot_compiler.lowering.fusion.deferred import Leaf
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.loop_anchors import packed_at_run_time
from ingot_compiler.lowering.fusion.storage import Stored
from ingot_compiler.lowering.groups.fused import View
from ingot_compiler.lowering.groups.space import ceil_div


def depthwise_weights(fuser: Fuser, node: Node, dtype: DType) -> Leaf:
    """Constant weights of a depthwise ``conv``: [kernel.., C], or four taps of bytes beside each
    other."""
    values = fuser.values
    weights = packing.cast_to(values.expression(node.operands[1]), dtype)
    device = values.device_of(node.results[0])
    together = rows_together(dtype) if dtype in BYTES else 1
    return fuser.constant(packing.depthwise_weights(weights, together), device)


def conv_rows_weights(fuser: Fuser, node: Node, dtype: DType) -> Leaf:
    """Constant weights of a ``conv``, the channels of a tap beside each other."""
    values = fuser.values
    weights = packing.cast_to(values.expression(node.operands[1]), dtype)
    return fuser.constant(packing.conv_rows_weights(weights), values.device_of(node.results[0]))


def _factors(fuser: Fuser, node: Node, weights: int, dtype: DType) -> Graph:
    """A constant operand, as kernels of the node's device read factors of ``dtype``."""
    values = fuser.values
    target = fuser.targets[values.device_of(node.results[0])]
    return packing.factors_of(values.expression(weights), dtype, target)


def conv_panels(fuser: Fuser, node: Node, dtype: DType, depth: int) -> Leaf:
    """Constant weights of a ``conv`` in panels; ``depth`` of a tap."""
    weights = _factors(fuser, node, node.operands[1], dtype)
    return _conv_panels(fuser, node, weights, dtype, depth)


def conv_part_panels(fuser: Fuser, node: Node, count: int, depth: int) -> list[Leaf]:
    """Constant weights of a ``conv`` in panels, as ``count`` parts of bf16; then their greatest
    magnitude."""
    weights = fuser.values.expression(node.operands[1])
    parts = (weight_part(weights, number) for number in range(count))
    panels = [_conv_panels(fuser, node, part, "bf16", depth) for part in parts]
    return [*panels, _greatest(fuser, node)]


def _greatest(fuser: Fuser, node: Node) -> Leaf:
    """The greatest magnitude of constant weights."""
    values = fuser.values
    expression = greatest_magnitude(values.expression(node.operands[1]))
    return fuser.constant(expression, values.device_of(node.results[0]))


def _conv_panels(fuser: Fuser, node: Node, weights: Graph, dtype: DType, depth: int) -> Leaf:
    matrix = packing.conv_matrix(weights, node.integer("groups"))
    width = panel_columns(sum_dtype(dtype))
    panels = packing.pack_panels(matrix, width, factors_together(dtype, dtype), depth)
    return fuser.constant(panels, fuser.values.device_of(node.results[0]))


def transformed_weights(fuser: Fuser, node: Node, shape: WinogradShape) -> Leaf:
    """Constant weights of a ``conv`` in frequencies."""
    values = fuser.values
    weights = winograd_weights(values.expression(node.operands[1]), shape)
    return fuser.constant(weights, values.device_of(node.results[0]))


def conv_weights_at_run_time(fuser: Fuser, w: int, groups: int) -> Leaf:
    """[O, C, kernel..] copied to [G, kernel.., C, O/G] in the workspace."""
    stored, tensor_type = fuser.where(w), fuser.values.type_of(w)
    own, strides = dim_floordiv(tensor_type.shape[0], groups), stored.view.strides
    view = replace(stored.view, strides=(own * strides[0], *strides[2:], strides[1], strides[0]))
    packed = TensorType(
        tensor_type.dtype, (groups, *tensor_type.shape[2:], tensor_type.shape[1], own)
    )
    return packed_at_run_time(fuser, w, packed, Stored(stored.buffer, view))


def byte_panels_at_run_time(fuser: Fuser, b: int) -> Leaf:
    """[.., K, N] of bytes copied to panels in the workspace, zeros behind K and N."""
    width, together = panel_columns("i32"), rows_together(fuser.values.type_of(b).dtype)
    b = _with_whole_panels(fuser, b, together, width)
    stored, tensor_type = fuser.where(b), fuser.values.type_of(b)
    *batch, depth, columns = tensor_type.shape
    *outer, down, across = stored.view.strides
    strides = (*outer, width * across, together * down, across, down)
    panels = (dim_floordiv(columns, width), dim_floordiv(depth, together), width, together)
    packed = TensorType(tensor_type.dtype, (*batch, *panels))
    return packed_at_run_time(
        fuser, b, packed, Stored(stored.buffer, View(strides, stored.view.offset))
    )


def _with_whole_panels(fuser: Fuser, b: int, together: int, width: int) -> int:
    """B, or a new value of B with zeros behind its rows and columns."""
    values, tensor_type = fuser.values, fuser.values.type_of(b)
    after: list[Dim] = [0] * tensor_type.rank
    for axis, unit in ((-2, together), (-1, width)):
        after[axis] = dim_add(
            dim_mul(ceil_div(tensor_type.shape[axis], unit), unit),
            dim_mul(tensor_type.shape[axis], -1),
        )
    if not any(after):
        return b
    device = values.device_of(b)
    zero = values.add(TensorType(tensor_type.dtype, ()), device)
    literal: dict[str, Attribute] = {"dtype": tensor_type.dtype, "shape": (), "value": (0,)}
    fuser.defer_added(Node("literal", (), (zero,), make_attributes(literal)))
    shape = tuple(map(dim_add, tensor_type.shape, after))
    padded = values.add(TensorType(tensor_type.dtype, shape), device)
    pads: dict[str, Attribute] = {
        "before": (0,) * tensor_type.rank,
        "after": tuple(after),
        "mode": "constant",
    }
    node = Node("pad", (b, zero), (padded,), make_attributes(pads))
    part = fuser.deferred(zero)
    fuser.defer(values.add_node(node), [part] if part else [], [fuser.leaf(b)])
    return padded


def matrix_panels(fuser: Fuser, node: Node, dtype: DType) -> Leaf:
    """A constant matrix in panels."""
    matrix = _factors(fuser, node, node.operands[1], dtype)
    return _matrix_panels(fuser, node, matrix, dtype)


def group_panels(fuser: Fuser, node: Node, b: int, dtype: DType) -> Leaf:
    """Constant matrices [G, K, N] in panels."""
    panels = packing.pack_panels(_factors(fuser, node, b, dtype), panel_columns(dtype))
    return fuser.constant(panels, fuser.values.device_of(node.results[0]))


def byte_matrix_panels(fuser: Fuser, node: Node) -> list[Leaf]:
    """A constant matrix of bytes and what is added to its columns, for an f32 product."""
    values, device = fuser.values, fuser.values.device_of(node.results[0])
    found = packing.bytes_and_addends(values.expression(node.operands[1]))
    assert found, "the method reads bytes"
    numbers, addends = found
    columns = values.type_of(node.operands[1]).shape[1]
    assert isinstance(columns, int)
    added = packing.column_vector(addends, columns, panel_columns("f32"))
    return [_matrix_panels(fuser, node, numbers, "f32"), fuser.constant(added, device)]


def matrix_part_panels(fuser: Fuser, node: Node, count: int) -> list[Leaf]:
    """A constant matrix in panels, as ``count`` parts of bf16; then its greatest magnitude."""
    matrix = fuser.values.expression(node.operands[1])
    parts = (weight_part(matrix, number) for number in range(count))
    return [*(_matrix_panels(fuser, node, part, "bf16") for part in parts), _greatest(fuser, node)]


def _matrix_panels(fuser: Fuser, node: Node, matrix: Graph, dtype: DType) -> Leaf:
    width = panel_columns(sum_dtype(dtype))
    panels = packing.pack_matrix(matrix, width, factors_together(dtype, dtype))
    return fuser.constant(panels, fuser.values.device_of(node.results[0]))


def blocks_in_panels(fuser: Fuser, node: Node) -> list[Leaf]:
    """The numbers of ``matmul_blocks``, their scales and zero points."""
    return _blocks_in_panels(fuser, node, map(fuser.values.expression, node.operands[1:]))


def group_blocks_in_panels(fuser: Fuser, node: Node) -> list[Leaf]:
    """The numbers of ``grouped_matmul_blocks``, their scales and zero points; its matrices follow
    each other."""
    weights = map(fuser.values.expression, node.operands[2:])
    width = panel_columns("f32")
    return _blocks_in_panels(fuser, node, (packing.in_one_matrix(each, width) for each in weights))


def _blocks_in_panels(fuser: Fuser, node: Node, weights: Iterable[Graph]) -> list[Leaf]:
    (numbers, *parameters), width = weights, panel_columns("f32")
    device = fuser.values.device_of(node.results[0])
    panels = [packing.block_panels(numbers, width)]
    panels += [packing.parameter_panels(parameter, width) for parameter in parameters]
    return [fuser.constant(panel, device) for panel in panels]


def recurrent_panels(fuser: Fuser, node: Node, weights: int) -> Leaf:
    """[D, H, columns] in panels."""
    values, (y, *_) = fuser.values, node.results
    width = panel_columns(values.type_of(y).dtype)
    together = rows_together(values.type_of(weights).dtype)
    panels = packing.pack_panels(values.expression(weights), width, together)
    return fuser.constant(panels, values.device_of(y))
