"""Which keys have sealed records of a cache, by names that say nothing of the keys.

In: a cache's folder, whose seals count. Out: names; what to tell of records that another key has
sealed. Not done here: judging a record (``index``), removing it.

One name a line in the file ``sealed_by``. Nothing is believed because of it: it explains why a
cache that was restored from elsewhere seems empty.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from ingot_artifacts.store.trust import Trust

if TYPE_CHECKING:
    from ingot_artifacts.store.cache import Cache

_NAME = re.compile(r"[0-9a-f]{8}")
_READ_BYTES_MAX = 64 << 10
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_NAMED_MAX = 3


def seal_name(trust: Trust) -> str:
    """Return the name of the key that seals what is written now."""
    return hashlib.sha256(b"name of a key of ingot\n" + trust.sealing_key).hexdigest()[:8]


def note_seal(folder: str, trust: Trust) -> None:
    """Say that this key seals records here from now on; no error where that cannot be written."""
    name = seal_name(trust)
    if name in seal_names(folder):
        return
    with suppress(OSError):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _FLAGS
        descriptor = os.open(_path(folder), flags, 0o600)
        try:
            os.write(descriptor, f"{name}\n".encode())
        finally:
            os.close(descriptor)


def seal_names(folder: str) -> list[str]:
    """Return the names of all keys that have sealed records in a cache's inner folder, as far as is
    known, the first one first."""
    with suppress(OSError):
        descriptor = os.open(_path(folder), os.O_RDONLY | _FLAGS)
        try:
            lines = os.read(descriptor, _READ_BYTES_MAX).decode("ascii", "replace").splitlines()
        finally:
            os.close(descriptor)
        return [line for line in dict.fromkeys(lines) if _NAME.fullmatch(line)]
    return []


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
    """Return the same of all records of the first layer, whether or not anybody has asked for
    them."""
    count, total = cache.index.count_foreign()
    if count:
        cache.index.foreign[0] = count, total
    return foreign_lines(cache)


def _line(path: str, count: int, total: int, own: str, others: list[str]) -> str:
    named = f" ({', '.join(others[-_NAMED_MAX:])})" if others else ""
    return (
        f"{count} of {total} records of the cache {path} count as absent: another key{named} has "
        f"sealed them, yours is {own}; restore that key ($XDG_STATE_HOME/ingot/key, else "
        "~/.local/state/ingot/key), or say --cache-shared if you trust all who can write there"
    )


def _path(folder: str) -> str:
    return os.path.join(folder, "sealed_by")
