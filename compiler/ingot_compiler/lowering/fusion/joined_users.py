"""Values whose users are all joined by one of them: a LeakyRelu is three ops that read one value.

In: what is known of values. Out: a bool. Not done here: what a kernel takes in (``grouping``,
``fuse``).
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.lowering.fusion.values import FusionValues

_NODES_MAX = 8


def joins_in_one(values: FusionValues, value: int) -> bool:
    """Whether one elementwise op reads the value and all else that is made of it, beside constants:
    a kernel that takes in the value may end with it."""
    users = values.users(value)
    if len(users) != values.use_count(value):
        return False
    nodes: dict[int, Node] = {}
    waiting = list(users)
    while waiting and len(nodes) <= _NODES_MAX:
        node = waiting.pop()
        if node.results and node.results[0] not in nodes:
            nodes[node.results[0]] = node
            waiting += _joined(values, node, max(user.results[0] for user in users))
    last = max(nodes, default=value)
    return (
        len(nodes) <= _NODES_MAX
        and nodes[last] in users
        and all(_is_plain(values, node, value, nodes) for node in nodes.values())
        and all(_has_one_user(values, made) for made in nodes if made != last)
    )


def _has_one_user(values: FusionValues, value: int) -> bool:
    """Whether one op reads a value, and nothing returns it."""
    return values.use_count(value) == len(values.users(value)) == 1


def _joined(values: FusionValues, node: Node, last: int) -> list[Node]:
    """The users of a node before the last of all."""
    return [] if node.results[0] == last else values.users(node.results[0])


def _is_plain(values: FusionValues, node: Node, value: int, nodes: dict[int, Node]) -> bool:
    """Whether a node is elementwise, of the value's shape, and reads nothing else but constants."""
    known = {value, *nodes}
    return (
        Trait.ELEMENTWISE in OPS_BY_NAME[node.op].traits
        and values.type_of(node.results[0]).shape == values.type_of(value).shape
        and values.device_of(node.results[0]) == values.device_of(value)
        and all(each in known or values.is_constant(each) for each in node.operands)
    )
