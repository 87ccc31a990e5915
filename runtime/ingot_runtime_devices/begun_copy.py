"""Copying bytes beside the calling thread.

In: addresses that stay readable and writable. Out: ``BegunCopy``. Not done here: rights of pages,
which copies are worth a thread (``host_memory``).
"""

import _thread
import ctypes
from time import perf_counter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class BegunCopy:
    """A copy that a thread of its own makes. ``piece``: the device's side, kept until it is done;
    ``started_seconds``, ``ended_seconds``: by ``time.perf_counter``."""

    __slots__ = ("_running", "ended_seconds", "piece", "started_seconds")

    def __init__(self, target: int, source: int, size_bytes: int, piece: "Any") -> None:
        """Begin; ``RuntimeError`` where no thread can be had."""
        self.piece = piece
        self.started_seconds = self.ended_seconds = perf_counter()
        self._running = _thread.allocate_lock()
        self._running.acquire()
        _thread.start_new_thread(self._run, (target, source, size_bytes))

    def _run(self, target: int, source: int, size_bytes: int) -> None:
        self.started_seconds = perf_counter()
        ctypes.memmove(target, source, size_bytes)
        self.ended_seconds = perf_counter()
        self._running.release()

    def join(self) -> "tuple[float, float]":
        """Return when it began and ended; may be called again."""
        with self._running:
            return self.started_seconds, self.ended_seconds
