"""Kind ``cuda``: a GPU of the CUDA driver, through pycuda.

In: a library section, which is PTX. Out: ``Cuda``, by the contract of ``device``. Not done here:
any other thing than the driver does: it compiles the PTX at load, and keeps what it made.

Launches and copies are queued in a stream of the device's own, so that the host goes on while the
device works; reads and ``wait`` wait. Reads that begin early have a second stream (``cuda_reads``).
The driver knows contexts by thread, and callers come from
any thread: each call of the driver is made with the context pushed.
"""

import ctypes
import importlib
from contextlib import contextmanager

from ingot_runtime.errors import IncompatibleError
from ingot_runtime.format.plan import LibraryPlan

from .cuda_library import GROUP_THREADS, CudaLibrary, CudaModule, read_library
from .cuda_reads import CudaReads
from .table_device import DriverMemory, TableDevice, allocation_bytes, host_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Any

    from .device import Allocation
    from .table_device import Place

GROUPS_MAX = 64  # times eight threads of a kernel that has scratch: as many places are in it
_BLOCKS_MAX = (1 << 31) - 1
_REPORT_BYTES = 64
_INSTALL = "install NVIDIA's driver, and pip install pycuda"


def open_cuda(
    name: str, id: int, library: LibraryPlan, code: bytes, where: str, features: frozenset[str]
) -> "Cuda":
    """Return device `id` of this machine; `name` is that of the virtual device, for messages.

    Raises:
        IncompatibleError: no pycuda, no driver, no such device, one that lacks something, a driver
            that is too old, or that does not compile the library.
        FormatError: no library.
    """
    del features
    read = read_library(code, library.kernel_count, where)
    drv, count = _driver(name, where)
    if id >= count:
        here = (
            ", ".join(f"cuda:{at} ({_description(drv.Device(at))})" for at in range(count))
            or "none"
        )
        why = f"device {name!r} wants cuda:{id}; there are: {here}"
        raise IncompatibleError(f"no device cuda:{id} here", where, why, _INSTALL)
    device = drv.Device(id)
    module = _module_for(name, read, device, drv.get_driver_version(), where)
    what = f"device {name!r} cannot be opened"
    try:
        return Cuda(f"cuda:{id}", _Queue(drv, device), read, module)
    except drv.LogicError as error:
        what = f"the driver does not compile the library of device {name!r}"
        do = "update the driver, or put these nodes on the host"
        raise IncompatibleError(what, where, _in_short(error), do) from error
    except drv.Error as error:
        raise IncompatibleError(what, where, _in_short(error), "see what uses the GPU") from error


def _driver(name: str, where: str) -> "tuple[Any, int]":
    """Return pycuda's driver, and how many devices there are."""
    try:
        drv: Any = importlib.import_module("pycuda.driver")
    except ImportError as error:
        what = f"device {name!r} needs pycuda"
        raise IncompatibleError(what, where, str(error), _INSTALL) from error
    try:
        drv.init()
        return drv, int(drv.Device.count())
    except drv.Error as error:
        what = f"device {name!r} needs a CUDA driver"
        raise IncompatibleError(what, where, _in_short(error), _INSTALL) from error


def _description(device: "Any") -> str:
    major, minor = device.compute_capability()
    return f"{device.name()}, sm_{major}{minor}"


def _module_for(
    name: str, library: CudaLibrary, device: "Any", driver: int, where: str
) -> CudaModule:
    """Return the module for the latest architecture that device and driver have."""
    major, minor = device.compute_capability()
    fits = [each for each in library.modules if each.architecture <= 10 * major + minor]
    if not fits:
        listed = ", ".join(f"sm_{each.architecture}" for each in library.modules)
        what, why = f"device {name!r} cannot run its library here", f"it is code for {listed}"
        do = f"compile for it: --device {name}=cuda,target=sm_{major}{minor}, if there is code for it"
        raise IncompatibleError(what, where, f"{why}; {device.name()} has sm_{major}{minor}", do)
    usable = [each for each in fits if each.driver <= driver]
    if not usable:
        oldest = min(fits, key=lambda each: each.driver)
        what = f"the CUDA driver is too old for the library of device {name!r}"
        why = f"PTX {oldest.ptx} needs a driver for CUDA {_version(oldest.driver)}"
        why += f", this one is for {_version(driver)}"
        raise IncompatibleError(what, where, why, "update the driver")
    return max(usable, key=lambda each: each.architecture)


