"""Solves a network: what must be one becomes one, and copies break as few links as possible.

In: a network. Out: a ``Solution`` in which everything that annotations decide is decided. Not done
here: defaults (``defaults``), which links a region breaks (``choose_copies``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from ingot_compiler.placement.virtual_device import UNCONSTRAINED, VirtualDevice, join
from ingot_compiler.programs.planner.choose_copies import CopyChoice, CopyRegion, choose_copies
from ingot_compiler.programs.planner.classes import Classes
from ingot_compiler.programs.planner.conflict import conflict
from ingot_compiler.programs.planner.network import Link, LinkKind, Network
from ingot_compiler.programs.planner.solution import Solution
from ingot_runtime.lazy_dataclass import dataclass


def solve(network: Network) -> Solution:
    """The classes of all cells.

    Raises:
        ModelError: annotations contradict one another where no copy is allowed.
    """
    solution = Solution()
    for _ in range(network.cell_count):
        solution.places.add()
        solution.scopes.add()
    for link in network.links:
        if link.kind == LinkKind.HARD:
            solution.merge(link)
        elif link.kind == LinkKind.PLACE:
            solution.merge_places(link)
    for pin in network.pins:
        if not solution.pin(pin):
            raise conflict(network, pin)
    soft = [link for link in network.links if link.kind > LinkKind.PLACE]
    for region in _regions(network, soft, solution):
        _solve_region(region, solution)
    return solution


Cell = tuple[int, int]
"""A class of places and a class of scopes that belong to the same cells."""


@dataclass(slots=True)
class _Parts:
    """Cells that any chain of links connects, with the links among them."""

    cells: set[int] = field(default_factory=set[int])
    links: list[Link] = field(default_factory=list[Link])


def _regions(network: Network, soft: list[Link], solution: Solution) -> Iterator[_Parts]:
    """The connected parts of the network, each with its links in their order."""
    connected: Classes[bool] = Classes(open_label=True, join=lambda one, _: one)
    for _ in range(network.cell_count):
        connected.add()
    for cell in range(network.cell_count):
        connected.merge(cell, solution.places.find(cell))
        connected.merge(cell, solution.scopes.find(cell))
    for link in soft:
        connected.merge(link.left, link.right)
    parts: dict[int, _Parts] = {}
    for link in soft:
        part = parts.setdefault(connected.find(link.left), _Parts())
        part.cells |= {link.left, link.right}
        part.links.append(link)
    yield from parts.values()


def _solve_region(part: _Parts, solution: Solution) -> None:
    if _all_join(part, solution):
        for link in part.links:
            assert solution.merge(link)
        return
    choice = choose_copies(_region(part, solution))
    for index, link in enumerate(part.links):
        _apply(link, index, choice, solution)


def _apply(link: Link, index: int, choice: CopyChoice, solution: Solution) -> None:
    """Keep the link, or its place alone, or nothing of it."""
    if choice.keeps_scope[index]:
        assert solution.merge(link)
        return
    solution.cut.append(link)
    if choice.keeps_place[index]:
        assert solution.merge_places(link)


def _all_join(part: _Parts, solution: Solution) -> bool:
    places = _joined({solution.places.label(cell) for cell in part.cells})
    scopes = {solution.scopes.label(cell) for cell in part.cells} - {""}
    return places is not None and len(scopes) <= 1


def _joined(devices: Iterable[VirtualDevice]) -> VirtualDevice | None:
    whole: VirtualDevice | None = UNCONSTRAINED
    for device in sorted(devices, key=str):
        whole = join(whole, device) if whole is not None else None
    return whole


def _region(part: _Parts, solution: Solution) -> CopyRegion:
    """The region with its classes numbered from 0 in the order of their first cells."""
    keys: dict[Cell, int] = {}
    region = CopyRegion()
    for cell in sorted(part.cells):
        key = (solution.places.find(cell), solution.scopes.find(cell))
        if key not in keys:
            keys[key] = len(keys)
            region.labels.append((solution.places.label(cell), solution.scopes.label(cell)))
    numbers = {
        cell: keys[solution.places.find(cell), solution.scopes.find(cell)] for cell in part.cells
    }
    for link in part.links:
        ends = numbers[link.left], numbers[link.right]
        region.links.append((*ends, link.kind, link.position))
    for group in (0, 1):
        first: dict[int, int] = {}
        for key, number in keys.items():
            other = first.setdefault(key[group], number)
            if other != number:
                (region.same_place if group == 0 else region.same_scope).append((other, number))
    return region
