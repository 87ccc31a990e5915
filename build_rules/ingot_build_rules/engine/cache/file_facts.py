"""What was once read off files, kept between builds for as long as they stay as they are.

In: files, a function of their content, the path of the cache. Out: the function's results. Not done
here: which files, what is read off them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeGuard, cast

from ingot_build_rules.engine.cache.state_file import read_state, write_state
from ingot_build_rules.engine.cache.unchanged import SETTLED_NS

_OTHERS_MAX = 2000
Fact = tuple[str, tuple[str, ...]]
"""A digest, and further texts."""
_Entry = tuple[int, int, int, int, str, tuple[str, ...]]
"""mtime and size, inode and ctime of a file, times in ns; its fact."""


class FileFacts:
    """Facts by path. A file is the same while its size, inode and times are; ``kind`` names what
    the facts depend on besides.

    Nothing that is in the cache's file makes this fail.
    """

    def __init__(
        self, cache_file: str | None, kind: str, *, saves: bool = True, key: bytes = b""
    ) -> None:
        """Read the facts of last time, if they are sealed with ``key``; without ``saves``, those of
        this time are not kept."""
        self._cache_file, self._kind, self._saves = cache_file, kind, saves
        self._key = key
        self._known = _entries(read_state(cache_file, kind, key) if cache_file else None)
        self._kept: dict[str, _Entry] = {}
        self._settled_ns = time.time_ns() - SETTLED_NS

    def fact(self, path: str, status: os.stat_result, read: Callable[[bytes], Fact]) -> Fact:
        """Return ``read(content of the file)``; ``status`` is its state before this call.

        Raises:
            OSError: the file is not readable.
        """
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns)
        entry = self._known.get(path)
        if entry is None or entry[:4] != stamp:
            with open(path, "rb") as file:
                entry = (*stamp, *read(file.read()))
        if max(status.st_mtime_ns, status.st_ctime_ns) < self._settled_ns:
            self._kept[path] = entry
        return entry[4], entry[5]

    def save(self) -> None:
        """Keep the facts of the files that were asked for, and of others that are still there: of
        another installation over this cache."""
        if (
            self._saves
            and self._cache_file
            and any(self._known.get(path) != entry for path, entry in self._kept.items())
        ):
            others = [
                path for path in self._known if path not in self._kept and os.path.isfile(path)
            ]
            kept = {path: self._known[path] for path in others[-_OTHERS_MAX:]} | self._kept
            write_state(self._cache_file, self._kind, kept, self._key)


def _entries(state: object) -> dict[str, _Entry]:
    """Take what has the right shape: its writer may have been anybody."""
    if not isinstance(state, dict):
        return {}
    found = cast("dict[object, object]", state)
    return {
        path: entry for path, entry in found.items() if isinstance(path, str) and _is_entry(entry)
    }


def _is_entry(value: object) -> TypeGuard[_Entry]:
    match value:
        case (int(), int(), int(), int(), str(), tuple()):
            return {str}.issuperset(map(type, cast("tuple[object, ...]", value[5])))
        case _:
            return False
