"""Rule ``place``: OptimizedGraph to PlacedGraph.

In: an optimized graph, the declared devices. Out: ``PlacedGraph``. Not done here: planning (``ingot_compiler.placement``).
"""

from __future__ import annotations

from dataclasses import dataclass

from ingot_build_rules.engine.rule import Context, Rule
from ingot_compiler.ir.graph import OptimizedGraph
from ingot_compiler.placement import place as placement
from ingot_compiler.placement.place import PlacedGraph
from ingot_compiler.placement.virtual_device import DeclaredDevice


@dataclass(frozen=True, slots=True)
class PlaceInputs:
    """``devices`` without the host, which is always there."""

    optimized: OptimizedGraph
    devices: tuple[DeclaredDevice, ...]


def _compute(_: Context, inputs: PlaceInputs) -> PlacedGraph:
    return placement.place(inputs.optimized, inputs.devices)


PLACE = Rule("place", 1, ("optimized", "devices"), _compute)
