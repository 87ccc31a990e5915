"""Which claims are taken: the cheapest together, the same each time, never worse than one plug-in
alone."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest

from ingot_compiler.plugins.choose_claims import EXACT_MAX, Candidate, choose_claims


def _fits(_: Sequence[int]) -> bool:
    return True


def _random_candidates(seed: int, count: int, node_count: int) -> list[Candidate]:
    numbers = random.Random(seed)
    return [
        Candidate(
            numbers.randrange(3),
            frozenset(numbers.sample(range(node_count), numbers.randint(1, 3))),
            numbers.randint(-20, 100),
        )
        for _ in range(count)
    ]


def _saved(candidates: Sequence[Candidate], chosen: Sequence[int]) -> int:
    nodes = [node for index in chosen for node in candidates[index].nodes]
    assert len(nodes) == len(set(nodes))
    return sum(candidates[index].saves_ns for index in chosen)


def _exhaustive(candidates: Sequence[Candidate]) -> int:
    best = 0
    for count in range(len(candidates) + 1):
        for chosen in itertools.combinations(range(len(candidates)), count):
            nodes = [node for index in chosen for node in candidates[index].nodes]
            if len(nodes) == len(set(nodes)):
                best = max(best, sum(candidates[index].saves_ns for index in chosen))
    return best


@pytest.mark.parametrize("seed", range(40))
def test_few_candidates_are_chosen_exactly(seed: int) -> None:
    """As good as the best of all combinations."""
    candidates = _random_candidates(seed, 9, 10)
    assert _saved(candidates, choose_claims(candidates, _fits)) == _exhaustive(candidates)


@pytest.mark.parametrize("seed", range(40))
def test_never_worse_than_one_plugin_alone(seed: int) -> None:
    """Of many candidates that depend on one another, too."""
    candidates = _random_candidates(seed, 3 * EXACT_MAX, 30)
    saved = _saved(candidates, choose_claims(candidates, _fits))
    for plugin in range(3):
        own = [each for each in candidates if each.plugin == plugin]
        assert saved >= _saved(own, choose_claims(own, _fits))
    assert saved >= 0


def test_the_first_of_equals() -> None:
    """Ties are decided by the order of plug-ins and claims, not by chance."""
    same = [Candidate(plugin, frozenset((0, 1)), 5) for plugin in range(3)]
    assert choose_claims(same, _fits) == (0,)
    assert choose_claims([Candidate(0, frozenset((0,)), 0)], _fits) == ()


def test_claims_that_wait_for_each_other() -> None:
    """Two that cannot run one before the other are not both taken, though they share no node."""
    candidates = [Candidate(0, frozenset((0, 3)), 5), Candidate(1, frozenset((1, 2)), 7)]
    assert choose_claims(candidates, lambda chosen: len(chosen) < 2) == (1,)
