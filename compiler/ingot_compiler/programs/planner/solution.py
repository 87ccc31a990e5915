"""What is known of the cells of a network: one class of places and one of scopes for each.

In: a network. Out: ``Solution``: devices of cells, as far as they are decided. Not done here: which
links hold (``solve``).
"""

from __future__ import annotations

from dataclasses import field, replace

from ingot_compiler.placement.virtual_device import UNCONSTRAINED, VirtualDevice, join
from ingot_compiler.programs.planner.classes import Classes
from ingot_compiler.programs.planner.network import Link, Pin
from ingot_runtime.lazy_dataclass import dataclass


def join_scopes(one: str, other: str) -> str | None:
    """The scope that is both, "" being any; None when they differ."""
    return one or other if not (one and other) or one == other else None


@dataclass(slots=True)
class Solution:
    """Classes of cells by device and target, and by scope; ``kept_places`` and ``kept_scopes`` are
    the links that hold, ``cut`` those that a copy breaks, ``pins`` what decided, those of the
    network first."""

    places: Classes[VirtualDevice] = field(default_factory=lambda: Classes(UNCONSTRAINED, join))
    scopes: Classes[str] = field(default_factory=lambda: Classes("", join_scopes))
    kept_places: list[Link] = field(default_factory=list[Link])
    kept_scopes: list[Link] = field(default_factory=list[Link])
    cut: list[Link] = field(default_factory=list[Link])
    pins: list[Pin] = field(default_factory=list[Pin])
    _made: dict[tuple[VirtualDevice, str], VirtualDevice] = field(
        default_factory=dict[tuple[VirtualDevice, str], VirtualDevice]
    )

    def device(self, cell: int) -> VirtualDevice:
        """What is decided of a cell; equal devices are one object."""
        place, scope = self.places.label(cell), self.scopes.label(cell)
        made = self._made.get((place, scope))
        if made is None:
            made = self._made[place, scope] = replace(place, memory_scope=scope)
        return made

    def pin(self, pin: Pin) -> bool:
        """Whether a cell can be where the pin says; then it is."""
        self.pins.append(pin)
        return self.places.constrain(pin.cell, pin.place) and self.scopes.constrain(
            pin.cell, pin.device.memory_scope
        )

    def merge(self, link: Link) -> bool:
        """Whether two cells can be on one device; then they are."""
        self.kept_scopes.append(link)
        return self.merge_places(link) and self.scopes.merge(link.left, link.right)

    def merge_places(self, link: Link) -> bool:
        """Whether two cells can be on one device in whatever scopes; then they are."""
        self.kept_places.append(link)
        return self.places.merge(link.left, link.right)
