"""A resampling of several axes one of which lies in lanes, as two resamplings: of the other axes,
then of that one.

In: a group anchored by ``resize``. Out: its two parts and the workspace between them, or None.
Not done here: loops (``resize``).

Lanes load together in the first part, and in the second part indices and weights are those of a
column, for all rows. In one kernel each element would have both of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.graph import Node, make_attributes
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.views import dense_view, storage_order
from ingot_compiler.lowering.kinds.launches_in_turn import WORKSPACE
from ingot_compiler.lowering.kinds.resize_whole import whole_step


def split_resize(group: Group) -> tuple[Group, Group, Operand] | None:
    """(Before, behind, between): None where one launch is as fast, or where two would round other
    numbers."""
    node = group.nodes[group.anchor]
    axes, result = node.ints("axes"), dict(group.types)[node.results[0]]
    order = storage_order(group.results[0].view, result.shape)
    lane = order[-1]
    splits = lane in axes and len(axes) > 1 and len(node.operands) == 1
    exact = result.dtype in ("f32", "f64") or node.text("mode") == "nearest"
    if not splits or not exact or node.text("coordinates") == "tf_crop_and_resize":
        return None
    (x,) = (operand for operand in group.operands if operand.value == node.operands[0])
    step = whole_step(node, axes.index(lane), x.type.shape[lane])
    if step is not None and step.lanes_load_together:
        return None
    others = [position for position, axis in enumerate(axes) if axis != lane]
    shape = list(result.shape)
    shape[lane] = x.type.shape[lane]
    tensor_type = TensorType(result.dtype, tuple(shape))
    between = Operand(WORKSPACE, tensor_type, WORKSPACE, dense_view(tensor_type.shape, order))
    first = _along(node, others, node.operands[0], WORKSPACE)
    last = _along(node, [axes.index(lane)], WORKSPACE, node.results[0])
    types = (*group.types, (WORKSPACE, tensor_type))
    before = replace(
        group, nodes=(first,), operands=(x,), results=(between,), types=types, anchor=0
    )
    nodes = tuple(last if each is node else each for each in group.nodes)
    read = {value for each in nodes for value in each.operands}
    rest = tuple(operand for operand in group.operands if operand.value in read)
    behind = replace(group, nodes=nodes, operands=(between, *rest), types=types)
    return before, behind, between


def _along(node: Node, positions: Sequence[int], operand: int, result: int) -> Node:
    """The resampling of some of the axes."""
    count = len(node.ints("axes"))
    regions = node.reals("roi")
    ends = [*positions, *(count + position for position in positions)] if regions else []
    attributes: dict[str, Attribute] = {
        **node.table,
        "axes": tuple(node.ints("axes")[position] for position in positions),
        "sizes": tuple(node.dims("sizes")[position] for position in positions),
        "scales": tuple(node.reals("scales")[position] for position in positions),
        "roi": tuple(regions[end] for end in ends),
    }
    return replace(
        node, operands=(operand,), results=(result,), attributes=make_attributes(attributes)
    )
