"""Kind ``opencl``: a device of an OpenCL driver, through pyopencl.

In: a library section, which is OpenCL C. Out: ``OpenCl``, by the contract of ``device``. Not done
here: compiling in a process of its own (``opencl_build``).

Addresses are numbers of our own that no process can have mapped: a place in a ``cl_mem`` is found
from them. Launches and copies are queued, so that the host goes on while the device works; reads
and ``wait`` wait. Copies from and to the host that begin
early have a queue of their own.
"""

import ctypes
import shutil
import sys
from contextlib import contextmanager
from time import perf_counter

from ingot_runtime.errors import IncompatibleError
from ingot_runtime.format.plan import LibraryPlan

from .opencl_build import BUILDER, build, devices
from .opencl_library import REPORT_BYTES, OpenClLibrary, read_library
from .table_device import DriverMemory, TableDevice, allocation_bytes, host_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import Any

    from .device import Allocation
    from .table_device import Place

ITEMS_MAX = 8  # work items of a kernel that has scratch: as many places are in it
_ITEMS_PER_UNIT = 4  # work items per compute unit of a processor, so that none is idle for long
_FIRST_ADDRESS = 1 << 61  # no address of a process
_GAP_BYTES = 1 << 20
_CLOCK_READINGS = 8
_STAGED_BYTES_MAX = 1 << 26  # of what waits in our memory for a device that works
_DRIVERS = (
    "apt install pocl-opencl-icd; or pip install intel-opencl-rt intel-cmplr-lib-rt, and export "
    f"OCL_ICD_VENDORS={sys.prefix}/lib/libintelocl.so"
)
_INSTALL = f"pip install pyopencl, and a driver: {_DRIVERS}"


def open_opencl(
    name: str, id: int, library: LibraryPlan, code: bytes, where: str, features: frozenset[str]
) -> "OpenCl":
    """Return device `id` of this machine; `name` is that of the virtual device, for messages.

    Raises:
        IncompatibleError: no pyopencl, no such device, one that lacks something, or whose driver
            does not work.
        FormatError: no library.
    """
    del features
    read = read_library(code, library.kernel_count, where)
    found = _devices_here(name, where)
    if id >= len(found):
        here = ", ".join(f"opencl:{at} ({each.name})" for at, each in enumerate(found)) or "none"
        why = f"device {name!r} wants opencl:{id}; there are: {here}"
        do = f"map it: --device {name}=opencl:0" if found else _INSTALL
        raise IncompatibleError(f"no device opencl:{id} here", where, why, do)
    missing = [each for each in read.extensions if each not in found[id].extensions.split()]
    if missing:
        what = f"device {name!r} cannot run its library here"
        why = f"opencl:{id} ({found[id].name}) lacks {', '.join(missing)}"
        raise IncompatibleError(what, where, why, "use another device, or the host")
    if read.kernels and (why := BUILDER.failure_of(id)):
        raise _broken(name, id, found, why, where)
    BUILDER.prove(id, read, where)
    return OpenCl(f"opencl:{id}", found[id], read)


def _devices_here(name: str, where: str) -> "list[Any]":
    try:
        import pyopencl as cl
    except ImportError as error:
        what = f"device {name!r} needs pyopencl"
        raise IncompatibleError(what, where, str(error), _INSTALL) from error
    try:
        return devices()
    except cl.Error as error:
        what = f"device {name!r} needs an OpenCL driver"
        raise IncompatibleError(what, where, str(error), _INSTALL) from error


def _broken(name: str, id: int, found: "list[Any]", why: str, where: str) -> IncompatibleError:
    """The error about a driver that runs nothing: it proposes another device whose driver works, if
    there is one."""
    others = (at for at in range(len(found)) if at != id and not BUILDER.failure_of(at))
    working = next(others, None)
    do = _other_driver() if working is None else f"map it: --device {name}=opencl:{working}"
    why = f"{found[id].name}, {found[id].version}: {why}"
    return IncompatibleError(f"the driver of opencl:{id} does not work here", where, why, do)


def _other_driver() -> str:
    do = f"use another driver: {_DRIVERS}"
    if shutil.which("ld") is None:  # which PoCL calls
        return f"install a C compiler, whose linker some drivers need (apt install gcc); or {do}"
    return do


