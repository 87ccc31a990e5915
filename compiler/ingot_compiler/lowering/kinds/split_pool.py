"""A pool over large windows as pools along one axis after the other; of maxima, along an axis first
over some neighbours, then over some of those maxima.

In: a group anchored by ``max_pool`` or ``average_pool``. Out: its parts and the workspaces between
them, or None. Not done here: loops (``pool``).

A maximum may count an element twice: a window of 13 is three windows of 5, four apart. 64 elements
take 16 comparisons, a square of 13 by 13 takes 16 instead of 169. Of an average, all parts but the
last one are sums, which narrow floats would round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ingot_compiler.ir.attributes import Attribute, Attributes
from ingot_compiler.ir.graph import Node, make_attributes
from ingot_compiler.ir.rules.window_rules import infer_pool
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.views import dense_view, storage_order
from ingot_compiler.lowering.kinds.launches_in_turn import workspace_number
from ingot_runtime.lazy_dataclass import dataclass

_GAIN_MIN = 1.6  # so many times fewer comparisons are worth a launch more
_SHORT_MAX = 7  # elements of a window that stays one


@dataclass(frozen=True, slots=True)
class _Stage:
    """Windows along one axis."""

    axis: int
    kernel: int
    stride: int
    dilation: int
    is_padded: bool


def split_pool(group: Group) -> tuple[tuple[Group, ...], tuple[Operand, ...]] | None:
    """(Parts, what lies between them): None where one launch is as fast."""
    node = group.nodes[group.anchor]
    tensor_type = dict(group.types)[node.results[0]]
    stages = list(_stages(node))
    rounds = node.op == "average_pool" and tensor_type.dtype not in ("f32", "f64")
    if len(stages) < 2 or rounds:
        return None
    (x,) = (operand for operand in group.operands if operand.value == node.operands[0])
    order = storage_order(group.results[0].view, tensor_type.shape)
    nodes, between = list[Node](), [x]
    for number, stage in enumerate(stages):
        table = _attributes(node, stage)
        (tensor_type,) = infer_pool((between[-1].type,), table).results
        value = workspace_number(number)
        operand, is_last = between[-1].value, number == len(stages) - 1
        results = node.results if is_last else (value,)
        attributes = make_attributes(table)
        nodes.append(replace(node, operands=(operand,), results=results, attributes=attributes))
        if not is_last:
            between.append(Operand(value, tensor_type, value, dense_view(tensor_type.shape, order)))
    return tuple(_parts(group, nodes, between)), tuple(between[1:])


def _parts(group: Group, nodes: Sequence[Node], between: Sequence[Operand]) -> Iterator[Group]:
    """A group for each node; the last one has all else of the group."""
    own: list[tuple[int, TensorType]] = [(each.value, each.type) for each in between[1:]]
    types = (*group.types, *own)
    for node, source, target in zip(nodes, between, between[1:], strict=False):
        yield replace(
            group, nodes=(node,), operands=(source,), results=(target,), types=types, anchor=0
        )
    anchor = group.nodes[group.anchor]
    rest = tuple(nodes[-1] if each is anchor else each for each in group.nodes)
    read = {value for each in rest for value in each.operands}
    kept = tuple(operand for operand in group.operands if operand.value in read)
    yield replace(group, nodes=rest, operands=(between[-1], *kept), types=types)


def _stages(node: Node) -> Iterator[_Stage]:
    """The pools along one axis, in order; nothing where the windows are small."""
    kernels, strides = node.ints("kernel"), node.ints("strides")
    axes = [axis for axis, kernel in enumerate(kernels) if kernel != 1 or strides[axis] != 1]
    apart, later = 0, math.prod(strides)
    for axis in reversed(axes):  # the first one is computed where later strides pass over, too
        later //= strides[axis]
        apart += kernels[axis] * later
    if len(axes) > 1 and math.prod(kernels) < _GAIN_MIN * apart:
        return
    for axis in reversed(axes):
        whole = _Stage(axis, kernels[axis], strides[axis], node.ints("dilations")[axis], True)
        yield from _along(whole) if node.op == "max_pool" else (whole,)


def _along(whole: _Stage) -> Iterator[_Stage]:
    """One window, or windows of windows where that takes fewer comparisons."""
    kernel, stride = whole.kernel, whole.stride
    first, apart = min(
        (
            (first, apart)
            for first in range(1, kernel)
            for apart in range(1, first + 1)
            if (kernel - first) % apart == 0
        ),
        key=lambda pair: (pair[0] * stride + (kernel - pair[0]) // pair[1] + 1, -pair[0]),
        default=(kernel, 1),
    )
    second = (kernel - first) // apart + 1
    if kernel <= _SHORT_MAX or kernel * 2 < 3 * (first * stride + second):
        yield whole
        return
    yield replace(whole, kernel=first, stride=1)
    yield replace(whole, kernel=second, dilation=whole.dilation * apart, is_padded=False)


def _attributes(node: Node, stage: _Stage) -> Attributes:
    """The attributes of a pool along one axis."""

    def along(value: Attribute, other: int) -> tuple[Attribute, ...]:
        rank = len(node.ints("kernel"))
        return tuple(value if axis == stage.axis else other for axis in range(rank))

    pads = {
        name: along(node.dims(name)[stage.axis] if stage.is_padded else 0, 0)
        for name in ("pads_before", "pads_after")
    }
    return {
        **node.table,
        **pads,
        "kernel": along(stage.kernel, 1),
        "strides": along(stage.stride, 1),
        "dilations": along(stage.dilation, 1),
    }
