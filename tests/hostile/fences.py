"""Memory between two pages that nobody may touch, filled with what no result may come from.

In: a size, an alignment, at which end of its pages it lies. Out: ``Fenced``, copies of arrays in
such memory. Not done here: calls.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
# A quiet NaN in f32 and, nearly, in f64; all ones: NaN, -1, an index far outside.
POISONS = (b"\x00\x00\xc0\x7f", b"\xff\xff\xff\xff")
_LIBC = ctypes.CDLL(None, use_errno=True)


class Fenced:
    """``size_bytes`` at ``address``: the byte behind the end, or the one before the begin, is not
    to be touched.

    Up to ``alignment`` - 1 bytes may lie between the end and the fence; they, and the rest of the
    pages, hold the poison.
    """

    def __init__(
        self,
        size_bytes: int,
        alignment: int = 1,
        *,
        at_end: bool = True,
        poison: bytes = POISONS[0],
    ) -> None:
        page = mmap.PAGESIZE
        room_bytes = max(1, -(-size_bytes // page)) * page
        self.pages = mmap.mmap(-1, room_bytes + 2 * page)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.pages))
        for fence in (base, base + page + room_bytes):
            assert _LIBC.mprotect(ctypes.c_void_p(fence), ctypes.c_size_t(page), 0) == 0
        self.size_bytes = size_bytes
        self._poison = poison
        self._begin = (room_bytes - size_bytes) // alignment * alignment if at_end else 0
        self.address = base + page + self._begin
        inside = memoryview(self.pages)[page : page + room_bytes]
        self.memory = inside[self._begin : self._begin + size_bytes]
        self._around = inside[: self._begin], inside[self._begin + size_bytes :]
        for part in self._around:
            part[:] = self._pattern(len(part))
        self.fill()

    def _pattern(self, size_bytes: int) -> bytes:
        return (self._poison * (size_bytes // len(self._poison) + 1))[:size_bytes]

    def fill(self) -> None:
        """Poison it again."""
        self.memory[:] = self._pattern(self.size_bytes)

    def is_intact(self) -> bool:
        """Whether nobody has written beside it, on its own pages."""
        return all(bytes(part) == self._pattern(len(part)) for part in self._around)


def fenced(array: Array, *, at_end: bool = True) -> Array:
    """A copy, which keeps its memory alive."""
    return filled(Fenced(array.nbytes, array.itemsize, at_end=at_end), array)


def filled(place: Fenced, array: Array) -> Array:
    """A copy of `array` in `place`."""
    copy = np.frombuffer(place.memory, array.dtype, array.size).reshape(array.shape)
    copy[...] = array
    return copy
