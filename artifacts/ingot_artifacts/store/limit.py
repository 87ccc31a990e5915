"""A cache keeps itself below a limit: at the end of a build that has made it larger.

In: a cache that nobody of this process uses any more, the user's limit. Out: what was done, if
anything. Not done here: forgetting (``collect``), telling (the command).

Without a limit of the user's a cache takes at most ``DEFAULT_MAX_BYTES``, and no more than it
leaves free on its disk. Whether that is too much is known from a sum (``tally``); only where it is
does anybody look at the whole cache. A collection goes below the limit by a share, so that the next
build does not need another one. Other builds are not waited for: the last one of them collects.
"""

from __future__ import annotations

import os

from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.collect import gc
from ingot_artifacts.store.leases import CacheInUseError
from ingot_artifacts.store.survey import take_survey
from ingot_artifacts.store.tally import Tally, count_anew, read_tally
from ingot_runtime.lazy_dataclass import dataclass

DEFAULT_MAX_BYTES = 20 * 10**9
_LEFT_SHARE = 4  # a collection leaves one part of so many free below the limit
_GROWTH_SHARE = 8  # after one that missed its goal: the next when so much of the limit is new


@dataclass(frozen=True, slots=True)
class LimitReport:
    """What a collection has done."""

    size_bytes_before: int
    size_bytes_after: int
    limit_bytes: int

    @property
    def is_missed(self) -> bool:
        """Whether roots keep more than the limit."""
        return self.size_bytes_after > self.limit_bytes


def limit_bytes(folder: str, size_bytes: int, given: int | None) -> int:
    """Return what a cache of this size may take: what the user has ``given``, else by default."""
    if given is not None:
        return given
    while not os.path.exists(folder):  # where it will be made
        folder = os.path.dirname(folder)
    disk = os.statvfs(folder)
    return min(DEFAULT_MAX_BYTES, (size_bytes + disk.f_bavail * disk.f_frsize) // 2)


def keep_limit(cache: Cache, given: int | None) -> LimitReport | None:
    """Make a cache smaller if it has more than it may; None where it has not, or is in use.

    Raises:
        ArtifactError: a root is damaged. OutputError: a file cannot be deleted. OSError: the disk.
    """
    tally = read_tally(cache.folder) or count_anew(
        cache.folder, lambda: take_survey(cache).size_bytes
    )
    limit = limit_bytes(cache.folder, tally.size_bytes, given)
    if tally.size_bytes <= limit or _is_hopeless(tally, limit):
        return None
    cache.roots.forget_gone()
    try:
        found = gc(cache, limit - limit // _LEFT_SHARE, limit_bytes=limit)
    except CacheInUseError:
        return None
    if found.size_bytes_before <= limit:
        return None  # the sum was too large, and is right now
    return LimitReport(found.size_bytes_before, found.size_bytes_after, limit)


def _is_hopeless(tally: Tally, limit: int) -> bool:
    """Whether a collection has missed such a limit, and little was written since."""
    grown = tally.size_bytes - tally.kept_bytes
    return (
        0 < tally.missed_bytes <= limit + limit // _GROWTH_SHARE and grown < limit // _GROWTH_SHARE
    )
