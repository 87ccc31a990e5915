"""Whether claims are of what was offered, and can be one kernel.

In: what a plug-in returned. Out: its claims, or ``PluginError`` that names the plug-in and the
model's nodes. Not done here: which are taken (``choose_claims``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ingot_compiler.ir.errors import PluginError
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.message import Text, message, nodes_text
from ingot_compiler.plugins.call_hook import plugin_error
from ingot_compiler.plugins.claim import Offer, OpClaim

_NOT_OFFERED = "claim wants what it was not offered"


def check_claims(
    offer: Offer, wanted: Sequence[object], before: Sequence[frozenset[int]]
) -> tuple[OpClaim, ...]:
    """Return what are claims; ``before``: the nodes that each node of the graph waits for.

    Raises:
        PluginError: a claim of no node, of one that was not offered, or of nodes that something
            between them keeps apart.
    """
    return tuple(_checked(offer, claim, before) for claim in wanted)


def _checked(offer: Offer, claim: object, before: Sequence[frozenset[int]]) -> OpClaim:
    if not isinstance(claim, OpClaim):
        why = f"expected OpClaim, got {type(claim).__name__}"
        raise plugin_error(offer.settings, "claim returned something else", why)
    _check_types(offer, claim)
    if strange := sorted(set(claim.nodes) - set(offer.nodes)):
        raise _refused(offer, claim, _NOT_OFFERED, _strange(offer.graph, strange[0]))
    if between := _between(set(claim.nodes), before):
        node = offer.graph.nodes[between[0]]
        apart = message(
            f"expected nodes that run together; {node.op} of ",
            nodes_text(node.source),
            " has to run after some of them and before others",
        )
        raise _refused(offer, claim, "claim wants what cannot be one kernel", apart)
    return claim


def _check_types(offer: Offer, claim: OpClaim) -> None:
    # A plug-in need not be checked by anybody.
    name, nodes, cost = cast("tuple[object, object, object]", _fields(claim))
    wrong = ""
    if not isinstance(name, str) or not (name.isidentifier() and name.isascii()):
        wrong = f"expected a name of letters, digits and _, got {name!r}"
    elif not _are_indices(nodes):
        wrong = f"{name}: expected a tuple of the indices of nodes, each once, got {nodes!r}"
    elif cost is not None and (not isinstance(cost, int) or isinstance(cost, bool) or cost < 0):
        wrong = f"{name}: expected a cost in nanoseconds from 0, or None, got {cost!r}"
    if wrong:
        raise plugin_error(offer.settings, "claim returned a wrong claim", wrong)


def _fields(claim: OpClaim) -> tuple[object, ...]:
    return claim.name, claim.nodes, claim.cost_ns


def _are_indices(nodes: object) -> bool:
    items = cast("tuple[object, ...]", nodes) if isinstance(nodes, tuple) else ()
    distinct = len(items) > 0 and all(isinstance(index, int) for index in items)
    return distinct and len(set(items)) == len(items)


def _strange(graph: Graph, index: int) -> Text:
    if not 0 <= index < len(graph.nodes):
        return f"expected nodes from 0 to {len(graph.nodes) - 1}, got {index}"
    node = graph.nodes[index]
    return message(
        f"expected nodes that are offered, got node {index}, {node.op} of ", nodes_text(node.source)
    )


def _between(nodes: set[int], before: Sequence[frozenset[int]]) -> list[int]:
    """The nodes that must run after some of ``nodes`` and before others of them."""
    after: set[int] = set()
    for index in range(min(nodes), max(nodes) + 1):
        if before[index] & (nodes | after):
            after.add(index)
    needed: set[int] = set()
    for index in range(max(nodes), min(nodes) - 1, -1):
        if index in nodes or index in needed:
            needed |= before[index]
    return sorted((after & needed) - nodes)


def _refused(offer: Offer, claim: OpClaim, what: str, why: Text) -> PluginError:
    known = [index for index in claim.nodes if 0 <= index < len(offer.graph.nodes)]
    source = sorted({ordinal for index in known for ordinal in offer.graph.nodes[index].source})
    where = message(f"claim {claim.name}", " of " if source else "", nodes_text(source))
    return plugin_error(offer.settings, what, why, where)
