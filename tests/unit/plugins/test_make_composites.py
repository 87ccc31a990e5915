"""Composites in the place of claims: an order in which everything can run, or none."""

from __future__ import annotations

from ingot_compiler.ir.renumber import compact, first_free_id
from ingot_compiler.ir.text.parse_graph import parse_graph
from ingot_compiler.ir.text.print_graph import print_graph
from ingot_compiler.ir.verify import verify
from ingot_compiler.plugins.make_composites import TakenClaim, run_order, with_composites
from ingot_compiler.plugins.offer import offered_nodes, waits_for

DIAMOND = """
graph(%0: f32[2]) {
  %1 = relu(%0) : f32[2] @[0]
  %2 = neg(%0) : f32[2] @[1]
  %3 = exp(%1) : f32[2] @[2]
  %4 = exp(%2) : f32[2] @[3]
  %5 = add(%3, %2) : f32[2] @[4]
  %6 = add(%4, %1) : f32[2] @[5]
  return %5, %6
}
"""


def test_a_circle_has_no_order() -> None:
    """Two claims, each of which needs what the other makes, cannot both be kernels."""
    before = waits_for(parse_graph(DIAMOND))
    first, second = frozenset((0, 3)), frozenset((1, 2))
    assert run_order(before, [first]) is not None
    assert run_order(before, [first, second]) is None


def test_a_node_moves_behind_what_it_needs() -> None:
    """exp of relu is written before neg and the claim's sum, and has to run behind the claim."""
    graph = parse_graph(DIAMOND)
    order = run_order(waits_for(graph), [frozenset((0, 5, 1, 3))])
    assert order is not None
    assert order == ((0, 1, 3, 5), (2,), (4,))
    claim = TakenClaim("p", "all", order[0])
    made = compact(with_composites(graph, order, [claim], first_free_id(graph)))
    verify(made)
    assert parse_graph(print_graph(made)) == made
    composite = made.nodes[0]
    assert (composite.op, composite.operands, composite.source) == ("composite", (0,), (0, 1, 3, 5))
    assert len(composite.results) == 3


def test_what_is_offered() -> None:
    """Neither sources nor what is computed from them alone, nor what stays with its device."""
    graph = parse_graph(
        """
graph(%0: f32[2]) {
  %1 = literal() {dtype="f32", shape=[], value=[2.0]} : f32[]
  %2 = constant() {dtype="f32", shape=[2], weight="0"} : f32[2]
  %3 = neg(%2) : f32[2]
  %4 = mul(%0, %1) : f32[2]
  %5 = add(%4, %3) : f32[2]
  return %5
}
"""
    )
    assert offered_nodes(graph, (0,) * 6) == (3, 4)
    assert offered_nodes(graph, (0, 0, 0, 0, 1, 0)) == (4,)
