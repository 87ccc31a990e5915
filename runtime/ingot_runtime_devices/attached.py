"""The devices beside the host that a bundle runs on: opened, with their weights, called by `main`
and by the vm.

In: a plan, the bound kinds and ids, checked library sections. Out: ``Attached``. Not done here:
which device is bound (``ingot_runtime.loader.bind_devices``), what a device does (``device``),
pools (``ingot_runtime.executor.session``).

Counts are per virtual device, by the plan's names. Loading weights is not counted.
"""

import ctypes
import weakref

from ingot_runtime.errors import DeviceError, ResourceError
from ingot_runtime.format import abi
from ingot_runtime.format import header as head
from ingot_runtime.format.limits import MIB
from ingot_runtime.format.plan import DEVICE_KINDS, BundlePlan
from ingot_runtime.format.source import Source, changed
from ingot_runtime.loader.block import Block
from ingot_runtime.loader.image import Image
from ingot_runtime.loader.pool import ThreadPool
from ingot_runtime.loader.watch import Watch
from ingot_runtime.loader.weights import Verifier, map_weights

from .device import Device
from .registry import OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .device import Allocation

    _lru_cache_wrapper: Any
else:
    from _functools import _lru_cache_wrapper

_DEVICE = ctypes.CFUNCTYPE
_LAUNCH = _DEVICE(
    ctypes.c_int32, ctypes.c_uint64, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)
_COPY = _DEVICE(
    ctypes.c_int32, ctypes.c_uint64, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64
)  # fmt: skip
_BOUNCE_SIZE_BYTES = 1 << 20


class DeviceCounts:
    """What a session has asked of its devices since it was loaded.

    ``launches``: virtual device -> launches; ``copies``: (from, to) -> (copies, bytes), both by
    virtual device.
    """

    __slots__ = ("copies", "launches")

    def __init__(
        self, launches: "dict[str, int]", copies: "dict[tuple[str, str], tuple[int, int]]"
    ) -> None:
        self.launches = launches
        self.copies = copies


class DevicePool:
    """Memory on a device that lives with its last reference: ``address``, ``size_bytes``."""

    __slots__ = ("_allocation", "address", "size_bytes")

    def __init__(self, allocation: "Allocation", size_bytes: int) -> None:
        self._allocation = allocation
        self.address = allocation.address
        self.size_bytes = size_bytes


class _State:
    """What callbacks reach. It does not know them: no cycle keeps a device open."""

    __slots__ = (
        "cancelled",
        "copies",
        "devices",
        "failure",
        "finished",
        "launches",
        "names",
        "watch",
        "wrappers",
    )

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

    def device(self, index: int) -> Device:
        device = self.devices[index]
        if device is None:
            raise DeviceError("the host is not called as a device", self.names[index])
        return device

    def launch(
        self,
        index: int,
        kernel: int,
        buffers: "list[int]",
        scalars: "list[int]",
        extent: int,
        grain: int,
    ) -> int:
        device = self.device(index)
        self.launches[index] += 1
        return device.launch(kernel, buffers, scalars, extent, grain, self.watch)

    def copy(self, target: int, source: int, to: int, from_: int, size_bytes: int) -> None:
        here, there = self.devices[source], self.devices[target]
        if size_bytes < 0:
            raise DeviceError(
                "a copy of less than nothing", self.names[target], f"{size_bytes} bytes"
            )
        edge = (self.names[source], self.names[target])
        count, total = self.copies.get(edge, (0, 0))
        self.copies[edge] = (count + 1, total + size_bytes)
        if here is None and there is None:
            ctypes.memmove(to, from_, size_bytes)
        elif here is None and there is not None:
            there.write(to, from_, size_bytes)
        elif there is None and here is not None:
            here.read(to, from_, size_bytes)
        elif here is there and here is not None:
            here.move(to, from_, size_bytes)
        elif here is not None and there is not None:
            _between(there, here, to, from_, size_bytes)

    def is_whole(self, running: int) -> bool:
        """Whether every callback that began has ended, but for as many as are running now."""
        return sum(_count(wrapper) for wrapper in self.wrappers) == self.finished + running


def _between(there: Device, here: Device, to: int, from_: int, size_bytes: int) -> None:
    """Copy from one device to another, by way of the host."""
    block = Block(min(size_bytes, _BOUNCE_SIZE_BYTES))
    for at in range(0, size_bytes, _BOUNCE_SIZE_BYTES):
        part = min(size_bytes - at, _BOUNCE_SIZE_BYTES)
        here.read(block.address, from_ + at, part)
        there.write(to + at, block.address, part)


