"""What to tell of records of a cache that another key has sealed.

In: a cache. Out: one line for each of its layers. Not done here: judging a record (``index``),
removing it.
"""

from __future__ import annotations

import os

from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.seal_names import seal_name, seal_names
from ingot_runtime.option_ref import OptionRef

_NAMED_MAX = 3


def foreign_lines(cache: Cache) -> list[str]:
    """Return what to tell of each layer in which this process has met a record whose seal does not
    hold; nothing of single ones, which are damaged."""
    lines: list[str] = []
    own = seal_name(cache.trust)
    for number, (count, total) in sorted(cache.index.foreign.items()):
        folder = next(iter(cache.layers[number].folders), "")
        others = [name for name in seal_names(folder) if name != own]
        if others or 2 * count >= total > 1:
            lines.append(_line(os.path.dirname(folder), count, total, own, others))
    return lines


def foreign_of(cache: Cache) -> list[str]:
    """Return warnings of the records in the first layer whose seal does not hold, whether or
    not anybody has read them."""
    count, total = cache.index.count_foreign()
    if count:
        cache.index.foreign[0] = count, total
    return foreign_lines(cache)


def _line(path: str, count: int, total: int, own: str, others: list[str]) -> str:
    named = f" ({', '.join(others[-_NAMED_MAX:])})" if others else ""
    return (
        f"{count} of {total} records of the cache {path} count as absent: another key{named} has "
        f"sealed them, yours is {own}; restore that key ($XDG_STATE_HOME/ingot/key, else "
        f"~/.local/state/ingot/key), or say {OptionRef('cache-shared')} if you trust all who can write there"
    )
