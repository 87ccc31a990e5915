"""What a plug-in is offered, and what it says that it wants.

In: nothing. Out: ``Offer``, ``OpClaim``. Not done here: what becomes of them (``partition``).
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Graph
from ingot_compiler.plugins.settings import PluginSettings
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Offer:
    """``nodes``: the indices of those nodes of ``graph`` that may be claimed, ascending: of the
    host, no control flow, nothing that is computed when the model is built. ``graph`` is the whole
    model, or the body of a branch or loop in it."""

    graph: Graph
    nodes: tuple[int, ...]
    settings: PluginSettings


@dataclass(frozen=True, slots=True)
class OpClaim:
    """Some nodes that are to run as one kernel of the plug-in, which calls them ``name``.

    ``cost_ns``: what a run is expected to take; a claim without a cost is taken wherever it can be.
    Claims of one plug-in may overlap: those that cost least together are taken.
    """

    name: str
    nodes: tuple[int, ...]
    cost_ns: int | None = None
