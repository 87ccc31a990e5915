"""Where two values of one kind differ: paths into them, for explanations.

In: two values made of dataclasses, tuples, mappings and plain values. Out: ``Difference`` of each leaf.
Not done here: what a path means to a user.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """``path``: names of fields and positions; ``old`` and ``new``: what stands there, None where nothing does."""

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
        for item in dataclasses.fields(new):
            yield from differences(getattr(old, item.name), getattr(new, item.name), (*path, item.name))
    else:
        yield Difference(path, old, new)


def _items(old: tuple[object, ...], new: tuple[object, ...], path: Path) -> Iterator[Difference]:
    """Position by position; what was put in or taken out in one place does not count as a change of all behind it."""
    if len(old) == len(new):
        for index, (was, now) in enumerate(zip(old, new, strict=True)):
            yield from differences(was, now, (*path, index))
        return
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    for index in range(start, max(len(old), len(new)) - end):
        was = old[index] if index < len(old) - end else None
        now = new[index] if index < len(new) - end else None
        yield Difference((*path, index), was, now)
