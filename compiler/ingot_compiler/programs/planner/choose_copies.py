"""Chooses which links of a region are broken by copies: as few as possible.

In: classes of cells, what is known of each, and the links between them. Out: for each link whether
it holds. Not done here: which regions there are (``solve``).

Every class takes a candidate: a device out of those that the region's classes ask for. A link is
broken where its two ends take different ones, at a cost that its kind says. The least total is
found by eliminating one class after the other (dynamic programming over the region's tree
decomposition, ``eliminate``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ingot_compiler.placement.virtual_device import UNCONSTRAINED, VirtualDevice, join
from ingot_compiler.programs.planner.eliminate import CostTable, Elimination
from ingot_compiler.programs.planner.network import LinkKind

_STEP = 1 << 40  # more than any sum of the costs one kind below
_NEVER = 1 << 250
Label = tuple[VirtualDevice, str]


@dataclass(slots=True)
class CopyRegion:
    """Classes by number: ``labels`` is what is known of each. ``links`` are (class, class, kind,
    position in the text); classes in ``same_place`` and ``same_scope`` share that part."""

    labels: list[Label] = field(default_factory=list[Label])
    links: list[tuple[int, int, LinkKind, int]] = field(
        default_factory=list[tuple[int, int, LinkKind, int]]
    )
    same_place: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    same_scope: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


@dataclass(frozen=True, slots=True)
class CopyChoice:
    """By link: whether both ends are on one place, and whether they are in one scope there."""

    keeps_place: tuple[bool, ...]
    keeps_scope: tuple[bool, ...]


def choose_copies(region: CopyRegion) -> CopyChoice:
    """The cheapest way to break links such that no class needs two devices."""
    candidates = _candidates(region.labels)
    allowed = [
        [number for number, candidate in enumerate(candidates) if _fits(label, candidate)]
        for label in region.labels
    ]
    chosen = Elimination(list(map(len, allowed)), _tables(region, candidates, allowed)).run()
    taken = [numbers[number] for numbers, number in zip(allowed, chosen, strict=True)]
    pairs = [
        (candidates[taken[left]], candidates[taken[right]]) for left, right, _, _ in region.links
    ]
    return CopyChoice(
        tuple(one[0] == other[0] for one, other in pairs),
        tuple(one == other for one, other in pairs),
    )


def _candidates(labels: Sequence[Label]) -> list[Label]:
    """All places with all scopes that the classes ask for; places are the most decided ones."""
    places: set[VirtualDevice] = {UNCONSTRAINED}
    for place in sorted({place for place, _ in labels}, key=str):
        joined = (join(place, other) for other in places)
        places |= {place, *(found for found in joined if found is not None)}
    most = [one for one in places if not any(_is_part(one, other) for other in places)]
    scopes = sorted({scope for _, scope in labels} - {""}) or [""]
    return list(itertools.product(sorted(most, key=str), scopes))


def _is_part(one: VirtualDevice, other: VirtualDevice) -> bool:
    return one != other and join(one, other) == other


def _fits(label: Label, candidate: Label) -> bool:
    return join(label[0], candidate[0]) == candidate[0] and label[1] in ("", candidate[1])


def _tables(
    region: CopyRegion, candidates: Sequence[Label], allowed: Sequence[Sequence[int]]
) -> Iterator[CostTable]:
    """Costs of pairs of classes, by their candidates."""
    last = max((position for *_, position in region.links), default=0) + 1
    differs = [[_difference(one, other) for other in candidates] for one in candidates]
    for left, right, kind, position in region.links:
        # Breaking a later link is cheaper: a value stays where it is read first.
        weight = _STEP ** (2 + LinkKind.FREE - kind) + (last - position)
        costs = 0, weight, weight + _STEP
        pairs = itertools.product(allowed[left], allowed[right])
        if left != right:
            yield CostTable((left, right), [costs[differs[one][other]] for one, other in pairs])
    for shared, part in ((region.same_place, 0), (region.same_scope, 1)):
        for left, right in shared:
            pairs = itertools.product(allowed[left], allowed[right])
            table = [
                0 if candidates[one][part] == candidates[other][part] else _NEVER
                for one, other in pairs
            ]
            yield CostTable((left, right), table)


def _difference(one: Label, other: Label) -> int:
    """0: one device, 1: another scope, 2: another place."""
    if one == other:
        return 0
    return 1 if one[0] == other[0] else 2
