"""Weights as the kernels with register tiles read them.

In: a node, the fuser. Out: a leaf for the packed weights. Not done here: the packing itself
(``packing``), who asks for it (``anchors``).
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.backends.host import packing
from ingot_compiler.backends.host.tiles import panel_columns, rows_together, sum_dtype
from ingot_compiler.ir.dims import dim_floordiv
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.fusion.deferred import Leaf
from ingot_compiler.lowering.fusion.fuser import Fuser
from ingot_compiler.lowering.fusion.loop_anchors import packed_at_run_time
from ingot_compiler.lowering.fusion.storage import Stored


def depthwise_weights(fuser: Fuser, node: Node, dtype: DType) -> Leaf:
    """Constant weights of a depthwise ``conv``: [kernel.., C]."""
    values = fuser.values
    weights = packing.cast_to(values.expression(node.operands[1]), dtype)
    device = values.device_of(node.results[0])
    return fuser.constant(packing.depthwise_weights(weights), device)


def conv_panels(fuser: Fuser, node: Node, dtype: DType, depth: int) -> Leaf:
    """Constant weights of a ``conv`` in panels; ``depth`` of a tap."""
    values, w = fuser.values, node.operands[1]
    weights = packing.cast_to(values.expression(w), dtype)
    matrix = packing.conv_matrix(weights, node.integer("groups"))
    width = panel_columns(sum_dtype(dtype))
    panels = packing.pack_panels(matrix, width, rows_together(dtype), depth)
    return fuser.constant(panels, values.device_of(node.results[0]))


def conv_weights_at_run_time(fuser: Fuser, w: int, groups: int) -> Leaf:
    """[O, C, kernel..] copied to [G, kernel.., C, O/G] in the workspace."""
    stored, kind = fuser.where(w), fuser.values.type_of(w)
    own, strides = dim_floordiv(kind.shape[0], groups), stored.view.strides
    view = replace(stored.view, strides=(own * strides[0], *strides[2:], strides[1], strides[0]))
    packed = TensorType(kind.dtype, (groups, *kind.shape[2:], kind.shape[1], own))
    return packed_at_run_time(fuser, w, packed, Stored(stored.buffer, view))


def matrix_panels(fuser: Fuser, node: Node, dtype: DType) -> Leaf:
    """A constant matrix in panels."""
    values, width = fuser.values, panel_columns(sum_dtype(dtype))
    matrix = packing.cast_to(values.expression(node.operands[1]), dtype)
    panels = packing.pack_matrix(matrix, width, rows_together(dtype))
    return fuser.constant(panels, values.device_of(node.results[0]))


def recurrent_panels(fuser: Fuser, node: Node, weights: int) -> Leaf:
    """[D, H, columns] in panels."""
    values, (y, *_) = fuser.values, node.results
    width = panel_columns(values.type_of(y).dtype)
    panels = packing.pack_panels(values.expression(weights), width)
    return fuser.constant(panels, values.device_of(y))
