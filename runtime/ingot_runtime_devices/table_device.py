"""What devices have in common whose memory is a driver's and whose library is a table of kernels.

In: what a driver gives for an allocation, rows of kernels. Out: ``TableDevice``, ``DriverMemory``. Not
done here: calls of a driver (one file per kind).
"""

import ctypes
import weakref
from bisect import bisect_right, insort

from ingot_runtime.errors import ResourceError
from ingot_runtime.format import abi

from .device import ALIGNMENT_BYTES, Device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .device import Allocation
    from .kernel_table import KernelRow


class DriverMemory:
    """An allocation; ``handle`` is what the driver gave."""

    __slots__ = ("__weakref__", "address", "handle", "size_bytes")

    def __init__(self, address: int, size_bytes: int, handle: "Any") -> None:
        self.address = address
        self.size_bytes = size_bytes
        self.handle = handle


if TYPE_CHECKING:
    Place = tuple[DriverMemory, int]  # an allocation, and where in it


class MemoryTable:
    """The allocations of a device by address. One that nobody holds leaves by itself, and
    ``release`` is called with its handle; it must not know the device, which would then never
    end."""

    __slots__ = ("__weakref__", "_found", "_order", "_release")

    def __init__(self, release: "Callable[[Any], None]") -> None:
        self._found: dict[int, tuple[weakref.ref[DriverMemory], Any]] = {}
        self._order: list[int] = []
        self._release = release

    def used_bytes(self) -> int:
        """Return the bytes of all allocations."""
        live = (reference() for reference, _ in tuple(self._found.values()))
        return sum(memory.size_bytes for memory in live if memory is not None)

    def keep(self, memory: DriverMemory) -> None:
        """Put an allocation into the table."""
        reference = weakref.ref(memory, _forgetting(self, memory.address))
        self._found[memory.address] = (reference, memory.handle)
        insort(self._order, memory.address)

    def forget(self, address: int) -> None:
        """Take an allocation out of the table."""
        found = self._found.pop(address, None)
        if found is not None:
            self._order.remove(address)
            self._release(found[1])

    def find(self, address: int, size_bytes: int) -> "DriverMemory | None":
        """Return the allocation that holds these bytes."""
        index = bisect_right(self._order, address) - 1
        memory = self._found[self._order[index]][0]() if index >= 0 else None
        if memory is None or size_bytes < 0:
            return None
        return memory if address + size_bytes <= memory.address + memory.size_bytes else None


class TableDevice(Device):
    """A device with such memory and such a library."""

    __slots__ = ("_memories", "_rows")

    def __init__(
        self, name: str, rows: "Sequence[KernelRow]", release: "Callable[[Any], None]"
    ) -> None:
        super().__init__(name)
        self._rows = rows
        self._memories = MemoryTable(release)

    def free(self, allocation: "Allocation") -> None:
        """Take the memory back; a driver keeps it until what was queued is done."""
        self._require("free", allocation.address, 0)
        self._memories.forget(allocation.address)

    def _require(self, what: str, address: int, size_bytes: int) -> "Place":
        """Return the allocation that holds these bytes, and where in it."""
        self.require_open()
        memory = self._memories.find(address, size_bytes)
        if memory is None:
            raise self.refused(what, f"{size_bytes} bytes at {address:#x} are not in its memory")
        return memory, address - memory.address

    def launch(
        self,
        kernel: int,
        buffers: "Sequence[int]",
        scalars: "Sequence[int]",
        extent: int,
        grain: int,
        watch: int,
    ) -> int:
        """Queue the kernel; wait for it only where it may return a code."""
        self.require_open()
        places = self._checked(kernel, buffers, scalars, extent, grain)
        if _is_cancelled(watch):
            return abi.RC_CANCELLED
        if not extent:
            return 0
        return self._launch(kernel, places, scalars, extent, grain)

    def _launch(
        self, kernel: int, places: "list[Place]", scalars: "Sequence[int]", extent: int, grain: int
    ) -> int:
        """Queue a launch that was checked; ``places``: where its buffers lie, the last of which is
        scratch."""
        raise NotImplementedError

    def _checked(
        self,
        kernel: int,
        buffers: "Sequence[int]",
        scalars: "Sequence[int]",
        extent: int,
        grain: int,
    ) -> "list[Place]":
        """Return where the buffers lie, or refuse the launch."""
        if not 0 <= kernel < len(self._rows):
            raise self.refused("launch", f"kernel {kernel} of {len(self._rows)}")
        if extent < 0 or grain < 1:
            raise self.refused("launch", f"extent {extent}, grain {grain}")
        # A buffer of no bytes may lie at the very end of what it lies in.
        places = [self._require("launch", address, 0) for address in buffers]
        if not buffers or any(address % ALIGNMENT_BYTES for address in buffers):
            at = f"multiples of {ALIGNMENT_BYTES}"
            why = f"its buffers, the last of which is scratch, must lie at {at}"
            raise self.refused("launch", why)
        expected = self._rows[kernel].buffer_count + 1, self._rows[kernel].scalar_count
        if (len(buffers), len(scalars)) != expected:
            got = f"got {len(buffers)} and {len(scalars)}"
            why = f"kernel {kernel} takes {expected[0]} buffers and {expected[1]} scalars, {got}"
            raise self.refused("launch", why)
        return places

    def _code_of(self, kernel: int, code: int) -> int:
        """Return a code that a kernel may report, or refuse the launch."""
        if code and code < abi.RC_REQUIREMENT:
            raise self.refused("launch", f"kernel {kernel} returns {code}")
        return code

    def _no_memory(self, size_bytes: int, why: str) -> ResourceError:
        what = f"not enough memory on device {self.name}"
        return ResourceError(what, f"{size_bytes} bytes", why, "use smaller shapes")


def allocation_bytes(size_bytes: int) -> int:
    """Return what an allocation takes of a device."""
    return max(-(-size_bytes // ALIGNMENT_BYTES), 1) * ALIGNMENT_BYTES


def host_bytes(address: int, size_bytes: int) -> "Any":
    """Return host memory as an array."""
    import numpy as np

    return np.frombuffer(memoryview((ctypes.c_uint8 * size_bytes).from_address(address)), np.uint8)


def _is_cancelled(watch: int) -> bool:
    """Whether the caller of a launch does not want it any more."""
    if not watch:
        return False
    return bool(ctypes.c_uint32.from_address(watch + abi.WATCH.offsets["cancel"]).value)


def _forgetting(table: MemoryTable, address: int) -> "Any":
    """Return what a dead allocation calls; it does not keep the table."""
    here = weakref.ref(table)

    def forget(_: object) -> None:
        found = here()
        if found is not None:
            found.forget(address)

    return forget
