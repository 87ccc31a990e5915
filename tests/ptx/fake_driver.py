"""``pycuda.driver`` as far as our device calls it, with GPUs that a program of Python stands for.

In: PTX, launches, copies. Out: what pycuda would give. Not done here: running threads (``grid``).

The names, arguments and errors are those of pycuda 2025.1. When a stream does what it is asked,
``streams`` knows.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from tests.ptx.grid import Grid
from tests.ptx.memory import Array, GlobalMemory
from tests.ptx.ptx_text import PtxError, PtxKernel, PtxModule, read_ptx
from tests.ptx.streams import AT_ONCE, Event, Stream
from tests.ptx.traffic import Traffic

PTX_OF_DRIVER = {10000: (6, 3), 11000: (7, 0), 11010: (7, 1), 11040: (7, 4), 11080: (7, 8)}


class Error(Exception):
    """``pycuda.driver.Error``."""


class LogicError(Error):
    """``pycuda.driver.LogicError``."""


class LaunchError(Error):
    """``pycuda.driver.LaunchError``."""


class MemoryError(Error):  # noqa: A001  # pycuda's name
    """``pycuda.driver.MemoryError``."""


class Machine:
    """``gpus``: the compute capability of each; ``driver_version`` as CUDA counts it. ``fails``:
    the call that fails, "" for none; ``calls``: how many there were of each; ``loaded``: every
    module; ``lanes``: see ``grid``; ``order``: see ``streams``; ``locked``: host memory with locked
    pages, of which there is at most ``locked_bytes_max``; ``traffic``: counts what launches read,
    if there is one."""

    def __init__(
        self,
        gpus: Sequence[tuple[int, int]] = ((7, 5), (9, 0)),
        driver_version: int = 12080,
        memory_bytes: int = 1 << 30,
        lanes: Sequence[int] = (),
        order: str = AT_ONCE,
    ) -> None:
        self.lanes = lanes
        self.gpus = tuple(gpus)
        self.driver_version = driver_version
        self.memories = [GlobalMemory(memory_bytes) for _ in gpus]
        self.fails = ""
        self.calls: dict[str, int] = {}
        self.contexts: list[Context] = []
        self.loaded: list[PtxModule] = []
        self.traffic: Traffic | None = None
        self.order = order
        self.streams: list[Stream] = []
        self.locked: list[Array] = []
        self.locked_bytes_max = memory_bytes

    def is_locked(self, data: Array) -> bool:
        """Whether host memory has pages that stay where they are."""
        return any(np.may_share_memory(data, each) for each in self.locked)

    def note(self, call: str) -> None:
        """Count a call, or fail it."""
        self.calls[call] = self.calls.get(call, 0) + 1
        if self.fails == call:
            raise LaunchError(f"{call} failed: an illegal memory access was encountered")

    def current(self) -> Context:
        """The context that is active on this thread."""
        if not self.contexts:
            raise LogicError("invalid device context: no currently active context?")
        return self.contexts[-1]


class Context:
    """``pycuda.driver.Context``."""

    def __init__(self, machine: Machine, index: int) -> None:
        self._machine = machine
        self.memory = machine.memories[index]
        self.capability = machine.gpus[index]

    def push(self) -> None:
        """Make it the current one."""
        self._machine.note("push")
        self._machine.contexts.append(self)

    def pop(self) -> None:
        """Make the one before the current one again; ``Context.pop()`` in pycuda is static."""
        self._machine.contexts.pop()


class Device:
    """``pycuda.driver.Device``."""

    def __init__(self, machine: Machine, index: int) -> None:
        if not 0 <= index < len(machine.gpus):
            raise LogicError("cuDeviceGet failed: invalid device ordinal")
        self._machine = machine
        self._index = index

    def name(self) -> str:
        """What it calls itself."""
        return f"PTX interpreter {self._index}"

    def compute_capability(self) -> tuple[int, int]:
        """Its architecture."""
        return self._machine.gpus[self._index]

    def total_memory(self) -> int:
        """In bytes."""
        return self._machine.memories[self._index].size_bytes

    def retain_primary_context(self) -> Context:
        """A context, which is not current yet."""
        return Context(self._machine, self._index)


class DeviceAllocation:
    """``pycuda.driver.DeviceAllocation``."""

    def __init__(self, machine: Machine, memory: GlobalMemory, address: int) -> None:
        self._machine = machine
        self._memory = memory
        self._address = address

    def __int__(self) -> int:
        return self._address

    def free(self) -> None:
        """Give it back, once, when all that was asked is done."""
        for stream in self._machine.streams:
            stream.catch_up()
        self._memory.free(self._address)


class Function:
    """``pycuda.driver.Function``."""

    def __init__(self, machine: Machine, kernel: PtxKernel, tables: dict[str, int]) -> None:
        self._machine = machine
        self._kernel = kernel
        self._tables = tables
        self._formats = ""

    def prepare(self, formats: str) -> Function:
        """Say what the arguments are: ``P`` an address, ``q`` an i64."""
        assert set(formats) <= {"P", "q"}, formats
        self._formats = formats
        return self

    def prepared_async_call(
        self, grid: tuple[int, ...], block: tuple[int, ...], stream: Stream, *arguments: int
    ) -> None:
        """Launch it."""
        self._machine.note("launch")
        assert len(arguments) == len(self._formats), "arguments as they were prepared"
        if len(arguments) != len(self._kernel.parameters):
            raise LogicError("cuLaunchKernel failed: invalid value")
        assert grid[1:] == block[1:] == (1, 1), "blocks in a row"
        memory = self._machine.current().memory
        lanes, traffic = self._machine.lanes, self._machine.traffic

        def run() -> None:
            shape = (grid[0], block[0])
            try:
                Grid(self._kernel, self._tables, memory, shape, arguments, lanes, traffic).run()
            except PtxError as error:
                raise LaunchError(f"cuLaunchKernel failed: {error}") from error

        stream.ask(run)


class Module:
    """``pycuda.driver.Module``."""

    def __init__(self, machine: Machine, content: bytes) -> None:
        try:
            self._read = read_ptx(content.rstrip(b"\0").decode())
        except PtxError as error:
            raise LogicError(
                f"cuModuleLoadDataEx failed: a PTX JIT compilation failed - {error}"
            ) from error
        known = max(ptx for least, ptx in PTX_OF_DRIVER.items() if least <= machine.driver_version)
        context = machine.current()
        major, minor = context.capability
        if self._read.version > known or int(self._read.target[3:]) > 10 * major + minor:
            raise LogicError("cuModuleLoadDataEx failed: unsupported PTX, or of another GPU")
        self._machine = machine
        machine.loaded.append(self._read)
        self._memory = context.memory
        self._tables = {
            name: _put(context.memory, data) for name, data in self._read.tables.items()
        }

    def __del__(self) -> None:
        """Unload it: its tables go back."""
        for address in getattr(self, "_tables", {}).values():
            self._memory.free(address)

    def get_function(self, name: str) -> Function:
        """One kernel."""
        if name not in self._read.kernels:
            raise LogicError("cuModuleGetFunction failed: named symbol not found")
        return Function(self._machine, self._read.kernels[name], self._tables)


def _put(memory: GlobalMemory, data: bytes) -> int:
    address = memory.allocate(len(data))
    memory.bytes_at(address, len(data))[:] = np.frombuffer(data, np.uint8)
    return address


def _fill(memory: GlobalMemory, target: int, count: int, value: int) -> None:
    memory.bytes_at(target, count)[:] = value


def _write(memory: GlobalMemory, target: int, data: Array) -> None:
    memory.bytes_at(target, data.size)[:] = data


def _read(memory: GlobalMemory, data: Array, source: int) -> None:
    data[:] = memory.bytes_at(source, data.size)


def _copy(memory: GlobalMemory, target: int, source: int, size: int) -> None:
    memory.bytes_at(target, size)[:] = memory.bytes_at(source, size)


def driver_module(machine: Machine) -> Any:
    """``pycuda.driver`` of a machine."""
    made: Any = types.ModuleType("pycuda.driver")
    made.Error, made.LogicError, made.LaunchError, made.MemoryError = (
        Error, LogicError, LaunchError, MemoryError,
    )  # fmt: skip

    def init() -> None:
        if not machine.gpus:
            raise Error("cuInit failed: no CUDA-capable device is detected")

    def device(index: int) -> Device:
        return Device(machine, index)

    device.count = lambda: len(machine.gpus)  # type: ignore[attr-defined]

    def mem_alloc(size_bytes: int) -> DeviceAllocation:
        machine.note("mem_alloc")
        address = machine.current().memory.allocate(size_bytes)
        if not address:
            raise MemoryError("cuMemAlloc failed: out of memory")
        return DeviceAllocation(machine, machine.current().memory, address)

    def mem_get_info() -> tuple[int, int]:
        memory = machine.current().memory
        return memory.size_bytes - memory.used_bytes, memory.size_bytes

    def memset_d8_async(target: int, value: int, count: int, stream: Stream) -> None:
        machine.note("memset")
        stream.ask(partial(_fill, machine.current().memory, int(target), count, value))

    def memcpy_htod_async(target: int, source: Any, stream: Stream) -> None:
        machine.note("memcpy_htod")
        data = np.frombuffer(source, np.uint8)
        given = data if machine.is_locked(data) else data.copy()
        stream.ask(partial(_write, machine.current().memory, int(target), given))

    def memcpy_dtoh_async(target: Any, source: int, stream: Stream) -> None:
        machine.note("memcpy_dtoh")
        data = np.frombuffer(target, np.uint8)
        stream.ask(partial(_read, machine.current().memory, data, int(source)))
        if not machine.is_locked(data):
            stream.catch_up()

    def memcpy_dtod_async(target: int, source: int, size: int, stream: Stream) -> None:
        machine.note("memcpy_dtod")
        assert abs(target - source) >= size, "copies of CUDA must not overlap"
        stream.ask(partial(_copy, machine.current().memory, target, source, size))

    def pagelocked_empty(shape: int, dtype: str) -> Array:
        machine.note("pagelocked_empty")
        if machine.locked_bytes_max < sum(each.nbytes for each in machine.locked) + shape:
            raise MemoryError("cuMemHostAlloc failed: out of memory")
        made = np.full(shape, 0xAB, dtype)
        machine.locked.append(made)
        return made

    made.init, made.Device, made.mem_alloc, made.mem_get_info = (
        init,
        device,
        mem_alloc,
        mem_get_info,
    )
    made.memset_d8_async, made.memcpy_htod_async = memset_d8_async, memcpy_htod_async
    made.memcpy_dtoh_async, made.memcpy_dtod_async = memcpy_dtoh_async, memcpy_dtod_async
    made.Stream = partial(Stream, machine)
    made.Event = partial(Event, machine)
    made.event_flags = types.SimpleNamespace(DISABLE_TIMING=2)
    made.pagelocked_empty = pagelocked_empty
    made.get_driver_version = lambda: machine.driver_version
    made.module_from_buffer = partial(Module, machine)
    return made


@contextmanager
def installed(machine: Machine | None = None) -> Generator[Machine]:
    """Let ``import pycuda.driver`` find the machine."""
    chosen = machine or Machine()
    package = types.ModuleType("pycuda")
    driver = driver_module(chosen)
    package.driver = driver  # type: ignore[attr-defined]
    before = {name: sys.modules.get(name) for name in ("pycuda", "pycuda.driver")}
    sys.modules.update({"pycuda": package, "pycuda.driver": driver})
    try:
        yield chosen
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module