class Attached:
    """All devices of a session. Index i is that of the plan; the host has none here."""

    __slots__ = ("_native", "_rows", "_state", "_weights")

    def __init__(
        self,
        source: Source,
        plan: BundlePlan,
        bound: tuple[tuple[str, int], ...],
        features: frozenset[str],
        watch: int,
    ) -> None:
        """Open the devices with their libraries.

        Raises:
            BundleError: a library is damaged, or does not run here.
        """
        devices: list[Device | None] = []
        for device, (kind, id_) in zip(plan.devices, bound, strict=True):
            if kind == "host":
                devices.append(None)
                continue
            library, where = plan.libraries[device.library], f"section library {device.library}"
            code = source.section(head.LIBRARY, device.library)
            devices.append(OPEN[kind](device.name, id_, library, code, where, features))
        self._state = _State(tuple(device.name for device in plan.devices), tuple(devices), watch)
        self._weights: dict[int, Allocation] = {}
        self._native: list[Any] = []
        addresses = dict(zip(("launch", "copy"), self._make_native(), strict=True))
        self._rows = [
            {"kind": DEVICE_KINDS.index(kind), "id": id_, "self": index, **addresses}
            if kind != "host"
            else {}
            for index, (kind, id_) in enumerate(bound)
        ]

    def _make_native(self) -> list[int]:
        """Return the addresses of launch and copy.

        Raises:
            ResourceError: this process may not make callbacks.
        """
        state = self._state
        try:
            for kind, function in ((_LAUNCH, _launching(state)), (_COPY, _copying(state))):
                # The wrapper is C code that counts the call before any Python code runs: an
                # exception of a signal handler, which may come before the first line of `function`,
                # is then seen to be missing.
                wrapper = _lru_cache_wrapper(function, 0, False, _only_misses)
                state.wrappers.append(weakref.ref(wrapper))
                self._native.append(kind(wrapper))
        except (MemoryError, OSError) as error:
            why = f"{error}: a security policy forbids pages that are writable and executable"
            raise ResourceError("this process may not make callbacks", "ctypes", why) from error
        return [
            ctypes.c_uint64.from_buffer(native).value for native in self._native
        ]  # `cast` would make a cycle

    @property
    def devices(self) -> "tuple[Device | None, ...]":
        """The devices by the plan's index, None for a host."""
        return self._state.devices

    @property
    def failure(self) -> "list[BaseException]":
        """What callbacks raised in the present call."""
        return self._state.failure

    def row(self, index: int) -> "dict[str, int]":
        """Return the fields of ``abi.DEVICE`` for `main`; those that are 0 may be missing."""
        weights = self._weights.get(index)
        return {**self._rows[index], "weights": weights.address if weights else 0}

    def load_weights(
        self, source: Source, image: Image, threads: ThreadPool, watch: Watch, verify: str
    ) -> None:
        """Verify the weights of each device and copy them there; the mapping is dropped.

        Raises:
            BundleError: they are damaged, or the device does not take them.
        """
        for index, device in enumerate(self._state.devices):
            weights = map_weights(source, image, index) if device is not None else None
            if device is None or weights is None:
                continue
            tree, mibs = source.section(head.TREE, index), [(0, weights.size_bytes // MIB)]
            Verifier(image, threads, watch, tree, mibs, source.name, index).verify(weights, verify)
            allocation = self._weights.get(index) or device.allocate(weights.size_bytes)
            device.write(allocation.address, weights.address, weights.size_bytes)
            self._weights[index] = allocation
            if not weights.is_whole:
                raise changed(source.name, "some of its pages could not be read")

    def allocate(self, index: int, size_bytes: int) -> "Block | DevicePool":
        """Return memory of device `index`."""
        device = self._state.devices[index]
        return (
            Block(size_bytes)
            if device is None
            else DevicePool(device.allocate(size_bytes), size_bytes)
        )

    def launch(
        self,
        index: int,
        kernel: int,
        buffers: "list[int]",
        scalars: "list[int]",
        extent: int,
        grain: int,
    ) -> int:
        """Run a kernel; see ``Device.launch``."""
        return self._state.launch(index, kernel, buffers, scalars, extent, grain)

    def copy(self, target: int, source: int, to: int, from_: int, size_bytes: int) -> None:
        """Copy from device `source` to device `target`; either may be a host."""
        self._state.copy(target, source, to, from_, size_bytes)

    def read(self, index: int, to: int, from_: int, size_bytes: int) -> None:
        """Copy from device `index` to the host; it is not counted."""
        device = self._state.devices[index]
        if device is None:
            ctypes.memmove(to, from_, size_bytes)
        else:
            device.read(to, from_, size_bytes)

    def counts(self) -> DeviceCounts:
        """Return what was asked so far."""
        state = self._state
        launches = zip(state.names, state.devices, state.launches, strict=True)
        return DeviceCounts(
            {name: count for name, device, count in launches if device}, dict(state.copies)
        )

    def settle(self, rc: int) -> int:
        """Wait for all devices; return what a call of `main` came to: what its callbacks could not
        tell it is told here.

        Until then a device may be at work on what the call was given: arrays of the user's, pools.
        """
        state = self._state
        for device in state.devices:
            if device is not None:
                try:
                    device.wait()
                except DeviceError as error:
                    state.failure.append(error)
        if not state.is_whole(0):
            # An asynchronous exception was raised before a callback could keep it, and the
            # interpreter has printed it.
            state.finished = sum(_count(wrapper) for wrapper in state.wrappers)
            state.failure.append(KeyboardInterrupt())
        cancelled, state.cancelled = state.cancelled, False
        if cancelled and rc == abi.RC_DEVICE and not state.failure:
            return abi.RC_CANCELLED
        return rc or (abi.RC_DEVICE if state.failure else abi.RC_OK)

    def close(self) -> None:
        """Close all devices; may be called again."""
        for device in self._state.devices:
            if device is not None:
                device.close()
        self._weights.clear()


def _launching(state: _State) -> "Any":
    def launch(
        index: int, kernel: int, arguments: int, buffer_count: int, scalar_count: int
    ) -> int:
        code = abi.RC_DEVICE
        try:
            if state.is_whole(1):
                buffers = (ctypes.c_uint64 * buffer_count).from_address(arguments)
                rest = (ctypes.c_int64 * (scalar_count + 2)).from_address(
                    arguments + 8 * buffer_count
                )
                *scalars, extent, grain = rest
                code = state.launch(index, kernel, list(buffers), scalars, extent, grain)
                if code == abi.RC_CANCELLED:
                    state.cancelled, code = True, abi.RC_DEVICE
                state.finished += 1
        except (
            BaseException
        ) as error:  # an exception must not cross native code; it is raised later
            state.failure.append(error)
            state.finished += 1
            code = abi.RC_DEVICE
        return code

    return launch


def _copying(state: _State) -> "Any":
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
