"""Which constants are packed together: each once, large ones alone, and a change stays local."""

from __future__ import annotations

import hashlib

from ingot_build_rules.making.values.constant_batches import batches

_LARGE_BYTES = 1 << 20


def _names(count: int, prefix: str = "") -> list[str]:
    return [hashlib.sha256(f"{prefix}{index}".encode()).hexdigest() for index in range(count)]


def _groups(names: list[str]) -> set[tuple[str, ...]]:
    found = batches([(name, 64) for name in names])
    return {tuple(names[index] for index in batch) for batch in found}


def test_each_name_once() -> None:
    """Equal constants are packed once, where the first of them stands."""
    names = _names(200)
    found = batches([(name, 64) for name in (*names, *names[:50])])
    assert sorted(index for batch in found for index in batch) == list(range(200))


def test_a_large_constant_is_alone() -> None:
    """It is packed beside others at once, and again only when it changed."""
    constants = [
        (name, _LARGE_BYTES if index % 3 == 0 else 64) for index, name in enumerate(_names(30))
    ]
    found = batches(constants)
    assert all([index] in found for index in range(0, 30, 3))


def test_few_groups_of_bounded_size() -> None:
    """That is what they are for: also where no name says that a group ends."""
    assert len(batches([(name, 64) for name in _names(1600)])) < 200
    endless = ["f" + name[1:] for name in _names(200)]
    assert [len(batch) for batch in batches([(name, 64) for name in endless])] == [64, 64, 64, 8]


def test_one_more_constant_changes_one_group() -> None:
    """A layer more does not pack all constants behind it again."""
    names = _names(500)
    more = [*names[:100], *_names(1, "new"), *names[100:]]
    assert len(_groups(more) - _groups(names)) <= 2


def test_no_constants() -> None:
    """A model without any."""
    assert batches([]) == []
