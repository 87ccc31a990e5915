"""Who works on what: leases on actions, and on the cache as a whole.

In: keys. Out: a lease, or none because another process has it. Not done here: waiting for a lease
(the engine works on others meanwhile), the locks themselves (``lease_file``). Leases save work and
never guard a result: what is written is right whoever writes it.

POSIX record locks on the one file ``leases``, a byte per action at the first 62 bits of its key:
the kernel releases them when their process dies, and forked workers do not inherit them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from ingot_artifacts.errors import ArtifactError
from ingot_artifacts.store.lease_file import close_lease_file, open_lease_file
from ingot_runtime.option_ref import OptionClause, OptionRef

_POLL_SECONDS = 0.05


class CacheInUseError(ArtifactError):
    """The cache cannot be had alone: somebody builds."""

    exit_code = 1


class Leases:
    """The leases of one cache; several objects of one process exclude each other like processes do.

    In a cache that is only read nothing can be shared, so leases there hold within the process
    alone.
    """

    def __init__(self, folder: str, read_only: bool = False) -> None:
        self._file = open_lease_file(folder, read_only=read_only)

    def try_acquire(self, key: bytes) -> bool:
        """Take the lease on an action; False if anybody has it."""
        return self._file.try_acquire(_offset(key))

    def release(self, key: bytes) -> None:
        """Give a lease back that ``try_acquire`` gave."""
        self._file.release(_offset(key))

    @contextmanager
    def building(self, waiting: Callable[[int], None] | None = None) -> Generator[None]:
        """Keep the cache from being collected; wait for a collection that runs.

        Args:
            waiting: called once with its process before the wait (0: not known).
        """
        has_reported = False
        while not self._file.enter():
            if waiting is not None and not has_reported:
                waiting(self._file.holder(exclusive=False))
            has_reported = True
            time.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            self._file.leave()

    @contextmanager
    def alone(self, wait_seconds: float = 0) -> Generator[None]:
        """Have the cache alone: no build runs, none starts.

        Raises:
            CacheInUseError: a build runs, still after ``wait_seconds``.
        """
        end = time.monotonic() + wait_seconds
        while not self._file.enter_alone():
            if time.monotonic() >= end:
                raise self._in_use()
            time.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            self._file.leave()

    def _in_use(self) -> CacheInUseError:
        holder = self._file.holder(exclusive=True)
        why = f"process {holder} builds" if holder else "another process builds"
        waits = OptionClause(OptionRef("wait", "SECONDS"), ", or wait for it ({})")
        do = ("repeat it when the build is done", waits)
        return CacheInUseError("the cache is in use", self._file.path, why, do)

    def close(self) -> None:
        """Give all leases of this process back once every object of this cache is closed."""
        close_lease_file(self._file)


def _offset(key: bytes) -> int:
    return int.from_bytes(key[:8], "big") >> 2
