"""Where a directed graph without circles goes on a page: layers from top to bottom, edges around
vertices.

In: the number of vertices, edges. Out: a ``Layout``, the same every time. Not done here: drawing.
The method is Sugiyama's: layers by the longest way from a source; a bend in each layer that an edge
passes; then the order within a layer by the median of the neighbours, some times down and up.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ingot_runtime.lazy_dataclass import dataclass

_ROUNDS = 8
_BEND_WIDTH = 0.2

Place = tuple[int, float]
"""A layer from the top, and a position in it: two vertices beside one another are 1 apart."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of the vertices, and of the bends of each edge, from its source to its target."""

    vertices: tuple[Place, ...]
    bends: tuple[tuple[Place, ...], ...]


def layered_layout(count: int, edges: Sequence[tuple[int, int]]) -> Layout:
    """Lay out ``count`` vertices; ``edges``: (source, target), the source having the lower
    number."""
    layers = _layers(count, edges)
    chains: list[list[int]] = []
    for source, target in edges:
        passed = range(layers[source] + 1, layers[target])
        chains.append([source, *range(len(layers), len(layers) + len(passed)), target])
        layers += passed
    place = _places(layers, count, chains)
    points = list(zip(layers, (place[vertex] for vertex in range(len(layers))), strict=True))
    bends = tuple(tuple(points[vertex] for vertex in chain[1:-1]) for chain in chains)
    return Layout(tuple(points[:count]), bends)


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """One more than the lowest of those above."""
    layers = [0] * count
    for source, target in sorted(edges):
        layers[target] = max(layers[target], layers[source] + 1)
    return layers


def _places(layers: Sequence[int], count: int, chains: Sequence[Sequence[int]]) -> list[float]:
    """Order each layer by its neighbours, and return where each vertex or bend stands in it."""
    above: list[list[int]] = [[] for _ in layers]
    below: list[list[int]] = [[] for _ in layers]
    for upper, lower in itertools.chain.from_iterable(map(itertools.pairwise, chains)):
        above[lower].append(upper)
        below[upper].append(lower)
    order: list[list[int]] = [[] for _ in range(max(layers, default=-1) + 1)]
    for vertex, layer in enumerate(layers):
        order[layer].append(vertex)
    place = [0.0] * len(layers)
    for row in order:
        _centre(row, count, place)
    for turn in range(_ROUNDS):
        rows, neighbours = (order, above) if turn % 2 == 0 else (order[::-1], below)
        for row in rows:
            medians = {vertex: _median(vertex, neighbours[vertex], place) for vertex in row}
            row.sort(key=lambda vertex: (medians[vertex], place[vertex]))
            _centre(row, count, place)
    return place


def _centre(row: Sequence[int], count: int, place: list[float]) -> None:
    """Put a layer's vertices and bends side by side, the middle of all at 0."""
    widths = [1.0 if vertex < count else _BEND_WIDTH for vertex in row]
    left = -sum(widths) / 2
    for vertex, width in zip(row, widths, strict=True):
        place[vertex] = left + width / 2
        left += width


def _median(vertex: int, neighbours: Sequence[int], place: Sequence[float]) -> float:
    places = sorted(place[other] for other in neighbours)
    return places[len(places) // 2] if places else place[vertex]
