"""Pass: one spelling for what can be written in several ways; ops that do nothing disappear.

In: a graph. Out: a graph with the same meaning, bit by bit. Not done here: arithmetic on literals
(``fold_literals``), patterns of several ops (``fuse_*``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.traits import Trait
from ingot_compiler.passes.canonical import elementwise, movement, operands, paddings
from ingot_compiler.passes.rewrite import Rewriter, rewrite_until_stable

_Rule = Callable[[Rewriter, Node], int | None]


def canonicalise(graph: Graph) -> Graph:
    """Apply the rules of ``canonical`` until none fires."""
    return rewrite_until_stable(graph, _rule, _RootOps())


class _RootOps:
    """The ops that have rules."""

    def __contains__(self, op: OpName, /) -> bool:
        return bool(_rules_of(op))


@cache
def _rules_of(op: OpName) -> tuple[_Rule, ...]:
    """What may apply to an op, in the order in which it is tried."""
    traits = OPS_BY_NAME[op].traits
    found: list[_Rule] = []
    if Trait.ELEMENTWISE in traits:
        found.append(operands.without_broadcasts)
    if Trait.COMMUTATIVE in traits:
        found.append(operands.constants_last)
    for family in (elementwise, movement, paddings):
        found += family.RULES.get(op, ())
    return tuple(found)


def _rule(state: Rewriter, node: Node) -> Sequence[int] | None:
    if len(node.results) != 1 or node.regions:
        return None
    for rule in _rules_of(node.op):
        found = rule(state, node)
        if found is not None and state.may_replace(node, (found,)):
            return (found,)
    return None
