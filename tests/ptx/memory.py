"""The memory of a GPU: allocations in one space of addresses, memory of blocks and of threads.

In: addresses, one per thread. Out: numbers. Not done here: which instruction asks (``grid``).

An access outside of an allocation, or at an address that is no multiple of its size, ends the
launch with ``PtxError``, as it does on a GPU.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.ptx.ptx_text import PtxError

Array = npt.NDArray[Any]

_BASE = 1 << 56  # where no process can have memory
_ARENA_BYTES = 1 << 30
ALIGNMENT_BYTES = 256


class GlobalMemory:
    """One GPU's memory; of ``size_bytes`` that can be allocated."""

    def __init__(self, size_bytes: int = _ARENA_BYTES) -> None:
        self.size_bytes = size_bytes
        self._starts: list[int] = []
        self._sizes: dict[int, int] = {}
        self._following = 0
        self._bounds: tuple[Array, Array] | None = None

    @cached_property
    def _bytes(self) -> Array:
        return np.zeros(_ARENA_BYTES, np.uint8)  # pages that nobody touches take no room

    @property
    def used_bytes(self) -> int:
        """The bytes of all allocations."""
        return sum(self._sizes.values())

    def allocate(self, size_bytes: int) -> int:
        """Return the address of new memory with other content than zeros; 0 where there is none."""
        room = -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        is_full = self._following + room + ALIGNMENT_BYTES > _ARENA_BYTES
        if is_full or self.used_bytes + size_bytes > self.size_bytes:
            return 0
        start = _BASE + self._following
        self._following += room + ALIGNMENT_BYTES
        self._bytes[start - _BASE :][:size_bytes] = 0xAB
        insort(self._starts, start)
        self._sizes[start] = size_bytes
        self._bounds = None
        return start

    def free(self, start: int) -> None:
        """Take an allocation back."""
        if start not in self._sizes:
            raise PtxError(f"no allocation at {start:#x}")
        self._starts.remove(start)
        del self._sizes[start]
        if not self._sizes:
            self._following = 0
        self._bounds = None

    def bytes_at(self, address: int, size_bytes: int) -> Array:
        """Bytes for a copy, all in one allocation."""
        index = bisect_right(self._starts, address) - 1
        start = self._starts[index] if index >= 0 else 0
        if not start or address + size_bytes > start + self._sizes[start]:
            raise PtxError(f"{size_bytes} bytes at {address:#x} are in no allocation")
        return self._bytes[address - _BASE :][:size_bytes]

    def load(self, addresses: Array, kind: Any) -> Array:
        """A number from each address."""
        answer: Array = self._bytes.view(kind)[self._places(addresses, kind)]
        return answer

    def store(self, addresses: Array, values: Array) -> None:
        """A number to each address; the last of several is kept."""
        self._bytes.view(values.dtype)[self._places(addresses, values.dtype)] = values

    def maximum(self, addresses: Array, values: Array) -> None:
        """``atom.max``."""
        np.maximum.at(self._bytes.view(values.dtype), self._places(addresses, values.dtype), values)

    def _places(self, addresses: Array, kind: Any) -> Array:
        size = np.dtype(kind).itemsize
        if self._bounds is None:
            starts = np.array(self._starts, np.uint64)
            ends = starts + np.array([self._sizes[s] for s in self._starts], np.uint64)
            self._bounds = starts, ends
        starts, ends = self._bounds
        index = np.searchsorted(starts, addresses, "right") - 1
        outside = (index < 0) | (addresses + np.uint64(size) > ends[index])
        if outside.any():
            raise PtxError(f"an access to {int(addresses[outside][0]):#x}, in no allocation")
        places = addresses - np.uint64(_BASE)
        require_aligned(places, size)
        return places // np.uint64(size)


class Rows:
    """Memory of which each block, or each thread, has its own: from address 0 on."""

    def __init__(self, count: int, size_bytes: int) -> None:
        self._size_bytes = -(-size_bytes // 8) * 8
        self._bytes = np.full(count * self._size_bytes, 0xAB, np.uint8)

    def load(self, rows: Array, addresses: Array, kind: Any) -> Array:
        """A number from an address of each row."""
        answer: Array = self._bytes.view(kind)[self._places(rows, addresses, kind)]
        return answer

    def store(self, rows: Array, addresses: Array, values: Array) -> None:
        """A number to an address of each row."""
        self._bytes.view(values.dtype)[self._places(rows, addresses, values.dtype)] = values

    def _places(self, rows: Array, addresses: Array, kind: Any) -> Array:
        size = np.dtype(kind).itemsize
        if (addresses + np.uint64(size) > self._size_bytes).any():
            raise PtxError("an access beyond the memory of a block or of a thread")
        require_aligned(addresses, size)
        start = rows.astype(np.uint64) * np.uint64(self._size_bytes)
        return (start + addresses) // np.uint64(size)


def require_aligned(addresses: Array, size_bytes: int) -> None:
    """Refuse addresses that are no multiple of what is read or written there."""
    if (addresses % np.uint64(size_bytes)).any():
        raise PtxError(f"an access of {size_bytes} bytes at an address that is no multiple of it")
