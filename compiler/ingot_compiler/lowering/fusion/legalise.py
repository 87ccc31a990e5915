"""Replaces ops for which a device has no kernel by ops for which it has one: a back end does it to
a graph between placement and fusion.

In: a node, the types of its operands, the rule of the node's device. Out: ``Expanded``: nodes that
give the same results. Not done here: which ops a back end expands (its ``DeviceRules``), numbers of
values in the whole graph (``flatten``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import TensorType
from ingot_runtime.lazy_dataclass import dataclass

Expansion = Callable[[GraphBuilder, Node], Sequence[int]]
"""(builder whose inputs are the node's operands, node) -> the values that stand for its results,
each made by a node that was added.

What is added runs on the node's device and is not expanded again."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """``nodes`` over ids of their own: the operands are 0, 1, ..; ``types``: by id; ``results``:
    one per result of the node."""

    nodes: tuple[Node, ...]
    types: tuple[TensorType, ...]
    results: tuple[int, ...]


def expand(
    node: Node, operands: Sequence[TensorType], results: Sequence[TensorType], rule: Expansion
) -> Expanded:
    """Apply a rule; ``operands`` and ``results`` are the node's types.

    Raises:
        InternalError: the rule gives other types, no value of its own for a result, or control
            flow.
    """
    builder = GraphBuilder(operands)
    found = tuple(rule(builder, node))
    made = {result for part in builder.nodes for result in part.results}
    types = [builder.types[value] for value in found if value in made]
    if types != list(results) or len(set(found)) != len(found):
        expected, got = (", ".join(map(str, each)) for each in (results, types))
        raise InternalError(
            f"the expansion of {node.op} for a device gives other results",
            why=f"expected new values of types {expected}, got {got or 'none'}",
        )
    if any(part.regions for part in builder.nodes):
        raise InternalError(f"the expansion of {node.op} for a device has control flow")
    return Expanded(tuple(builder.nodes), tuple(builder.types), found)
