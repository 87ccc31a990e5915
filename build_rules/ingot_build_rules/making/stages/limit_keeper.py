"""Keeps a cache below its limit: collects when a build has ended, successfully or not, and reports
it in a line.

In: the build's cache, the user's limit. Out: a smaller cache, if it had to be; a line. Not done
here: what is forgotten (``ingot_artifacts.store.limit``), where the limit is read
(``workspace.cache_folder``).
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from ingot_artifacts.store.cache import Cache
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class LimitKeeper:
    """Looks at the cache when a block ends, unless somebody wants the process to end at once."""

    cache: Cache
    max_bytes: int | None
    tell: Callable[[str], None]

    def __enter__(self) -> None:
        """Begin nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Keep the limit: no build fails because that cannot be done."""
        if error is not None and not isinstance(error, Exception):
            return
        try:
            self._keep()
        except (IngotError, OSError) as failed:
            why = failed.what if isinstance(failed, IngotError) else failed
            self.tell(f"the cache is too large and could not be made smaller: {why}")

    def _keep(self) -> None:
        from ingot_artifacts.store.limit import keep_limit

        found = keep_limit(self.cache, self.max_bytes)
        if found is None:
            return
        sizes = (found.size_bytes_before, found.size_bytes_after, found.limit_bytes)
        before, after, limit = map(_size_text, sizes)
        done = f"the cache came from {before} to {after}: at most {limit} are kept"
        missed = ", which was missed, because bundles that are present need the rest"
        self.tell(f"{done}{missed if found.is_missed else ''} (see `ingot cache stat`)")


def _size_text(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.2f} GB" if size_bytes >= 10**9 else f"{size_bytes / 1e6:.1f} MB"
