"""Rule ``place``: OptimizedGraph to PlacedGraph.

In: an optimized graph, the declared devices. Out: ``PlacedGraph``. Not done here: placement itself
(``ingot_compiler.placement``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import Rule, RuleContext

if TYPE_CHECKING:
    from ingot_compiler.ir.graph import OptimizedGraph
    from ingot_compiler.placement.placed import PlacedGraph
    from ingot_compiler.placement.virtual_device import DeclaredDevice


@dataclass(frozen=True, slots=True)
class PlaceInputs:
    """``devices`` in the order of the device table, the host first."""

    optimized: Artifact[OptimizedGraph]
    devices: tuple[DeclaredDevice, ...]


def _compute(context: RuleContext, inputs: PlaceInputs) -> Artifact[PlacedGraph]:
    from ingot_compiler.placement import place as placement

    return context.keep(placement.place(inputs.optimized.value(), inputs.devices))


PLACE = Rule("place", 1, ("optimized", "devices"), _compute)
