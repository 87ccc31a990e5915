"""A group as its kernel sees it: without the place that it has in one model, so that equal layers
are equal groups.

In: a group of a fused graph. Out: the same group with values and buffers numbered from 0, without
sources and marks. Not done here: lowering. The order of the numbers stays, so the kernel is the
same.
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.fused import Group, Operand


def canonical_group(group: Group) -> Group:
    """Return the group that every layer like this one has."""
    operands = (*group.operands, *group.results)
    named = {value for node in group.nodes for value in (*node.operands, *node.results)}
    values = _numbers(
        named | {value for value, _ in group.types} | {operand.value for operand in operands}
    )
    buffers = _numbers({operand.buffer for operand in operands})

    def renumbered(operand: Operand) -> Operand:
        return replace(operand, value=values[operand.value], buffer=buffers[operand.buffer])

    return replace(
        group,
        nodes=tuple(_node(node, values) for node in group.nodes),
        operands=tuple(map(renumbered, group.operands)),
        results=tuple(map(renumbered, group.results)),
        types=tuple((values[value], kind) for value, kind in group.types),
        source=(),
        device=0,
        stop_reason="",
    )


def _numbers(used: set[int]) -> dict[int, int]:
    return {number: position for position, number in enumerate(sorted(used))}


def _node(node: Node, values: dict[int, int]) -> Node:
    assert not node.regions, "control flow is steps, never part of a group"
    return replace(
        node,
        operands=tuple(values[value] for value in node.operands),
        results=tuple(values[value] for value in node.results),
        source=(),
        mark="",
        attributes=() if node.op == "require" else node.attributes,  # what it says is said by main
    )
