"""Chooses which links of a region are broken by copies: as few as possible.

In: classes of cells, what is known of each, and the links between them. Out: for each link whether
it holds. Not done here: which regions there are (``solve``).

Every class takes a candidate: a device out of those that the region's classes ask for. A link is
broken where its two ends take different ones, at a cost that its kind says. The least total is
found by the solver that placement by cost uses as well (``least_cost``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import field

import numpy as np

from ingot_compiler.placement.least_cost import FORBIDDEN, Costs, Table, forbidden, least_cost
from ingot_compiler.placement.virtual_device import UNCONSTRAINED, VirtualDevice, join
from ingot_compiler.programs.planner.network import LinkKind
from ingot_runtime.lazy_dataclass import dataclass

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
    fitting = {
        label: tuple(number for number, each in enumerate(candidates) if _fits(label, each))
        for label in dict.fromkeys(region.labels)
    }
    allowed = [fitting[label] for label in region.labels]
    # Classes that share a part have the same first candidate for it, so nothing forbids the first.
    firsts = ([0] * len(allowed),)
    tables = list(_tables(region, candidates, allowed))
    chosen = least_cost(list(map(len, allowed)), tables, firsts)
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
    region: CopyRegion, candidates: Sequence[Label], allowed: Sequence[tuple[int, ...]]
) -> Iterator[Costs]:
    """Costs of pairs of classes, by their candidates; one table for all links of a pair."""
    weights, step = _weights(region)
    dtype = np.int64 if sum(weights) + step * len(weights) < FORBIDDEN else object
    differs = np.array([[_difference(one, other) for other in candidates] for one in candidates])
    differ_among: dict[tuple[tuple[int, ...], tuple[int, ...]], Table] = {}
    for (left, right), (total, count) in _weights_of_pairs(region, weights).items():
        among = allowed[left], allowed[right]
        if among not in differ_among:
            differ_among[among] = differs[np.ix_(*among)]
        costs = np.array([0, total, total + count * step], dtype)
        yield Costs((left, right), costs[differ_among[among]])
    for shared, part in ((region.same_place, 0), (region.same_scope, 1)):
        parts = [[one[part] != other[part] for other in candidates] for one in candidates]
        apart = np.array(parts).astype(dtype)
        for left, right in shared:
            table = apart[np.ix_(allowed[left], allowed[right])]
            yield _pair(left, right, table * forbidden(table))


def _pair(left: int, right: int, table: Table) -> Costs:
    if left < right:
        return Costs((left, right), table)
    return Costs((right, left), table.T)


def _weights_of_pairs(
    region: CopyRegion, weights: Sequence[int]
) -> dict[tuple[int, int], tuple[int, int]]:
    """Two classes, the lower first -> what all links between them weigh, and how many there are."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for (left, right, _, _), weight in zip(region.links, weights, strict=True):
        if left != right:
            pair = (left, right) if left < right else (right, left)
            total, count = found.get(pair, (0, 0))
            found[pair] = total + weight, count + 1
    return found


def _weights(region: CopyRegion) -> tuple[list[int], int]:
    """What it costs to break each link, and how much more where the place differs: each more than
    all together that counts less. Breaking a later link is cheaper: a value stays where it is read
    first."""
    last = max((position for *_, position in region.links), default=0) + 1
    weights = [last - position for *_, position in region.links]
    step = 1 + sum(weights)
    least = step * (1 + len(weights))
    for kind in (LinkKind.FREE, LinkKind.USE, LinkKind.ANNOTATED):
        of_kind = [index for index, link in enumerate(region.links) if link[2] == kind]
        for index in of_kind:
            weights[index] += least
        least *= 1 + len(of_kind)
    return weights, step


def _difference(one: Label, other: Label) -> int:
    """0: one device, 1: another scope, 2: another place."""
    if one == other:
        return 0
    return 1 if one[0] == other[0] else 2