def _version(number: int) -> str:
    """Return what ``cuDriverGetVersion`` counts, as people do."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _in_short(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "; ".join(lines[:3]) or type(error).__name__


class _Queue:
    """A context and a stream in it. It does not know the device, so that memory may keep it."""

    __slots__ = ("context", "drv", "stream")

    def __init__(self, drv: "Any", device: "Any") -> None:
        self.drv = drv
        self.context = device.retain_primary_context()
        with self.pushed():
            self.stream = drv.Stream()

    @contextmanager
    def pushed(self) -> "Generator[None]":
        """Make the context that of this thread."""
        self.context.push()
        try:
            yield
        finally:
            self.context.pop()

    def zeros(self, size_bytes: int) -> "Any":
        """Return an allocation of the driver."""
        made = self.drv.mem_alloc(size_bytes)
        self.drv.memset_d8_async(int(made), 0, size_bytes, self.stream)
        return made

    def release(self, handle: "Any") -> None:
        """Give an allocation back; the driver waits for what uses it."""
        try:
            with self.pushed():
                handle.free()
        except self.drv.Error:  # a lost device has given it back
            return


class Cuda(TableDevice):
    """One device, with streams of its own."""

    __slots__ = ("__weakref__", "_functions", "_library", "_module", "_queue", "_reads", "_report")

    def __init__(self, name: str, queue: _Queue, library: CudaLibrary, module: CudaModule) -> None:
        super().__init__(name, library.kernels, queue.release)
        self._library = library
        self._queue = queue
        self._functions: list[Any] = []
        with queue.pushed():
            self._reads = CudaReads(queue.drv)
            # Functions do not keep their module.
            self._module = queue.drv.module_from_buffer(module.text.encode() + b"\0")
            for kernel in library.kernels:
                formats = "P" * kernel.buffer_count + "q" * kernel.scalar_count + "PPqq"
                self._functions.append(self._module.get_function(kernel.name).prepare(formats))
        self._report = self.allocate(_REPORT_BYTES)

    def allocate(self, size_bytes: int) -> "Allocation":
        """Allocate, and fill with zeros."""
        self.require_open()
        allocated = allocation_bytes(size_bytes)
        with self._failing("allocate"):
            free, total = self._queue.drv.mem_get_info()
            why = f"{free} of {total} bytes are free"
            if size_bytes < 0 or allocated > free:
                raise self._no_memory(size_bytes, why)
            try:
                handle = self._queue.zeros(allocated)
            except self._queue.drv.MemoryError as error:
                raise self._no_memory(size_bytes, why) from error
        memory = DriverMemory(int(handle), allocated, handle)
        self._memories.keep(memory)
        return memory

    def write(self, address: int, source: int, size_bytes: int) -> None:
        """Copy from the host: the driver takes what is there now, and goes on by itself."""
        self._require("write", address, size_bytes)
        if size_bytes:
            with self._failing("write"):
                given = host_bytes(source, size_bytes)
                self._queue.drv.memcpy_htod_async(address, given, self._queue.stream)

    def read(self, target: int, address: int, size_bytes: int) -> None:
        """Copy to the host, when what was queued is done."""
        self._require("read", address, size_bytes)
        if size_bytes:
            with self._failing("read"):
                self._read(target, address, size_bytes)

    def begin_read(self, target: int, address: int, size_bytes: int) -> None:
        """Queue a copy to the host beside what is queued next: it waits for what was queued."""
        self._require("read", address, size_bytes)
        if not size_bytes:
            return
        with self._failing("read"):
            if not self._reads.begin(self._queue.stream, target, address, size_bytes):
                self._read(target, address, size_bytes)

    def end_read(self, target: int) -> "tuple[float, float] | None":
        """Wait for such a copy; nobody asked the driver when it ran."""
        self.require_open()
        with self._failing("read"):
            self._reads.end(target)
        return None

    def _read(self, target: int, address: int, size_bytes: int) -> None:
        place = host_bytes(target, size_bytes)
        self._queue.drv.memcpy_dtoh_async(place, address, self._queue.stream)
        self._queue.stream.synchronize()

    def move(self, target: int, source: int, size_bytes: int) -> None:
        """Queue a copy within the device; by way of other memory where the two overlap."""
        for address in (target, source):
            self._require("move", address, size_bytes)
        if not size_bytes or target == source:
            return
        drv, stream = self._queue.drv, self._queue.stream
        is_apart = abs(target - source) >= size_bytes
        between = None if is_apart else self.allocate(size_bytes)
        with self._failing("move"):
            if between is not None:
                drv.memcpy_dtod_async(between.address, source, size_bytes, stream)
                source = between.address
            drv.memcpy_dtod_async(target, source, size_bytes, stream)

    def _launch(
        self, kernel: int, places: "list[Place]", scalars: "Sequence[int]", extent: int, grain: int
    ) -> int:
        del grain  # a block has many units in any case
        threads = self._library.kernels[kernel].block_threads
        blocks, share = _blocks(extent, self._library.kernels[kernel].has_scratch, threads)
        *buffers, scratch = (memory.address + at for memory, at in places)
        arguments = (*buffers, *scalars, scratch, self._report.address, extent, share)
        with self._failing("launch"):
            self._functions[kernel].prepared_async_call(
                (blocks, 1, 1), (threads, 1, 1), self._queue.stream, *arguments
            )
            return self._code(kernel)

    def _code(self, kernel: int) -> int:
        """Return what the kernel reports."""
        if not self._library.kernels[kernel].reports:
            return 0
        code, address = ctypes.c_int32(), self._report.address
        self._read(ctypes.addressof(code), address, ctypes.sizeof(code))
        if code.value:
            self._queue.drv.memset_d8_async(address, 0, _REPORT_BYTES, self._queue.stream)
        return self._code_of(kernel, code.value)

    def wait(self) -> None:
        """Wait for the streams."""
        self.require_open()
        with self._failing("wait"):
            self._queue.stream.synchronize()
            self._reads.end_all()

    def close(self) -> None:
        """Refuse everything; wait for what was queued."""
        is_first = not self._ended
        super().close()
        if is_first:
            try:
                with self._queue.pushed():
                    self._queue.stream.synchronize()
                    self._reads.end_all()
            except self._queue.drv.Error:  # there is nobody left to tell
                return

    @contextmanager
    def _failing(self, what: str) -> "Generator[None]":
        """With the context of this thread; a driver that fails is lost."""
        try:
            with self._queue.pushed():
                yield
        except self._queue.drv.Error as error:
            self.lose(f"{what}: {_in_short(error)}")
            self.require_open()


def _blocks(extent: int, has_scratch: bool, block_threads: int) -> "tuple[int, int]":
    """Return how many blocks run, and how many units each eight threads."""
    per_block = block_threads // GROUP_THREADS
    most = GROUPS_MAX if has_scratch else _BLOCKS_MAX * per_block
    share = -(-extent // most)
    groups = -(-extent // share)
    return -(-groups // per_block), share
