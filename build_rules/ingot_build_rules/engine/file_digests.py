"""Digests of files outside of the cache: taken once, and again only when a file may have changed.

In: paths. Out: sha256 of their contents. Not done here: which files matter (rules say).

A file is taken for the same while its size, inode and times are; one younger than two seconds is never remembered, since it could
change again without any sign of it. ``rehash`` trusts nothing.
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import cast

from ingot_build_rules.engine.state_file import read_state, write_state

_KIND = "file digests 1"
_SETTLED_NS = 2_000_000_000
Stamp = tuple[int, int, int, int]
"""mtime_ns, size in bytes, inode, ctime_ns."""


def stamp_of(path: str) -> Stamp | None:
    """What a file looks like; None where none is."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns


class DiskFiles:
    """The files of one build. Implements ``FileDigests``."""

    def __init__(self, cache_file: str | None, *, rehash: bool = False) -> None:
        """Read the digests of last time."""
        self._cache_file = cache_file
        self._known = _read(cache_file) if cache_file and not rehash else {}
        self._seen: dict[str, tuple[Stamp, str]] = {}
        self._settled_ns = time.time_ns() - _SETTLED_NS

    def digest(self, path: str) -> str:
        """Return the digest of a file's content; "" where no file can be read."""
        stamp = stamp_of(path)
        if stamp is None:
            return ""
        seen = self._seen.get(path) or self._known.get(path)
        if seen is None or seen[0] != stamp:
            try:
                with open(path, "rb") as file:
                    seen = (stamp, hashlib.file_digest(file, "sha256").hexdigest())
            except OSError:
                return ""
        self._seen[path] = seen
        return seen[1]

    def save(self) -> None:
        """Keep the digests of files that have not changed for a while."""
        settled = {path: seen for path, seen in self._seen.items() if max(seen[0][0], seen[0][3]) < self._settled_ns}
        kept = self._known | settled
        if self._cache_file and kept != self._known:
            write_state(self._cache_file, _KIND, {path: (*stamp, digest) for path, (stamp, digest) in kept.items()})


def _read(cache_file: str) -> dict[str, tuple[Stamp, str]]:
    """Take what has the right shape: its writer may have been anybody."""
    state = read_state(cache_file, _KIND)
    known: dict[str, tuple[Stamp, str]] = {}
    if isinstance(state, dict):
        for path, entry in cast("dict[object, object]", state).items():
            match path, entry:
                case str(), (int(mtime), int(size), int(inode), int(ctime), str(digest)):
                    known[path] = ((mtime, size, inode, ctime), digest)
                case _:
                    pass
    return known
