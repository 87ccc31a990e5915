"""The one descriptor of a process on a cache's file ``leases``, and the locks that it holds by it.

In: offsets in the file. Out: locks, or none because another process has them. Not done here: which
offset stands for what action, waiting (``leases``).

Closing any descriptor of the file would drop all locks of the process, so a process opens it once.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
import threading

from ingot_artifacts.store.atomic import output_error

_CACHE_OFFSET = 1 << 62  # behind all actions
_FLOCK = "@hhqqi"  # struct flock of Linux: type, whence, start, length, process
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_open_files: dict[tuple[str, bool], LeaseFile] = {}
_opening = threading.Lock()


class LeaseFile:
    """The one descriptor of a process, and what the process holds by it; several threads may use
    it. In a cache that is only read there is none, and locks hold within the process alone."""

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
        """Lock one byte for this process; False if anybody has it."""
        with self._guard:
            self._forget_parent()
            if offset in self._held or not self._lock(fcntl.LOCK_EX, offset):
                return False
            self._held.add(offset)
            return True

    def release(self, offset: int) -> None:
        """Unlock one byte, if it is locked."""
        with self._guard:
            self._forget_parent()
            if offset in self._held:
                self._held.remove(offset)
                self._unlock(offset)

    def enter(self) -> bool:
        """Take a share of the whole cache; False if anybody has it alone."""
        with self._guard:
            self._forget_parent()
            if self._inside < 0 or (
                self._inside == 0 and not self._lock(fcntl.LOCK_SH, _CACHE_OFFSET)
            ):
                return False
            self._inside += 1
            return True

    def enter_alone(self) -> bool:
        """Take the whole cache; False if anybody has a share of it."""
        with self._guard:
            self._forget_parent()
            if self._inside or not self._lock(fcntl.LOCK_EX, _CACHE_OFFSET):
                return False
            self._inside = -1
            return True

    def leave(self) -> None:
        """Give a share back, or the whole cache."""
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
        query = struct.pack(_FLOCK, kind, os.SEEK_SET, _CACHE_OFFSET, 1, 0)
        answer = fcntl.fcntl(self._descriptor, fcntl.F_GETLK, query)
        found = struct.unpack(_FLOCK, answer[: len(query)])
        return 0 if found[0] == fcntl.F_UNLCK else int(found[4])

    def close(self) -> None:
        """Close the descriptor, which gives all locks back."""
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


def open_lease_file(folder: str, *, read_only: bool) -> LeaseFile:
    """Return the process's one file for a cache; give it back with ``close_lease_file``.

    Raises:
        OutputError: it cannot be opened.
    """
    path = os.path.join(os.path.realpath(folder), "leases")
    with _opening:
        file = _open_files.get((path, read_only))
        if file is None:
            try:
                file = _open_files[path, read_only] = LeaseFile(path, read_only=read_only)
            except OSError as error:
                raise output_error(folder, path, error) from error
        file.users += 1
        return file


def close_lease_file(file: LeaseFile) -> None:
    """Give a file back; the last one of its users closes it."""
    with _opening:
        file.users -= 1
        if file.users == 0:
            _open_files.pop((file.path, file.read_only), None)
            file.close()
