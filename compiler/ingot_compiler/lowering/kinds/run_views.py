"""The axes of a result that form one run of elements, in every tensor that a kernel reads and
writes for it.

In: a group of ops that are computed element by element. Out: views of the result's shape. Not done
here: groups whose operands lie along other axes (``transposed_plane``), which axes become loops
(``pointwise``).

Slices that indices pick, and what is padded, lie as their tensor does, except along the axes of the
indices and pads: these are part of no run.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.lowering.groups.fused import Group, View
from ingot_compiler.lowering.groups.views import broadcast_view
from ingot_compiler.lowering.ops import INDEXED_OPERANDS, STRIDES
from ingot_compiler.lowering.ops.element import PICKED

# Ops whose second operand is read at the point of the result, or is one number.
_READ_THERE = ("gather_elements", "pad")


def run_views(group: Group) -> list[View] | None:
    """Views of operands and results, broadcast to the result's shape; None where a value between
    has another shape, or depends on positions."""
    shape, types = group.results[0].type.shape, dict(group.types)
    made = {value: node for node in group.nodes for value in node.results}
    stored = {operand.value: operand for operand in group.operands}
    views = [result.view for result in group.results]
    pending, met = [result.value for result in group.results], set[int]()
    while pending:
        value = pending.pop()
        if value in met:
            continue
        met.add(value)
        if (operand := stored.get(value)) is not None:
            views.append(broadcast_view(operand.view, operand.type.shape, shape))
            continue
        node = made[value]
        if types[value].shape not in (shape, ()):
            return None
        if (strides_of := STRIDES.get(node.op)) is not None:
            data, other = node.operands
            views.append(View(strides_of(node, stored[data].view, types[other])))
            pending += [other] if node.op in _READ_THERE else []
        elif node.op in ("iota", "dim_values", *INDEXED_OPERANDS):
            return None
        else:
            pending += node.operands
    return views


def has_picked(views: Sequence[View]) -> bool:
    """Whether indices or pads change what lies along an axis."""
    return any(PICKED in view.strides for view in views)
