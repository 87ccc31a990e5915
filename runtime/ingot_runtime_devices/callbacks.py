"""What `main` calls of the devices beside the host, and what these calls leave behind.

In: open devices. Out: ``State``, the addresses of two native functions. Not done here: opening
devices, their memory (``attached``).
"""

import ctypes
import weakref

from ingot_runtime.errors import DeviceError, ResourceError
from ingot_runtime.format import abi
from ingot_runtime.loader.block import Block

from .device import Device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    _lru_cache_wrapper: Any
else:
    from _functools import _lru_cache_wrapper

_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_uint64, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)
_COPY = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_uint64, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint64,
    ctypes.c_uint64, ctypes.c_int64,
)  # fmt: skip
_BOUNCE_SIZE_BYTES = 1 << 20
_PARTS = abi.COPY_BEGINS | abi.COPY_ENDS


class State:
    """What callbacks reach. It does not know them: no cycle keeps a device open.

    ``launches`` by the plan's index; ``copies``: (from, to) -> (copies, bytes), by virtual device;
    ``failure``: what callbacks raised in the present call; ``finished``: how many have ended.
    """

    __slots__ = (
        "cancelled", "copies", "devices", "failure", "finished", "launches", "names", "watch",
        "wrappers",
    )  # fmt: skip

    def __init__(
        self, names: tuple[str, ...], devices: "tuple[Device | None, ...]", watch: int
    ) -> None:
        self.names = names
        self.devices = devices
        self.watch = watch
        self.launches = [0] * len(names)
        self.copies: dict[tuple[str, str], tuple[int, int]] = {}
        self.failure: list[BaseException] = []
        self.cancelled = False
        self.finished = 0
        self.wrappers: list[weakref.ref[Any]] = []

    def launch(
        self,
        index: int,
        kernel: int,
        buffers: "list[int]",
        scalars: "list[int]",
        extent: int,
        grain: int,
    ) -> int:
        """Run a kernel of device `index`; see ``Device.launch``."""
        device = self.devices[index]
        if device is None:
            raise DeviceError("the host is not called as a device", self.names[index])
        self.launches[index] += 1
        return device.launch(kernel, buffers, scalars, extent, grain, self.watch)

    def copy(
        self, target: int, source: int, to: int, from_: int, size_bytes: int
    ) -> "tuple[float, float] | None":
        """Copy from device `source` to device `target`; either may be a host. A bit of the size
        (``abi``) says that a copy from or to a host begins or ends; see ``Device.end_read``."""
        here, there = self.devices[source], self.devices[target]
        part = size_bytes & _PARTS if size_bytes > 0 and not (here and there) else 0
        size_bytes -= part
        if part == abi.COPY_ENDS:
            return there.end_write(to) if there else here.end_read(to) if here else None
        if size_bytes < 0:
            why = f"{size_bytes} bytes"
            raise DeviceError("a copy of less than nothing", self.names[target], why)
        edge = (self.names[source], self.names[target])
        count, total = self.copies.get(edge, (0, 0))
        self.copies[edge] = (count + 1, total + size_bytes)
        if here is None:
            if there is None:
                ctypes.memmove(to, from_, size_bytes)
            else:
                (there.begin_write if part else there.write)(to, from_, size_bytes)
        elif there is None:
            (here.begin_read if part else here.read)(to, from_, size_bytes)
        elif here is there:
            here.move(to, from_, size_bytes)
        else:
            _between(there, here, to, from_, size_bytes)
        return None

    def is_whole(self, running: int) -> bool:
        """Whether every callback that began has ended, but for as many as are running now."""
        return self.begun() == self.finished + running

    def begun(self) -> int:
        """Return how many callbacks have begun."""
        return sum(_count(wrapper) for wrapper in self.wrappers)


def _between(there: Device, here: Device, to: int, from_: int, size_bytes: int) -> None:
    """Copy from one device to another, by way of the host."""
    block = Block(min(size_bytes, _BOUNCE_SIZE_BYTES))
    for at in range(0, size_bytes, _BOUNCE_SIZE_BYTES):
        part = min(size_bytes - at, _BOUNCE_SIZE_BYTES)
        here.read(block.address, from_ + at, part)
        there.write(to + at, block.address, part)


def make_native(state: State) -> "list[Any]":
    """Return launch and copy of ``abi.DEVICE`` as ctypes functions, or raise ``ResourceError``."""
    made: list[Any] = []
    try:
        for kind, function in ((_LAUNCH, _launching(state)), (_COPY, _copying(state))):
            # The wrapper is C code that counts the call before any Python code runs: an exception
            # of a signal handler, which may come before the first line of `function`, is then seen
            # to be missing.
            wrapper = _lru_cache_wrapper(function, 0, False, _only_misses)
            state.wrappers.append(weakref.ref(wrapper))
            made.append(kind(wrapper))
    except (MemoryError, OSError) as error:
        why = f"{error}: a security policy forbids pages that are writable and executable"
        raise ResourceError("this process may not make callbacks", "ctypes", why) from error
    return made


def _launching(state: State) -> "Any":
    def launch(index: int, kernel: int, arguments: int, n_buffers: int, n_scalars: int) -> int:
        code = abi.RC_DEVICE
        try:
            if state.is_whole(1):
                rest = arguments + 8 * n_buffers
                buffers = (ctypes.c_uint64 * n_buffers).from_address(arguments)
                *scalars, extent, grain = (ctypes.c_int64 * (n_scalars + 2)).from_address(rest)
                code = state.launch(index, kernel, list(buffers), scalars, extent, grain)
                if code == abi.RC_CANCELLED:
                    state.cancelled, code = True, abi.RC_DEVICE
                state.finished += 1
        except BaseException as error:  # must not cross native code; it is raised later
            state.failure.append(error)
            state.finished += 1
            code = abi.RC_DEVICE
        return code

    return launch


def _copying(state: State) -> "Any":
    def copy(_self: int, target: int, source: int, to: int, from_: int, size_bytes: int) -> int:
        try:
            if state.is_whole(1):
                state.copy(target, source, to, from_, size_bytes)
                state.finished += 1
                return abi.RC_OK
        except BaseException as error:  # as above
            state.failure.append(error)
            state.finished += 1
        return abi.RC_DEVICE

    return copy


def _only_misses(*counts: int) -> int:
    return counts[1]  # hits, misses, size, largest size


def _count(wrapper: "weakref.ref[Any]") -> int:
    """Return how many calls have begun."""
    found = wrapper()
    return found.cache_info() if found is not None else 0
