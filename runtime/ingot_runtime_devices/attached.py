"""The devices beside the host that a bundle runs on: opened, with their weights, called.

In: a plan, what each device may be bound to. Out: ``Attached``. Not done here: which device is bound
(``ingot_runtime.loader.bind_devices``, ``open_device``), what a device does (``device``), pools (``ingot_runtime.executor.session``).

Counts are per virtual device, by the plan's names. Loading weights is not counted.
"""

import ctypes

from ingot_runtime.errors import DeviceError
from ingot_runtime.format import abi
from ingot_runtime.format import header as head
from ingot_runtime.format.plan import DEVICE_KINDS, BundlePlan
from ingot_runtime.format.source import Source, changed
from ingot_runtime.loader.block import Block
from ingot_runtime.loader.image import Image
from ingot_runtime.loader.pool import ThreadPool
from ingot_runtime.loader.watch import Watch
from ingot_runtime.loader.weights import Verifier, map_weights, whole_mibs

from .callbacks import State, make_native
from .device import Device
from .open_device import open_device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .bind_device import Candidate
    from .device import Allocation


class DeviceCounts:
    """What a session has asked of its devices since it was loaded, by virtual device; ``copies``:
    (from, to) -> (copies, bytes)."""

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


class Attached:
    """All devices of a session. Index i is that of the plan; the host has none here."""

    __slots__ = ("_native", "_rows", "_state", "_weights")

    def __init__(
        self,
        source: Source,
        plan: BundlePlan,
        bound: "tuple[tuple[Candidate, ...], ...]",
        features: frozenset[str],
        watch: int,
    ) -> None:
        """Open the devices with their libraries, each the first of its candidates that is here;
        ``BundleError`` where none runs here. A host has no candidates."""
        devices: list[Device | None] = []
        taken: "list[Candidate | None]" = []
        for index, candidates in enumerate(bound):
            device, candidate = None, None
            if candidates:
                device, candidate = open_device(source, plan, index, candidates, features)
            devices.append(device)
            taken.append(candidate)
        self._state = State(tuple(device.name for device in plan.devices), tuple(devices), watch)
        self._weights: dict[int, Allocation] = {}
        self._native = make_native(self._state)
        # `cast` would make a cycle.
        places = (ctypes.c_uint64.from_buffer(native).value for native in self._native)
        addresses = dict(zip(("launch", "copy"), places, strict=True))
        self._rows = [
            {"kind": DEVICE_KINDS.index(it.kind), "id": it.id, "self": index, **addresses}
            if it is not None
            else {}
            for index, it in enumerate(taken)
        ]

    @property
    def devices(self) -> "tuple[Device | None, ...]":
        """The devices by the plan's index, None for a host."""
        return self._state.devices

    def names(self) -> "list[str]":
        """Return each device as kind and id, by the plan's index."""
        return ["host:0" if device is None else device.name for device in self.devices]

    @property
    def failure(self) -> "list[BaseException]":
        """What callbacks raised in the present call."""
        return self._state.failure

    def row(self, index: int) -> "dict[str, int]":
        """Return the fields of ``abi.DEVICE`` for `main`; those that are 0 may be missing."""
        weights = self._weights.get(index)  # a host has none here
        return {**self._rows[index], "weights": weights.address if weights else 0}

    def load_weights(
        self, source: Source, image: Image, threads: ThreadPool, watch: Watch, verify: str
    ) -> None:
        """Verify the weights of each device and copy them there; the mapping is dropped.
        ``BundleError`` where they are damaged, or the device does not take them."""
        for index, device in enumerate(self._state.devices):
            if device is None:
                continue
            weights = map_weights(source, image, index)
            if weights is None:  # constants of no bytes have an address all the same
                self._weights[index] = self._weights.get(index) or device.allocate(0)
                continue
            tree, mibs = source.section(head.TREE, index), whole_mibs(((0, weights.size_bytes),))
            Verifier(image, threads, watch, tree, mibs, source.name, index).verify(weights, verify)
            allocation = self._weights.get(index) or device.allocate(weights.size_bytes)
            device.write(allocation.address, weights.address, weights.size_bytes)
            self._weights[index] = allocation
            if not weights.is_whole:
                raise changed(source.name, "some of its pages could not be read")

    def allocate(self, index: int, size_bytes: int) -> "Block | DevicePool":
        """Return memory of device `index`."""
        device = self._state.devices[index]
        if device is None:
            return Block(size_bytes)
        return DevicePool(device.allocate(size_bytes), size_bytes)

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

    def measure(self) -> None:
        """Have devices that queue operations note when these run."""
        for device in filter(None, self.devices):
            device.measure()

    def last_times(self, index: int) -> "Callable[[], tuple[float, float]] | None":
        """See ``Device.last_times``."""
        device = self.devices[index]
        return None if device is None else device.last_times()

    def copy(
        self, target: int, source: int, to: int, from_: int, size_bytes: int
    ) -> "tuple[float, float] | None":
        """Copy from device `source` to device `target`; either may be a host. See
        ``State.copy``."""
        return self._state.copy(target, source, to, from_, size_bytes)

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
        rows = zip(state.names, state.devices, state.launches, strict=True)
        launches = {name: count for name, device, count in rows if device}
        return DeviceCounts(launches, dict(state.copies))

    def settle(self, rc: int) -> int:
        """Wait for all devices, which may be at work on arrays of the user's; return what a call of
        `main` came to, with what its callbacks could not tell it."""
        state = self._state
        for device in filter(None, state.devices):
            try:
                device.wait()
            except DeviceError as error:
                state.failure.append(error)
        if not state.is_whole(0):
            # An asynchronous exception was raised before a callback could keep it, and the
            # interpreter has printed it.
            state.finished = state.begun()
            state.failure.append(KeyboardInterrupt())
        cancelled, state.cancelled = state.cancelled, False
        if cancelled and rc == abi.RC_DEVICE and not state.failure:
            return abi.RC_CANCELLED
        return rc or (abi.RC_DEVICE if state.failure else abi.RC_OK)

    def close(self) -> None:
        """Close all devices; may be called again."""
        for device in filter(None, self._state.devices):
            device.close()
        self._weights.clear()
