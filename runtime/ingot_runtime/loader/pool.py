"""Threads lent to native code: each is one Python thread in one ctypes call, parked until there is work.

In: an image, a number of threads. Out: the address of the pool page for the call struct. Not done here: fork-join itself
(native: the image's ``launch`` and ``worker``).
"""

import ctypes
import os
import struct

from ..errors import ResourceError
from ..format import abi
from . import system
from .image import Image

_SPIN = 2000
_WORKER = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int64)
_THREADS_MAX = 1024


def usable_threads(asked: int) -> int:
    """Return how many of `asked` threads may run at once here: affinity mask and the control group's quota limit it."""
    if asked == 1:
        return 1
    count = min(asked, len(os.sched_getaffinity(0)), _THREADS_MAX)
    quota = group_quota()
    return max(1, min(count, quota) if quota else count)


def group_quota() -> int:
    """Return the control group's quota (cgroup 2, ``cpu.max``) in whole processors, rounded up; 0 for none."""
    try:
        with open("/proc/self/cgroup", "rb") as file:
            group = next(line[3:].strip().decode() for line in file if line.startswith(b"0::"))
        with open(f"/sys/fs/cgroup{group}/cpu.max", "rb") as file:
            limit, period = file.read().split()
        return 0 if limit == b"max" else -(-int(limit) // int(period))
    except (OSError, ValueError, StopIteration):
        return 0


class Pool:
    """A pool page with its workers. ``page`` is 0 where one thread does everything."""

    __slots__ = ("_image", "_threads", "n_threads", "page", "pid")

    def __init__(self, image: Image, n_threads: int) -> None:
        """Start `n_threads` - 1 workers.

        Raises:
            ResourceError: the system refused memory or threads.
        """
        self._image = image
        self._threads: list[object] = []
        self.n_threads = n_threads
        self.page = 0
        self.pid = 0
        self.start()

    def start(self) -> None:
        """Make a page and workers; also in a forked child, where the old page reads as zeros."""
        self.pid = os.getpid()
        self._threads = []
        if self.n_threads < 2:
            return
        page = self.page or system.map_anonymous(abi.POOL_SIZE_BYTES)
        system.advise(page, system.round_up(abi.POOL_SIZE_BYTES), system.MADV_WIPEONFORK)
        at = abi.POOL_OFFSETS
        spin = _SPIN if len(os.sched_getaffinity(0)) >= self.n_threads else 0
        for name, kind, value in (
            ("n_threads", "<I", self.n_threads),
            ("spin", "<I", spin),
            ("syscall", "<Q", system.address_of_libc("syscall")),
            ("futex_number", "<Q", system.FUTEX_NUMBERS[os.uname().machine]),
            ("magic", "<I", abi.POOL_MAGIC),
        ):
            data = struct.pack(kind, value)
            ctypes.memmove(page + at[name], data, len(data))
        self.page = page
        self._lend()

    def _lend(self) -> None:
        import threading

        work = _WORKER(self._image.exports["worker"])
        try:
            for index in range(1, self.n_threads):
                # Daemon: other threads are joined before any exit handler could tell them to stop.
                thread = threading.Thread(target=work, args=(self.page, index), daemon=True, name=f"ingot-{index}")
                thread.start()
                self._threads.append(thread)
        except RuntimeError as error:
            self.stop()
            why = f"{len(self._threads) + 1} of {self.n_threads} threads: {error}"
            raise ResourceError("the system refused a thread", "worker pool", why, "ask for fewer threads") from error

    def stop(self) -> None:
        """End and join the workers, then give the page back. In a forked child the workers are gone already."""
        if not self.page:
            return
        if self.pid == os.getpid():
            at = abi.POOL_OFFSETS
            ctypes.c_uint32.from_address(self.page + at["quit"]).value = 1
            # The system call orders the two stores: a spinning worker that sees the new epoch must see `quit`.
            system.wake_all(self.page + at["epoch"])
            epoch = ctypes.c_uint32.from_address(self.page + at["epoch"])
            epoch.value = (epoch.value + 1) & 0xFFFFFFFF
            system.wake_all(self.page + at["epoch"])
            for thread in self._threads:
                thread.join()  # type: ignore[attr-defined]  # threading is imported late
        system.unmap(self.page, abi.POOL_SIZE_BYTES)
        self.page = 0
        self._threads = []
