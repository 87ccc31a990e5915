"""Stage 5: a graph whose values have places.

In: a graph, devices. Out: ``PlacedGraph``. Not done here: placing (``place``).
"""

from __future__ import annotations

from ingot_compiler.ir.graph import Graph
from ingot_compiler.placement.place_reason import PlaceReason
from ingot_compiler.placement.virtual_device import DeclaredDevice
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PlacedGraph:
    """An optimized graph whose values have places.

    ``devices``: the table, the host first. ``device_of[value]``: an index into it.
    ``reasons[value]``: why. ``copy{destination: name of a device}`` nodes are the only
    ones whose operand lives on another device. ``inside``: the reasons of ``placed_inside``.
    """

    graph: Graph
    devices: tuple[DeclaredDevice, ...]
    device_of: tuple[int, ...]
    reasons: tuple[PlaceReason, ...]
    inside: tuple[PlaceReason, ...] = ()
