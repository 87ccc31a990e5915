"""What every kind of device must do, however it does it.

In: nothing. Out: ``Device`` and ``Allocation``, the contract. Not done here: any kind (one file
each), virtual devices (``attached``).

A kind is a subclass in a file of its own and a line in ``registry``;
``tests/conformance/test_devices.py`` holds each to the contract: what is asked is checked before it
is done, nothing outside the device's own memory is touched, operations are done in the order in
which they were asked, or look so, and a device that failed refuses everything from then on.
"""

from ingot_runtime.errors import DeviceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    class Allocation(Protocol):
        """Zeroed memory of a device from ``address`` on, a multiple of 64; it goes back with the
        last reference."""

        @property
        def address(self) -> int: ...

        @property
        def size_bytes(self) -> int: ...


ALIGNMENT_BYTES = 64  # of allocations, and of scratch


class Device:
    """An open device with the kernels of one library. ``name`` is ``kind:id``. Addresses are the
    device's own.

    All methods but `close` raise ``DeviceError`` where the device is closed or lost, an address is
    not in its memory, or it fails.
    """

    __slots__ = ("_ended", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._ended = ""

    def allocate(self, size_bytes: int) -> "Allocation":
        """Return new memory, all zeros.

        Raises:
            ResourceError: the device has not as much.
        """
        raise NotImplementedError

    def free(self, allocation: "Allocation") -> None:
        """Take the memory back now: no operation may name it any more."""
        raise NotImplementedError

    def write(self, address: int, source: int, size_bytes: int) -> None:
        """Copy from host memory at `source` to the device."""
        raise NotImplementedError

    def read(self, target: int, address: int, size_bytes: int) -> None:
        """Copy from the device to host memory at `target`."""
        raise NotImplementedError

    def begin_read(self, target: int, address: int, size_bytes: int) -> None:
        """Copy from the device to host memory at `target`, if it can while it does what is asked
        next. What is asked before ``end_read`` must not write what is read."""
        self.read(target, address, size_bytes)

    def end_read(self, target: int) -> "tuple[float, float] | None":  # noqa: ARG002  # none began
        """Return when what was begun into `target` is there: when the copy began and ended, by
        ``time.perf_counter``, or None if it is not known to have taken another time than
        ``begin_read``."""
        self.require_open()
        return None

    def begin_write(self, address: int, source: int, size_bytes: int) -> None:
        """Copy from host memory at `source` to the device, if it can while it does what is asked
        next. What is asked before ``end_write`` must not use what is written, and until then the
        host's memory stays as it is."""
        self.write(address, source, size_bytes)

    def end_write(self, address: int) -> "tuple[float, float] | None":  # noqa: ARG002  # none began
        """Return when what was begun into `address` is there, as ``end_read`` does."""
        self.require_open()
        return None

    def move(self, target: int, source: int, size_bytes: int) -> None:
        """Copy within the device; the two may overlap."""
        raise NotImplementedError

    def launch(
        self,
        kernel: int,
        buffers: "Sequence[int]",
        scalars: "Sequence[int]",
        extent: int,
        grain: int,
        watch: int,
    ) -> int:
        """Run kernel number `kernel` of the library over [0, extent).

        Args:
            kernel: its number.
            buffers: addresses, 64-byte aligned, the last one scratch; where an allocation ends, if
                nothing is in a buffer.
            scalars: i64 each.
            extent: of the parallel index, from 0 on.
            grain: the least piece of it that is worth a thread, from 1 on.
            watch: address of the call's ``abi.WATCH``, or 0.

        Returns:
            0, ``RC_REQUIREMENT`` + n, or ``RC_CANCELLED`` where the watch says so.
        """
        raise NotImplementedError

    def wait(self) -> None:
        """Return when all that was asked is done; errors that were not known before are raised
        here. Every call ends with it."""
        raise NotImplementedError

    def measure(self) -> None:
        """Note when operations run from now on, where the device queues them; called before the
        first one."""
        self.require_open()

    def last_times(self) -> "Callable[[], tuple[float, float]] | None":
        """Return what tells, behind ``wait``, when the last launch began and ended, by
        ``time.perf_counter``; None where it has ended already."""
        return None

    def lose(self, why: str) -> None:
        """Note that the device does not answer any more: it is lost to this session."""
        self._ended = self._ended or f"the device is lost: {why}"

    def close(self) -> None:
        """Refuse everything from now on; memory goes back with its last references. May be called
        again."""
        self._ended = self._ended or "the device is closed"

    def require_open(self) -> None:
        """Raise ``DeviceError`` where the device is closed or lost."""
        if self._ended:
            raise DeviceError(
                "a device does not answer", self.name, self._ended, "load the bundle again"
            )

    def refused(self, what: str, why: str) -> DeviceError:
        """Return the error for an operation that the device does not do."""
        return DeviceError(f"a device refuses {what}", self.name, why)
