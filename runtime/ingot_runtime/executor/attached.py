"""What a session asks of its devices: the type of ``ingot_runtime_devices.attached.Attached``.

In: nothing. Out: protocols, for types alone, and sums of what they count. Not done here: devices. Bundles for the host alone
need no more of devices than this.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Memory(Protocol):
        """Memory of a device, the host's too; it goes back with its last reference."""

        @property
        def address(self) -> int: ...
        @property
        def size_bytes(self) -> int: ...

    class DeviceCounts(Protocol):
        """By virtual device: its launches; ``copies``: (from, to) -> (copies, bytes)."""

        launches: dict[str, int]
        copies: dict[tuple[str, str], tuple[int, int]]

    class Attached(Protocol):
        """All devices of a session; ``failure``: what callbacks raised in the present call."""

        @property
        def failure(self) -> list[BaseException]: ...
        def names(self) -> list[str]: ...
        def row(self, index: int) -> dict[str, int]: ...
        def allocate(self, index: int, size_bytes: int) -> Memory: ...
        def launch(
            self,
            index: int,
            kernel: int,
            buffers: list[int],
            scalars: list[int],
            extent: int,
            grain: int,
        ) -> int: ...
        def measure(self) -> None: ...
        def last_times(self, index: int) -> Callable[[], tuple[float, float]] | None: ...
        def copy(
            self, target: int, source: int, to: int, from_: int, size_bytes: int
        ) -> tuple[float, float] | None: ...
        def read(self, index: int, to: int, from_: int, size_bytes: int) -> None: ...
        def settle(self, rc: int) -> int: ...
        def counts(self) -> DeviceCounts: ...
        def close(self) -> None: ...


def summed(counts: "list[DeviceCounts]") -> "DeviceCounts":
    """Return the sum of what several sessions of one bundle have asked of their devices."""
    total = counts[0]
    for each in counts[1:]:
        for name, launches in each.launches.items():
            total.launches[name] += launches
        for edge, (copies, size_bytes) in each.copies.items():
            before = total.copies.get(edge, (0, 0))
            total.copies[edge] = before[0] + copies, before[1] + size_bytes
    return total
