"""The layout of every tensor of a kernel along the axes of its result.

In: a group. Out: views of the result's shape; whether two axes are one run in all of them, and a
node reads where it writes. Not done here: which axes become loops (``pointwise``,
``transposed_plane``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.dims import dim_mul
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.lowering.groups.fused import Group, View
from ingot_compiler.lowering.groups.views import Shape, broadcast_view
from ingot_compiler.lowering.ops import INDEXED_OPERANDS


def touched_views(group: Group) -> list[View] | None:
    """Views of operands and results, broadcast to the result's shape; None when an op indexes
    freely."""
    shape = group.results[0].type.shape
    types = dict(group.types)
    free = {"iota", "dim_values", *INDEXED_OPERANDS}
    if any(node.op in free for node in group.nodes):
        return None
    inner_shapes = {types[value].shape for node in group.nodes for value in node.results}
    if any(other not in (shape, ()) for other in inner_shapes):
        return None
    operands = (*group.operands, *group.results)
    return [broadcast_view(operand.view, operand.type.shape, shape) for operand in operands]


def are_one_run(views: Sequence[View], shape: Shape, outer: int, inner: int) -> bool:
    """Whether an axis continues another one everywhere."""
    return all(view.strides[outer] == dim_mul(view.strides[inner], shape[inner]) for view in views)


def is_elementwise(group: Group, node: Node) -> bool:
    """Whether an element depends on those at the same place alone, or on nothing."""
    traits = OPS_BY_NAME[node.op].traits
    single = Trait.SOURCE in traits and dict(group.types)[node.results[0]].rank == 0
    return single or Trait.ELEMENTWISE in traits
