"""Who works on what: leases on actions, and on the cache as a whole.

In: keys. Out: a lease, or none because another process has it. Not done here: waiting for a lease
(the engine works on others meanwhile). Leases save work and never guard a result: what is written
is right whoever writes it.

POSIX record locks on the one file ``leases``, a byte per action at the first 62 bits of its key:
the kernel releases them when their process dies, and forked workers do not inherit them. Closing
any descriptor of the file would drop all locks of the process, so a process opens it once.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from ingot_artifacts.errors import ArtifactError
from ingot_artifacts.store.atomic import output_error

_CACHE_OFFSET = 1 << 62  # behind all actions
_POLL_SECONDS = 0.05
_FLOCK = "@hhqqi"  # struct flock of Linux: type, whence, start, length, process
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_open_files: dict[tuple[str, bool], _LeaseFile] = {}
_opening = threading.Lock()


class CacheInUseError(ArtifactError):
    """The cache cannot be had alone: somebody builds."""

    exit_code = 1


class Leases:
    """The leases of one cache; several objects of one process exclude each other like processes do.

    In a cache that is only read nothing can be shared, so leases there hold within the process
    alone.
    """

    def __init__(self, folder: str, read_only: bool = False) -> None:
        self._file = _lease_file(folder, read_only=read_only)

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
        told = False
        while not self._file.enter():
            if waiting is not None and not told:
                waiting(self._file.holder(exclusive=False))
            told = True
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
                holder = self._file.holder(exclusive=True)
                raise CacheInUseError(
                    "the cache is in use",
                    self._file.path,
                    f"process {holder} builds" if holder else "another process builds",
                    "repeat it when the build is done, or wait for it (--wait SECONDS)",
                )
            time.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            self._file.leave()

    def close(self) -> None:
        """Give all leases of this process back once every object of this cache is closed."""
        with _opening:
            self._file.users -= 1
            if self._file.users == 0:
                _open_files.pop((self._file.path, self._file.read_only), None)
                self._file.close()


class _LeaseFile:
    """The one descriptor of a process, and what the process holds by it."""

    def __init__(self, path: str, *, read_only: bool) -> None:
        self.path = path
        self.read_only = read_only
        self.users = 0
        self._process = os.getpid()
        self._descriptor = -1 if read_only else os.open(path, _FLAGS, 0o600)
        self._guard = threading.Lock()
        self._held: set[int] = set()
        self._inside = 0  # builds of this process; -1: it has the cache alone

    def try_acquire(self, offset: int) -> bool:
        with self._guard:
            self._forget_parent()
            if offset in self._held or not self._lock(fcntl.LOCK_EX, offset):
                return False
            self._held.add(offset)
            return True

    def release(self, offset: int) -> None:
        with self._guard:
            self._forget_parent()
            if offset in self._held:
                self._held.remove(offset)
                self._unlock(offset)

    def enter(self) -> bool:
        with self._guard:
            self._forget_parent()
            if self._inside < 0 or (
                self._inside == 0 and not self._lock(fcntl.LOCK_SH, _CACHE_OFFSET)
            ):
                return False
            self._inside += 1
            return True

    def enter_alone(self) -> bool:
        with self._guard:
            self._forget_parent()
            if self._inside or not self._lock(fcntl.LOCK_EX, _CACHE_OFFSET):
                return False
            self._inside = -1
            return True

    def leave(self) -> None:
        with self._guard:
            self._forget_parent()
            if self._inside:
                self._inside = max(0, self._inside - 1)
                if not self._inside:
                    self._unlock(_CACHE_OFFSET)

    def holder(self, *, exclusive: bool) -> int:
        """Return the process that is in the way of a lock on the cache; 0 if it is not known."""
        if self._inside:
            return os.getpid()
        if sys.platform != "linux" or self._descriptor < 0:
            return 0
        kind = fcntl.F_WRLCK if exclusive else fcntl.F_RDLCK
        asked = struct.pack(_FLOCK, kind, os.SEEK_SET, _CACHE_OFFSET, 1, 0)
        found = struct.unpack(
            _FLOCK, fcntl.fcntl(self._descriptor, fcntl.F_GETLK, asked)[: len(asked)]
        )
        return 0 if found[0] == fcntl.F_UNLCK else int(found[4])

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def _lock(self, kind: int, offset: int) -> bool:
        if self._descriptor < 0:
            return True
        try:
            fcntl.lockf(self._descriptor, kind | fcntl.LOCK_NB, 1, offset)
        except OSError as error:
            # A file system without locks: everybody works, and some work is done twice.
            return error.errno not in (errno.EACCES, errno.EAGAIN)
        return True

    def _unlock(self, offset: int) -> None:
        if self._descriptor >= 0:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, offset)

    def _forget_parent(self) -> None:
        """After a fork nothing is held: the locks are the parent's."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._held.clear()
            self._inside = 0


def _lease_file(folder: str, *, read_only: bool) -> _LeaseFile:
    path = os.path.join(os.path.realpath(folder), "leases")
    with _opening:
        file = _open_files.get((path, read_only))
        if file is None:
            try:
                file = _open_files[path, read_only] = _LeaseFile(path, read_only=read_only)
            except OSError as error:
                raise output_error(folder, path, error) from error
        file.users += 1
        return file


def _offset(key: bytes) -> int:
    return int.from_bytes(key[:8], "big") >> 2
