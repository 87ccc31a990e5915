"""Threads lent to native code: each is in one native call, parked until there is work.

In: an image, a number of threads. Out: the address of the pool page for the call struct. Not done
here: fork-join itself (native: the image's ``launch`` and ``worker``).

Each thread holds what it runs on: code and page outlive it. The last reference to a ``ThreadPool``
tells its threads to leave by one system call, which Ctrl-C cannot cut short.
"""

import _thread
import ctypes
import os
import struct
import weakref
from _queue import Empty, SimpleQueue

from ..format import abi
from . import system
from .block import Block
from .ending import POOLS, register_ending
from .image import Image

_SPIN = 2000
_THREADS_MAX = 1024
_JOIN_SECONDS = 0.1
_WORKER = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_int64, ctypes.py_object)
# long syscall(number, word, operation, count, second count, second word, change); libc does not
# look at the last argument, a dead weak reference.
_SYSCALL = ctypes.CFUNCTYPE(
    ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p,
    ctypes.c_void_p, ctypes.c_uint, ctypes.py_object,
)(system.address_of_libc("syscall"))  # fmt: skip
# futex(2): change the second word and wake who waits on the first; the change is "or 1 <<
# argument", and no second wake.
_FUTEX_WAKE_OP_PRIVATE = 5 | 128
_OR_SHIFTED = (2 | 8) << 28
_SET_QUIT = _OR_SHIFTED | abi.POOL_QUIT_BIT << 12
_EVERYBODY = 0x7FFFFFFF


def usable_threads(requested: int) -> int:
    """Return how many of `asked` threads the affinity mask and the control group let run."""
    if requested == 1:
        return 1
    count = min(requested, system.usable_processors(), _THREADS_MAX)
    quota = group_quota()
    return max(1, min(count, quota) if quota else count)


def group_quota() -> int:
    """Return the quota (cgroup 2, ``cpu.max``) in whole processors, rounded up; 0 for none."""
    try:
        with open("/proc/self/cgroup", "rb") as file:
            group = next(line[3:].strip().decode() for line in file if line.startswith(b"0::"))
        with open(f"/sys/fs/cgroup{group}/cpu.max", "rb") as file:
            limit, period = file.read().split()
        return 0 if limit == b"max" else -(-int(limit) // int(period))
    except (OSError, ValueError, StopIteration):
        return 0


class _Latch:
    """Dies when its thread has let go of everything."""

    __slots__ = ("__weakref__",)


class ThreadPool:
    """A page with its workers. ``page`` is 0 for one thread; ``n_threads`` counts the caller's."""

    __slots__ = (
        "__weakref__", "_ended", "_image", "_latches", "_memory", "_wake", "n_threads", "page",
        "pid",
    )  # fmt: skip

    def __init__(self, image: Image, n_threads: int) -> None:
        """Start `n_threads` - 1 workers, or as many as the system has left."""
        self._image = image
        self._ended: SimpleQueue[object] = SimpleQueue()
        self.n_threads = n_threads
        self.start()
        register_ending(self, POOLS)

    def start(self) -> None:
        """Make a page and workers; in a forked child, where the old page reads as zeros, anew."""
        self.pid = os.getpid()
        self.page = 0
        self._latches: list[weakref.ref[_Latch]] = []
        if self.n_threads < 2:
            return
        self._memory = Block(abi.POOL_SIZE_BYTES)
        page = self._memory.address
        system.advise(page, system.round_up(abi.POOL_SIZE_BYTES), system.MADV_WIPEONFORK)
        word = page + abi.POOL_OFFSETS["epoch"]
        number = system.FUTEX_NUMBERS[os.uname().machine]
        self._wake = system.callback(
            _SYSCALL, number, word, _FUTEX_WAKE_OP_PRIVATE, _EVERYBODY, None, word, _SET_QUIT
        )
        spin = _SPIN if system.usable_processors() >= self.n_threads else 0
        _fill(page, "spin", "<I", spin)
        _fill(page, "syscall", "<Q", system.address_of_libc("syscall"))
        _fill(page, "futex_number", "<Q", number)
        _fill(page, "magic", "<I", abi.POOL_MAGIC)
        self._lend()
        self.n_threads = len(self._latches) + 1
        _fill(page, "n_threads", "<I", self.n_threads)
        self.page = page if self._latches else 0

    def _lend(self) -> None:
        """Start the workers; where the system refuses one, those before it are all."""
        work = _WORKER(self._image.exports["worker"])
        leave = weakref.ref(self, self._wake)
        for index in range(1, self.n_threads):
            latch = _Latch()
            self._latches.append(weakref.ref(latch, self._ended.put))
            try:
                # Not threading.Thread: its start can be cut short with the thread running.
                _thread.start_new_thread(
                    work, (self._memory.address, index, (self._image, self._memory, latch, leave))
                )
            except (RuntimeError, MemoryError):
                self._latches.pop()
                return

    def end(self) -> None:
        """Join the workers for good: the interpreter is ending, and what is called from now on runs
        alone."""
        self.n_threads, self.page = 1, 0
        self.stop()

    def stop(self) -> None:
        """End and join the workers. In a forked child the workers are gone already."""
        if not self._latches or self.pid != os.getpid():
            return
        self._wake(None)
        while any(latch() is not None for latch in self._latches):
            try:
                self._ended.get(timeout=_JOIN_SECONDS)
            except Empty:
                continue


def _fill(page: int, name: str, kind: str, value: int) -> None:
    data = struct.pack(kind, value)
    ctypes.memmove(page + abi.POOL_OFFSETS[name], data, len(data))
