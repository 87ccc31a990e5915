"""Copies from a GPU to the host that run beside later launches: on a stream of their own.

In: a driver, the stream that computes, addresses. Out: ``CudaReads``. Not done here: contexts and
errors (``cuda``).

A driver copies beside other work only into memory whose pages stay where they are. Such memory is
slow to come by and nobody else can have it, so there is at most ``_LOCKED_BYTES_MAX``, which is
kept for later copies; from there the bytes go on when the copy ends.
"""

import ctypes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LOCKED_BYTES_MAX = 64 << 20


class CudaReads:
    """The copies of one device that have begun, by where they write."""

    __slots__ = ("_begun", "_drv", "_free", "_stream", "_used_bytes")

    def __init__(self, drv: "Any") -> None:
        """With the context pushed, as all methods."""
        self._drv = drv
        self._stream = drv.Stream()
        self._begun: dict[int, tuple[Any, Any, int]] = {}
        self._free: list[Any] = []
        self._used_bytes = 0

    def begin(self, behind: "Any", target: int, address: int, size_bytes: int) -> bool:
        """Begin to copy what is there when the stream `behind` has done what it was asked; return
        whether there is memory for that."""
        self.end(target)
        place = self._take(size_bytes)
        if place is None:
            return False
        self._stream.wait_for_event(self._event(behind))
        self._drv.memcpy_dtoh_async(place[:size_bytes], address, self._stream)
        self._begun[target] = self._event(self._stream), place, size_bytes
        return True

    def end(self, target: int) -> None:
        """Wait for the copy that writes there, if one has begun."""
        if target in self._begun:
            done, place, size_bytes = self._begun[target]
            done.synchronize()
            del self._begun[target]
            ctypes.memmove(target, place.ctypes.data, size_bytes)
            self._free.append(place)

    def end_all(self) -> None:
        """Wait for all of them."""
        for target in tuple(self._begun):
            self.end(target)

    def _event(self, stream: "Any") -> "Any":
        return self._drv.Event(self._drv.event_flags.DISABLE_TIMING).record(stream)

    def _take(self, size_bytes: int) -> "Any":
        """Return the least memory that is large enough; what nobody uses goes back where there is
        no room for more; None where it does not suffice."""
        fits = [place for place in self._free if place.size >= size_bytes]
        if fits:
            chosen = min(fits, key=len)
            self._free = [place for place in self._free if place is not chosen]
            return chosen
        if self._used_bytes + size_bytes > _LOCKED_BYTES_MAX:
            self._used_bytes -= sum(place.size for place in self._free)
            self._free.clear()
        if self._used_bytes + size_bytes > _LOCKED_BYTES_MAX:
            return None
        try:
            made = self._drv.pagelocked_empty(size_bytes, "uint8")
        except self._drv.MemoryError:
            return None
        self._used_bytes += size_bytes
        return made
