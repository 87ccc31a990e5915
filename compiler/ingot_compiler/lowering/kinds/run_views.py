"""Which axes of a result are one run of elements, in all that a kernel reads and writes for it.

In: a group of ops that are computed element by element. Out: views of the result's shape. Not done
here: groups whose operands lie along other axes (``transposed_plane``), which axes become loops
(``pointwise``).

Slices that indices pick lie as their tensor does, except along the axes of the indices: these are
part of no run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.fused import Group, View
from ingot_compiler.lowering.ops import INDEXED_OPERANDS
from ingot_compiler.lowering.views import broadcast_view

_PICKED = symbol("picked")  # a stride that is a multiple of no other one


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
        if (strides_of := _PICKED_STRIDES.get(node.op)) is not None:
            data, indices = node.operands
            views.append(View(strides_of(node, stored[data].view, types[indices])))
            pending += [indices] if node.op == "gather_elements" else []
        elif node.op in ("iota", "dim_values", *INDEXED_OPERANDS):
            return None
        else:
            pending += node.operands
    return views


def has_picked(views: Sequence[View]) -> bool:
    """Whether indices pick along an axis."""
    return any(_PICKED in view.strides for view in views)


def _gather(node: Node, data: View, indices: TensorType) -> tuple[Dim, ...]:
    axis = node.integer("axis")
    return (*data.strides[:axis], *[_PICKED] * indices.rank, *data.strides[axis + 1 :])


def _gather_elements(node: Node, data: View, indices: TensorType) -> tuple[Dim, ...]:
    axis = node.integer("axis")
    del indices
    return (*data.strides[:axis], _PICKED, *data.strides[axis + 1 :])


def _gather_nd(node: Node, data: View, indices: TensorType) -> tuple[Dim, ...]:
    first, depth = node.integer("batch_dims"), indices.shape[-1]
    assert isinstance(depth, int)
    picked = [_PICKED] * (indices.rank - 1 - first)
    return (*data.strides[:first], *picked, *data.strides[first + depth :])


_PICKED_STRIDES: dict[str, Callable[[Node, View, TensorType], tuple[Dim, ...]]] = {
    "gather": _gather,
    "gather_elements": _gather_elements,
    "gather_nd": _gather_nd,
}
