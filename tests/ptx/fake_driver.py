"""``pycuda.driver`` as far as our device calls it, with GPUs that a program of Python stands for.

In: PTX, launches, copies. Out: what pycuda would give. Not done here: running threads (``grid``).

The names, arguments and errors are those of pycuda 2025.1. What a stream is asked is done at once.
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
from tests.ptx.memory import GlobalMemory
from tests.ptx.ptx_text import PtxError, PtxKernel, PtxModule, read_ptx
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
    """``gpus``: the compute capability of each; ``driver_version`` as CUDA counts it. ``fails``: the
    call that fails, "" for none; ``calls``: how many there were of each; ``loaded``: every module;
    ``lanes``: see ``grid``; ``traffic``: counts what launches read, if there is one."""

    def __init__(
        self,
        gpus: Sequence[tuple[int, int]] = ((7, 5), (9, 0)),
        driver_version: int = 12080,
        memory_bytes: int = 1 << 30,
        lanes: Sequence[int] = (),
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

    def __init__(self, memory: GlobalMemory, address: int) -> None:
        self._memory = memory
        self._address = address

    def __int__(self) -> int:
        return self._address

    def free(self) -> None:
        """Give it back; once."""
        self._memory.free(self._address)


class Stream:
    """``pycuda.driver.Stream``."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def synchronize(self) -> None:
        """Wait for all that was asked of it."""
        self._machine.note("synchronize")


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
        del stream
        self._machine.note("launch")
        assert len(arguments) == len(self._formats), "arguments as they were prepared"
        if len(arguments) != len(self._kernel.parameters):
            raise LogicError("cuLaunchKernel failed: invalid value")
        assert grid[1:] == block[1:] == (1, 1), "blocks in a row"
        memory = self._machine.current().memory
        shape = (grid[0], block[0])
        try:
            lanes, traffic = self._machine.lanes, self._machine.traffic
            Grid(self._kernel, self._tables, memory, shape, arguments, lanes, traffic).run()
        except PtxError as error:
            raise LaunchError(f"cuLaunchKernel failed: {error}") from error


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
        return DeviceAllocation(machine.current().memory, address)

    def mem_get_info() -> tuple[int, int]:
        memory = machine.current().memory
        return memory.size_bytes - memory.used_bytes, memory.size_bytes

    def memset_d8_async(target: int, value: int, count: int, stream: Stream) -> None:
        machine.note("memset")
        del stream
        machine.current().memory.bytes_at(int(target), count)[:] = value

    def memcpy_htod_async(target: int, source: Any, stream: Stream) -> None:
        machine.note("memcpy_htod")
        del stream
        data = np.frombuffer(source, np.uint8)
        machine.current().memory.bytes_at(int(target), data.size)[:] = data

    def memcpy_dtoh_async(target: Any, source: int, stream: Stream) -> None:
        machine.note("memcpy_dtoh")
        del stream
        data = np.frombuffer(target, np.uint8)
        data[:] = machine.current().memory.bytes_at(int(source), data.size)

    def memcpy_dtod_async(target: int, source: int, size: int, stream: Stream) -> None:
        machine.note("memcpy_dtod")
        del stream
        assert abs(target - source) >= size, "copies of CUDA must not overlap"
        memory = machine.current().memory
        memory.bytes_at(target, size)[:] = memory.bytes_at(source, size)

    made.init, made.Device, made.mem_alloc, made.mem_get_info = (
        init,
        device,
        mem_alloc,
        mem_get_info,
    )
    made.memset_d8_async, made.memcpy_htod_async = memset_d8_async, memcpy_htod_async
    made.memcpy_dtoh_async, made.memcpy_dtod_async = memcpy_dtoh_async, memcpy_dtod_async
    made.Stream = lambda: Stream(machine)
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
