"""Which claims are taken, where several want the same ops: those that cost least together.

In: candidates with what each saves, and whether some can stand side by side. Out: the indices of
the best of them. Not done here: costs (``host_cost``, the plug-ins), what a claim may be
(``check_claims``).

Up to ``EXACT_MAX`` candidates that depend on one another are tried in all combinations; of more,
the best of several greedy choices is taken, among them one of each plug-in alone. So a choice never
costs more than what one plug-in alone would be given. Nothing depends on anything but the
candidates and their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingot_runtime.lazy_dataclass import dataclass

EXACT_MAX = 16


@dataclass(frozen=True, slots=True)
class Candidate:
    """``plugin``: its place in the order in which the user names them; ``saves_ns``: what the host
    takes for the nodes, less what the claim costs."""

    plugin: int
    nodes: frozenset[int]
    saves_ns: int


FitsTogether = Callable[[Sequence[int]], bool]
"""Whether candidates that do not overlap can run in some order."""


def choose_claims(candidates: Sequence[Candidate], fit: FitsTogether) -> tuple[int, ...]:
    """The indices of the candidates that are taken, ascending. Of equal choices the one counts
    whose candidates come first."""
    useful = [index for index, each in enumerate(candidates) if each.saves_ns > 0]
    chosen: list[int] = []
    for part in _parts(candidates, useful):
        chosen += _best(candidates, part, fit)
    if not fit(chosen):  # parts that do not overlap may still wait for each other in a circle
        chosen = _best(candidates, useful, fit)
    return tuple(sorted(chosen))


def _parts(candidates: Sequence[Candidate], useful: Sequence[int]) -> list[list[int]]:
    """Candidates that share nodes, directly or by way of others, are in one part."""
    parts: list[tuple[set[int], list[int]]] = []
    for index in useful:
        nodes, members = set(candidates[index].nodes), [index]
        apart: list[tuple[set[int], list[int]]] = []
        for other, inside in parts:
            if nodes & other:
                nodes, members = nodes | other, inside + members
            else:
                apart.append((other, inside))
        parts = [*apart, (nodes, members)]
    return [sorted(members) for _, members in parts]


def _best(candidates: Sequence[Candidate], part: list[int], fit: FitsTogether) -> list[int]:
    if len(part) <= EXACT_MAX:
        return _Search(candidates, part, fit).best()
    orders = [sorted(part, key=lambda index: -candidates[index].saves_ns), part]
    for plugin in sorted({candidates[index].plugin for index in part}):
        own = [index for index in part if candidates[index].plugin == plugin]
        orders.append(sorted(own, key=lambda index: -candidates[index].saves_ns))
    choices = [_greedy(candidates, order, fit) for order in orders]
    return max(choices, key=lambda chosen: _saved(candidates, chosen))


def _greedy(candidates: Sequence[Candidate], order: list[int], fit: FitsTogether) -> list[int]:
    chosen: list[int] = []
    taken: set[int] = set()
    for index in order:
        nodes = candidates[index].nodes
        if not nodes & taken and fit([*chosen, index]):
            chosen.append(index)
            taken |= nodes
    return chosen


def _saved(candidates: Sequence[Candidate], chosen: Sequence[int]) -> int:
    return sum(candidates[index].saves_ns for index in chosen)


class _Search:
    """All combinations, without those that cannot be better than the best so far."""

    def __init__(self, candidates: Sequence[Candidate], part: list[int], fit: FitsTogether) -> None:
        self._candidates, self._part, self._fit = candidates, part, fit
        self._found: list[int] = []
        self._found_ns = 0

    def best(self) -> list[int]:
        self._visit(0, [], frozenset(), 0)
        return self._found

    def _visit(self, at: int, chosen: list[int], taken: frozenset[int], saved_ns: int) -> None:
        rest_ns = _saved(self._candidates, self._part[at:])
        if saved_ns + rest_ns <= self._found_ns:
            return
        if at == len(self._part):
            self._found, self._found_ns = chosen, saved_ns
            return
        index = self._part[at]
        each = self._candidates[index]
        if not each.nodes & taken and self._fit([*chosen, index]):
            self._visit(at + 1, [*chosen, index], taken | each.nodes, saved_ns + each.saves_ns)
        self._visit(at + 1, chosen, taken, saved_ns)
