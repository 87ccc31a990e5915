"""The values of f16 and bf16 that a kernel rounds between the nodes that it computes.

In: a group. Out: its values that are rounded, and what its nodes have in common. Not done here:
rounding (``elements``).

A register holds such a value in f32. The file's own values are numbers of their type whoever
computes them; what lies between the core ops that one node of the file became is rounded once, at
the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import HALVES
from ingot_compiler.lowering.groups.fused import Group

_CLOSED = Trait.CLOSED | Trait.MOVEMENT | Trait.INDEXED


def is_closed(op: OpName) -> bool:
    """Whether what an op gives of numbers of a type is a number of that type."""
    known = OPS_BY_NAME.get(op)  # a halo is no op of a graph
    return known is not None and bool(known.traits & _CLOSED)


def rounded_values(group: Group) -> frozenset[int]:
    """What is computed here and read by a node that came of another node of the file."""
    return frozenset(
        value for value, maker, reader in _narrow(group) if not _is_one(group, maker, reader)
    )


def shared_origins(group: Group) -> list[tuple[int, ...]]:
    """For each node, numbers that it shares with those next to it that came of the same node of the
    file: the same ones in every layer that is like this one."""
    origins: list[tuple[int, ...]] = [()] * len(group.nodes)
    for number, (_, maker, reader) in enumerate(_narrow(group)):
        if _is_one(group, maker, reader):
            origins[maker] += (number,)
            origins[reader] += (number,)
    return origins


def _narrow(group: Group) -> Iterator[tuple[int, int, int]]:
    """(value, the node that makes it, one that reads it), where a register holds more of it."""
    types, makers = dict(group.types), dict[int, int]()
    for position, node in enumerate(group.nodes):
        read = [value for value in dict.fromkeys(node.operands) if value in makers]
        yield from ((value, makers[value], position) for value in read)
        inner = [value for value in read if _is_one(group, makers[value], position)]
        if not is_closed(node.op) or (inner and node.op != "cast"):
            halves = (result for result in node.results if types[result].dtype in HALVES)
            makers.update(dict.fromkeys(halves, position))


def _is_one(group: Group, maker: int, reader: int) -> bool:
    """Whether two nodes came of one node of the file."""
    return not set(group.nodes[maker].source).isdisjoint(group.nodes[reader].source)