class _Addresses:
    """Where the next allocation of this process lies."""

    __slots__ = ("following",)

    def __init__(self) -> None:
        self.following = _FIRST_ADDRESS

    def take(self, size_bytes: int) -> int:
        """Return an address with nothing behind it."""
        address = self.following
        self.following += -(-size_bytes // _GAP_BYTES) * _GAP_BYTES + _GAP_BYTES
        return address


_ADDRESSES = _Addresses()


class OpenCl(TableDevice):
    """One device, with a context and two queues of its own."""

    __slots__ = (
        "__weakref__", "_begun", "_cl", "_clock_seconds", "_context", "_device", "_early", "_kernels",
        "_last", "_library", "_queue", "_report", "_staged", "_staged_bytes",
    )  # fmt: skip

    def __init__(self, name: str, device: "Any", library: OpenClLibrary) -> None:
        import pyopencl as cl

        super().__init__(name, library.kernels, _nothing)
        self._cl = cl
        self._device = device
        self._library = library
        # What was queued last, and the copies that read memory of ours until they are done.
        self._last: Any = None
        self._staged: list[Any] = []
        self._staged_bytes = 0
        self._begun: dict[int, Any] = {}  # copies of the second queue, by where they write
        self._clock_seconds: float | None = None  # what the driver's clock is behind ours
        with self._failing("open"):
            self._context = cl.Context([device])
            self._queue = cl.CommandQueue(self._context)
            self._early = cl.CommandQueue(self._context)
            self._kernels: list[Any] = []
            if library.kernels:
                program = build(self._context, library.source)
                self._kernels += (cl.Kernel(program, kernel.name) for kernel in library.kernels)
            self._report = self._zeros(REPORT_BYTES)

    def allocate(self, size_bytes: int) -> "Allocation":
        """Create a ``cl_mem`` of zeros."""
        self.require_open()
        total, largest = self._device.global_mem_size, self._device.max_mem_alloc_size
        used = self._memories.used_bytes()
        if not 0 <= size_bytes <= min(total - used, largest):
            why = f"{total - used} of {total} bytes are free, {largest} at most in one piece"
            raise self._no_memory(size_bytes, why)
        try:
            buffer = self._zeros(allocation_bytes(size_bytes))
        except (self._cl.Error, MemoryError) as error:
            raise self._no_memory(size_bytes, str(error)) from error
        memory = DriverMemory(_ADDRESSES.take(buffer.size), buffer.size, buffer)
        self._memories.keep(memory)
        return memory

    def _zeros(self, size_bytes: int) -> "Any":
        buffer = self._cl.Buffer(self._context, self._cl.mem_flags.READ_WRITE, size_bytes)
        self._last = self._cl.enqueue_fill_buffer(self._queue, buffer, b"\0", 0, size_bytes)
        return buffer

    def write(self, address: int, source: int, size_bytes: int) -> None:
        """Copy from the host. While the device works, what is copied waits in memory of ours: the
        caller may change its own, and goes on."""
        memory, at = self._require("write", address, size_bytes)
        if not size_bytes:
            return
        given = host_bytes(source, size_bytes)
        is_staged = self._is_working() and self._staged_bytes + size_bytes <= _STAGED_BYTES_MAX
        with self._failing("write"):
            if is_staged:
                given = given.copy()
            self._last = self._cl.enqueue_copy(
                self._queue, memory.handle, given, dst_offset=at, is_blocking=not is_staged
            )
            if is_staged:
                self._staged.append(self._last)
                self._staged_bytes += size_bytes
            else:
                self._forget_staged()

    def _is_working(self) -> bool:
        """Whether something that was queued is not known to be done."""
        if self._last is None:
            return False
        done = self._cl.command_execution_status.COMPLETE
        return bool(self._last.command_execution_status != done)

    def _forget_staged(self) -> None:
        """All that was queued is done: nothing reads our memory any more."""
        self._staged.clear()
        self._staged_bytes, self._last = 0, None

    def read(self, target: int, address: int, size_bytes: int) -> None:
        """Copy to the host, when what was queued is done."""
        memory, at = self._require("read", address, size_bytes)
        if size_bytes:
            with self._failing("read"):
                self._cl.enqueue_copy(
                    self._queue, host_bytes(target, size_bytes), memory.handle, src_offset=at
                )
            self._forget_staged()

    def begin_read(self, target: int, address: int, size_bytes: int) -> None:
        """Queue a copy to the host beside what is queued next: it waits for what was queued."""
        memory, at = self._require("read", address, size_bytes)
        if not size_bytes:
            return
        with self._failing("read"):
            place = host_bytes(target, size_bytes)
            self._begun[target] = self._begin(place, memory.handle, src_offset=at)

    def begin_write(self, address: int, source: int, size_bytes: int) -> None:
        """Queue a copy from the host likewise: what was queued before may use what it writes
        over."""
        memory, at = self._require("write", address, size_bytes)
        if not size_bytes:
            return
        with self._failing("write"):
            given = host_bytes(source, size_bytes)
            self._begun[address] = self._begin(memory.handle, given, dst_offset=at)

    def _begin(self, to: "Any", from_: "Any", **offset: int) -> "Any":
        before = [] if self._last is None else [self._last]
        self._queue.flush()
        event = self._cl.enqueue_copy(
            self._early, to, from_, is_blocking=False, wait_for=before, **offset
        )
        self._early.flush()
        return event

    def end_read(self, target: int) -> "tuple[float, float] | None":
        """Wait for such a copy."""
        self.require_open()
        event = self._begun.pop(target, None)
        if event is None:
            return None
        with self._failing("copy"):
            event.wait()
        return self._times_of(event)

    def end_write(self, address: int) -> "tuple[float, float] | None":
        """Wait for a copy to the device to end."""
        return self.end_read(address)

    def measure(self) -> None:
        """Have queues that note times."""
        cl = self._cl
        with self._failing("open"):
            self._queue.finish()
            self._forget_staged()
            noting = cl.command_queue_properties.PROFILING_ENABLE
            self._queue, self._early = (
                cl.CommandQueue(self._context, properties=noting) for _ in range(2)
            )
            # Each is too large by what passes in between, which is least where nothing interrupts.
            self._clock_seconds = min(self._clock_difference() for _ in range(_CLOCK_READINGS))

    def _clock_difference(self) -> float:
        # Intel's driver does not tell of a marker when it was queued.
        event = self._cl.enqueue_fill_buffer(self._queue, self._report, b"\0", 0, REPORT_BYTES)
        seconds = perf_counter()
        event.wait()
        return float(seconds - event.profile.queued * 1e-9)

    def last_times(self) -> "Callable[[], tuple[float, float]] | None":
        """The driver knows when a launch ran."""
        event = self._last
        if event is None or self._clock_seconds is None:
            return None
        return lambda: self._times_of(event) or (0.0, 0.0)

    def _times_of(self, event: "Any") -> "tuple[float, float] | None":
        behind = self._clock_seconds
        if behind is None:
            return None
        return event.profile.start * 1e-9 + behind, event.profile.end * 1e-9 + behind

    def move(self, target: int, source: int, size_bytes: int) -> None:
        """Queue a copy within the device; by way of other memory where the two overlap."""
        (to, to_at), (from_, from_at) = (
            self._require("move", address, size_bytes) for address in (target, source)
        )
        if not size_bytes or target == source:
            return
        with self._failing("move"):
            if to is from_ and abs(target - source) < size_bytes:
                between = self._zeros(size_bytes)
                self._copy(between, 0, from_.handle, from_at, size_bytes)
                self._copy(to.handle, to_at, between, 0, size_bytes)
            else:
                self._copy(to.handle, to_at, from_.handle, from_at, size_bytes)

    def _copy(self, to: "Any", to_at: int, from_: "Any", from_at: int, size_bytes: int) -> None:
        self._last = self._cl.enqueue_copy(
            self._queue, to, from_, byte_count=size_bytes, src_offset=from_at, dst_offset=to_at
        )

    def _launch(
        self, kernel: int, places: "list[Place]", scalars: "Sequence[int]", extent: int, grain: int
    ) -> int:
        arguments: list[Any] = []
        for memory, at in places[:-1]:
            arguments += memory.handle, _i64(at)
        arguments += map(_i64, scalars)
        items, share = self._items(self._library.kernels[kernel].has_scratch, extent, grain)
        scratch, at = places[-1]
        arguments += scratch.handle, _i64(at), self._report, _i64(extent), _i64(share)
        with self._failing("launch"):
            function = self._kernels[kernel]
            function.set_args(*arguments)
            self._last = self._cl.enqueue_nd_range_kernel(self._queue, function, (items,), (1,))
            return self._code(kernel)

    def _items(self, has_scratch: bool, extent: int, grain: int) -> "tuple[int, int]":
        """Return how many work items run, and how many units each."""
        most = extent
        if has_scratch:
            most = ITEMS_MAX
        elif self._device.type & self._cl.device_type.CPU:
            most = min(self._device.max_compute_units * _ITEMS_PER_UNIT, -(-extent // grain))
        share = -(-extent // most)
        return -(-extent // share), share

    def _code(self, kernel: int) -> int:
        """Return what the kernel reports."""
        if not self._library.kernels[kernel].reports:
            return 0
        code = ctypes.c_int32()
        place = host_bytes(ctypes.addressof(code), ctypes.sizeof(code))
        self._cl.enqueue_copy(self._queue, place, self._report)
        if code.value:
            self._cl.enqueue_fill_buffer(self._queue, self._report, b"\0", 0, REPORT_BYTES)
        return self._code_of(kernel, code.value)

    def wait(self) -> None:
        """Wait for the queues."""
        self.require_open()
        with self._failing("wait"):
            self._queue.finish()
            self._early.finish()
        self._begun.clear()
        self._forget_staged()

    def close(self) -> None:
        """Refuse everything; wait for what was queued."""
        is_first = not self._ended
        super().close()
        if is_first:
            try:
                self._queue.finish()
                self._early.finish()
            except self._cl.Error:  # there is nobody left to tell
                return
            self._forget_staged()

    @contextmanager
    def _failing(self, what: str) -> "Generator[None]":
        """A driver that fails is lost."""
        try:
            yield
        except self._cl.Error as error:
            self.lose(f"{what}: {error}")
            self.require_open()


def _nothing(_: object) -> None:
    """A ``cl_mem`` ends with its last reference; the driver keeps it until what was queued is
    done."""


def _i64(number: int) -> "Any":
    import numpy as np

    return np.int64(number)
