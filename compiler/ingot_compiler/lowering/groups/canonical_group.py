"""A group as its kernel sees it: without the place that it has in one model, so that equal layers
are equal groups.

In: a group of a fused graph. Out: the same group with values and buffers numbered from 0, without
marks, and with no more of sources than ``narrow_values`` needs. Not done here: lowering.

Numbers follow the order in which the group names things, not the one that they have in the model,
where constants of a later layer may come before those of an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from operator import itemgetter

from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.narrow_values import shared_origins


def canonical_group(group: Group) -> Group:
    """Return the group that every layer like this one has."""
    operands = (*group.operands, *group.results)
    named = [value for node in group.nodes for value in (*node.operands, *node.results)]
    values = _numbers(
        [*(operand.value for operand in operands), *named, *(value for value, _ in group.types)]
    )
    types = [(values[value], kind) for value, kind in group.types]
    buffers = _numbers(operand.buffer for operand in operands)

    def renumbered(operand: Operand) -> Operand:
        return replace(operand, value=values[operand.value], buffer=buffers[operand.buffer])

    return replace(
        group,
        nodes=tuple(
            _node(node, values, origins)
            for node, origins in zip(group.nodes, shared_origins(group), strict=True)
        ),
        operands=tuple(map(renumbered, group.operands)),
        results=tuple(map(renumbered, group.results)),
        types=tuple(sorted(types, key=itemgetter(0))),
        source=(),
        device=0,
        stop_reason="",
    )


def _numbers(used: Iterable[int]) -> dict[int, int]:
    return {number: position for position, number in enumerate(dict.fromkeys(used))}


def _node(node: Node, values: dict[int, int], origins: tuple[int, ...]) -> Node:
    assert not node.regions, "control flow is steps, never part of a group"
    attributes = () if node.op == "require" else node.attributes  # what it says is said by main
    operands = tuple([values[value] for value in node.operands])
    results = tuple([values[value] for value in node.results])
    return Node(node.op, operands, results, attributes, (), origins)
