"""A resampling of several axes one of which lies in lanes, as several: of the other axes, then of
that one.

In: a group anchored by ``resize``. Out: its parts and the workspaces between them, or None.
Not done here: loops (``resize``).

Lanes load together in the first part, and in the last one indices and weights are those of a
column, for all rows. In one kernel each element would have both of its own. The other axes are one
part each where together they have more taps than are written out: scales that a run gives resample
all axes, and of four by cubic curves each element would have 256 taps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.graph import Node, make_attributes
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.views import dense_view, storage_order
from ingot_compiler.lowering.kinds.launches_in_turn import workspace_number
from ingot_compiler.lowering.kinds.resize_scope import WRITTEN_OUT_MAX, ResizeScope
from ingot_compiler.lowering.kinds.resize_whole import whole_step
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SplitResize:
    """``between``: what each part but the last writes for the next one."""

    parts: tuple[Group, ...]
    between: tuple[Operand, ...]


def split_resize(group: Group) -> SplitResize | None:
    """None where one launch is as fast, or where several would round other numbers."""
    node = group.nodes[group.anchor]
    axes, result = node.ints("axes"), dict(group.types)[node.results[0]]
    order = storage_order(group.results[0].view, result.shape)
    lane = order[-1]
    splits = lane in axes and len(axes) > 1
    exact = result.dtype in ("f32", "f64") or node.text("mode") == "nearest"
    if not splits or not exact or node.text("coordinates") == "tf_crop_and_resize":
        return None
    (x,) = (operand for operand in group.operands if operand.value == node.operands[0])
    step = whole_step(node, axes.index(lane), x.type.shape[lane])
    if step is not None and step.lanes_load_together:
        return None
    *others, last = _stages(group, axes.index(lane))
    if not all(_are_evenly_apart(positions) for positions in others):
        return None
    source, parts, between = x, list[Group](), list[Operand]()
    for number, positions in enumerate(others):
        made = _workspace(node, positions, source, order, workspace_number(number))
        parts.append(
            _part(
                group, (_along(node, positions, source.value, made.value),), source, positions, made
            )
        )
        between.append(made)
        source = made
    behind = _along(node, last, source.value, node.results[0])
    nodes = tuple(behind if each is node else each for each in group.nodes)
    parts.append(_part(group, nodes, source, last, None))
    return SplitResize(tuple(parts), tuple(between))


def _stages(group: Group, lane: int) -> list[list[int]]:
    """Positions of the axes of each part, that in lanes last."""
    scope = ResizeScope.of(group)
    others = [position for position in range(len(scope.axes)) if position != lane]
    counts = [scope.tap_range(position)[1] for position in others]
    is_short = math.prod(counts) <= WRITTEN_OUT_MAX or scope.is_antialias
    return [*([others] if is_short else [[each] for each in others]), [lane]]


def _are_evenly_apart(positions: Sequence[int]) -> bool:
    """Whether their entries of a vector are one with a stride."""
    return len({after - before for before, after in pairwise(positions)}) < 2


def _workspace(
    node: Node, positions: Sequence[int], source: Operand, order: Sequence[int], value: int
) -> Operand:
    """What the resampling of some axes makes."""
    shape = list(source.type.shape)
    for position in positions:
        shape[node.ints("axes")[position]] = node.dims("sizes")[position]
    tensor_type = TensorType(source.type.dtype, tuple(shape))
    return Operand(value, tensor_type, value, dense_view(tensor_type.shape, order))


def _part(
    group: Group,
    nodes: tuple[Node, ...],
    source: Operand,
    positions: Sequence[int],
    made: Operand | None,
) -> Group:
    """Some of the axes, from ``source``, to ``made`` or to what the group makes."""
    node = group.nodes[group.anchor]
    vectors = {
        operand.value: _entries(operand, positions, len(node.ints("axes")))
        for operand in group.operands
        if operand.value in node.operands[1:]
    }
    read = {value for each in nodes for value in each.operands}
    rest = tuple(
        vectors.get(operand.value, operand)
        for operand in group.operands
        if operand.value in read - {source.value}
    )
    operands = (source, *rest)
    types = dict(group.types)
    types |= {each.value: each.type for each in (*operands, *((made,) if made else ()))}
    return replace(
        group,
        nodes=nodes,
        operands=operands,
        results=(made,) if made else group.results,
        types=tuple(types.items()),
        anchor=0 if made else group.anchor,
    )


def _entries(vector: Operand, positions: Sequence[int], axis_count: int) -> Operand:
    """The scales of some of the axes. Regions are read in another mode alone, and stay."""
    if vector.type.shape != (axis_count,):
        return vector
    (stride,), first = vector.view.strides, positions[0]
    step = positions[1] - first if len(positions) > 1 else 1
    view = replace(
        vector.view, strides=(stride * step,), offset=vector.view.offset + stride * first
    )
    shape = (len(positions),)
    return replace(vector, type=replace(vector.type, shape=shape), view=view)


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
    operands = (operand, *node.operands[1:])
    return replace(
        node, operands=operands, results=(result,), attributes=make_attributes(attributes)
    )
