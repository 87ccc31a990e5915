"""Offers a placed graph to plug-ins, and makes composites of the claims that cost least together.

In: a placed graph, plug-ins in the order in which the user names them. Out: the placed graph with
composites. Not done here: lowering them (``lower_claimed``); the choice itself (``choose_claims``).

The bodies of branches and loops are offered, too, each on its own.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.renumber import first_free_id, renumber
from ingot_compiler.placement.place_reason import NO_VALUE
from ingot_compiler.placement.placed import PlacedGraph
from ingot_compiler.placement.verify_placed import verify_placed
from ingot_compiler.plugins.call_hook import call_hook_for_items
from ingot_compiler.plugins.check_claims import check_claims
from ingot_compiler.plugins.choose_claims import Candidate, choose_claims
from ingot_compiler.plugins.claim import Offer, OpClaim
from ingot_compiler.plugins.host_cost import host_cost_ns
from ingot_compiler.plugins.make_composites import TakenClaim, run_order, with_composites
from ingot_compiler.plugins.offer import offered_nodes, waits_for
from ingot_compiler.plugins.plugin import ClaimOps
from ingot_compiler.plugins.settings import PluginSettings
from ingot_runtime.lazy_dataclass import dataclass

Claimer = tuple[PluginSettings, ClaimOps]
"""A plug-in that claims, and its hook."""


def partition(placed: PlacedGraph, claimers: Sequence[Claimer]) -> PlacedGraph:
    """Return the graph with what was claimed in composites.

    Raises:
        PluginError: a plug-in fails, or claims what it may not.
    """
    walk = _Walk(claimers, first_free_id(placed.graph))
    graph, renamed = renumber(walk.graph(placed.graph, placed.device_of))
    known = sorted(renamed, key=renamed.__getitem__)
    devices, reasons = placed.device_of, placed.reasons
    found = replace(
        placed,
        graph=graph,
        device_of=tuple(devices[value] for value in known),
        reasons=tuple(
            replace(reasons[value], value=renamed.get(reasons[value].value, NO_VALUE))
            for value in known
        ),
    )
    verify_placed(found)
    return found


@dataclass(frozen=True, slots=True)
class _Walk:
    """``first_id``: ids from it on are free in every graph and region."""

    claimers: Sequence[Claimer]
    first_id: int

    def graph(self, graph: Graph, device_of: Sequence[int] = ()) -> Graph:
        """A graph or region with composites; what a region computes is the host's."""
        before, offered = waits_for(graph), offered_nodes(graph, device_of)
        wanted = self._claims(graph, offered, before) if offered else []
        inside = replace(graph, nodes=tuple(map(self._node, graph.nodes)))
        order = run_order(before, [frozenset(claim.nodes) for claim in wanted])
        assert order is not None, "choose_claims takes what fits together"
        return with_composites(inside, order, wanted, self.first_id)

    def _node(self, node: Node) -> Node:
        if not node.regions or node.op == "composite":
            return node
        return replace(node, regions=tuple(map(self.graph, node.regions)))

    def _claims(
        self, graph: Graph, offered: tuple[int, ...], before: Sequence[frozenset[int]]
    ) -> list[TakenClaim]:
        found: list[tuple[str, OpClaim]] = []
        candidates: list[Candidate] = []
        for number, (settings, claim) in enumerate(self.claimers):
            offer = Offer(graph, offered, settings)
            given = call_hook_for_items(settings, "claim", functools.partial(claim, offer))
            for item in check_claims(offer, given, before):
                nodes = frozenset(item.nodes)
                host_ns = sum(host_cost_ns(graph, graph.nodes[index]) for index in nodes)
                candidates.append(Candidate(number, nodes, host_ns - (item.cost_ns or 0)))
                found.append((settings.plugin, item))

        def fit(chosen: Sequence[int]) -> bool:
            return run_order(before, [candidates[index].nodes for index in chosen]) is not None

        chosen = [found[index] for index in choose_claims(candidates, fit)]
        return [TakenClaim(plugin, each.name, tuple(sorted(each.nodes))) for plugin, each in chosen]
