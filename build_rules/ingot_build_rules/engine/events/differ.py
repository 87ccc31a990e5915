"""Where two values of one kind differ: paths into them, for explanations.

In: two values made of dataclasses, tuples, mappings and plain values. Out: ``Difference`` of each
leaf. Not done here: what a path means to a user.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from ingot_runtime.lazy_dataclass import dataclass

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """``path``: names of fields and positions; ``old`` and ``new``: what stands there, None where
    nothing does."""

    path: Path
    old: object
    new: object


def differences(old: object, new: object, path: Path = ()) -> Iterator[Difference]:
    """Yield the leaves that differ, in order; equal values give nothing."""
    if old == new:
        return
    if type(old) is not type(new):
        yield Difference(path, old, new)
    elif isinstance(new, tuple | list):
        yield from _items(cast("tuple[object, ...]", old), cast("tuple[object, ...]", new), path)
    elif isinstance(new, Mapping):
        was, now = cast("Mapping[Any, object]", old), cast("Mapping[Any, object]", new)
        for key in sorted(was.keys() | now.keys(), key=str):
            yield from differences(was.get(key), now.get(key), (*path, str(key)))
    elif dataclasses.is_dataclass(new) and not isinstance(new, type):
        # The other fields are what equal values may differ in.
        for name in [item.name for item in dataclasses.fields(new) if item.compare]:
            yield from differences(getattr(old, name), getattr(new, name), (*path, name))
    else:
        yield Difference(path, old, new)


def _items(old: tuple[object, ...], new: tuple[object, ...], path: Path) -> Iterator[Difference]:
    """Position by position; what was only put in, or only taken out, does not count as a change of
    all behind it."""
    if len(old) == len(new):
        for index, (was, now) in enumerate(zip(old, new, strict=True)):
            yield from differences(was, now, (*path, index))
        return
    shorter = min(len(old), len(new))
    start = equal_count(old, new, shorter)
    end = equal_count(old[::-1], new[::-1], shorter - start)
    gone, come = old[start : len(old) - end], new[start : len(new) - end]
    if gone and come:
        yield Difference(path, _whole(old), _whole(new))
        return
    for index, item in enumerate(gone or come, start):
        yield Difference((*path, index), item if gone else None, item if come else None)


def equal_count(old: Sequence[object], new: Sequence[object], count_max: int) -> int:
    """Return how many items two sequences have in common from their start on, at most
    ``count_max``; both have as many."""
    return next((index for index in range(count_max) if old[index] != new[index]), count_max)


def _whole(items: tuple[object, ...]) -> object:
    """A sequence of plain values as it is, of others how many there are."""
    is_plain = all(isinstance(item, str | int | float) for item in items)
    return items if is_plain else f"{len(items)} elements"
