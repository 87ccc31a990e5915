"""Digests of files outside of the cache: taken once, and again only when a file may have changed.

In: paths. Out: sha256 of their contents. Not done here: which files matter (rules say).

A file is taken for the same while its size, inode and times are; one younger than two seconds is
never remembered, since it could change again without any sign of it. ``rehash`` trusts nothing.

Who reads a file and then asks for its digest may have read what it was before: ``is_steady`` says
whether that cannot be.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import time
from typing import cast

from ingot_build_rules.engine.actions.rule import FileDigests, Timestamp
from ingot_build_rules.engine.cache.state_file import read_state, write_state
from ingot_build_rules.engine.cache.unchanged import SETTLED_NS, Stamp

_KIND = "file digests 1"
_COARSE_CLOCK = 5  # CLOCK_REALTIME_COARSE


class WatchedFiles:
    """Digests by way of another object, and the ``paths`` that were asked for. Implements
    ``FileDigests``."""

    def __init__(self, files: FileDigests) -> None:
        """Ask ``files``."""
        self._files = files
        self.paths: dict[str, None] = {}

    def digest(self, path: str) -> str:
        """Return the digest."""
        self.paths[path] = None
        return self._files.digest(path)

    def is_steady(self, path: str, since: Timestamp) -> bool:
        """Whether the file has not changed."""
        return self._files.is_steady(path, since)


def stamp_of(path: str) -> Stamp | None:
    """What a file or folder looks like; None where neither is: a pipe would not give the same bytes
    twice."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns


def file_digest(path: str) -> str:
    """Return the sha256 of a file's content as it is now, 64 hex digits.

    Raises:
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class DiskFiles:
    """The files of one build. Implements ``FileDigests``."""

    def __init__(
        self, cache_file: str | None, *, rehash: bool = False, saves: bool = True, key: bytes = b""
    ) -> None:
        """Read the digests of last time, if they are sealed with ``key``; without ``saves``, those
        of this time are not kept."""
        self._cache_file, self._saves, self._key = cache_file, saves, key
        self._known = _read(cache_file, key) if cache_file and not rehash else {}
        self._forgets = rehash  # what was kept, also where none of this time's is
        self._seen: dict[str, tuple[Stamp, str]] = {}
        self._first_seen: dict[str, tuple[Stamp | None, int]] = {}
        self._settled_ns = time.time_ns() - SETTLED_NS

    def digest(self, path: str) -> str:
        """Return the digest of a regular file's content; "" where none can be read."""
        (_, now_ns), stamp = timestamp(), stamp_of(path)
        if path not in self._first_seen or self._first_seen[path][0] != stamp:
            self._first_seen[path] = stamp, now_ns
        if stamp is None:
            return ""
        seen = self._seen.get(path) or self._known.get(path)
        if seen is None or seen[0] != stamp:
            try:
                seen = (stamp, file_digest(path))
            except OSError:
                return ""
        self._seen[path] = seen
        return seen[1]

    def is_steady(self, path: str, since: Timestamp) -> bool:
        """Whether the file has certainly not changed since a moment, nor come or gone."""
        stamp, (seen, seen_ns) = stamp_of(path), self._first_seen.get(path, (None, since[1]))
        if stamp == seen and seen_ns < since[1]:
            return True
        while stamp is None and path != os.path.dirname(path):
            path = os.path.dirname(path)  # a folder changes when a file in it goes
            stamp = stamp_of(path or ".")
        return stamp is not None and stamp[3] < since[0]

    def save(self) -> None:
        """Keep the digests of files that have not changed for a while."""
        settled = {
            path: seen
            for path, seen in self._seen.items()
            if max(seen[0][0], seen[0][3]) < self._settled_ns
        }
        kept = self._known | settled
        if self._saves and self._cache_file and (self._forgets or kept != self._known):
            plain = {path: (*stamp, digest) for path, (stamp, digest) in kept.items()}
            write_state(self._cache_file, _KIND, plain, self._key)


def timestamp() -> Timestamp:
    """Now; no file that changes from now on gets a time before it."""
    file_ns = time.clock_gettime_ns(_COARSE_CLOCK) if sys.platform == "linux" else time.time_ns()
    return file_ns, time.monotonic_ns()


def _read(cache_file: str, key: bytes) -> dict[str, tuple[Stamp, str]]:
    """Take what has the right shape: its writer may have been anybody."""
    state = read_state(cache_file, _KIND, key)
    known: dict[str, tuple[Stamp, str]] = {}
    if isinstance(state, dict):
        for path, entry in cast("dict[object, object]", state).items():
            match path, entry:
                case str(), (int(mtime), int(size), int(inode), int(ctime), str(digest)):
                    known[path] = ((mtime, size, inode, ctime), digest)
                case _:
                    pass
    return known
