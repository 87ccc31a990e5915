"""Devices made of the host's processor, with memory of their own.

In: a library section, which is an image for the host. Out: ``HostMemory``, by the contract of
``device``. Not done here: the kinds that are such devices (``cpu``, ``null``), speed: one thread
runs all kernels.

No page of its memory can be touched but while the device itself copies or runs a kernel, and then
only the allocations that the operation names: an access by anybody else ends the process. A copy
between it and the host that begins early has a thread of its own; the device's side stays open
until it ends.
"""

import ctypes
import weakref

from ingot_runtime.errors import IncompatibleError, ResourceError
from ingot_runtime.format import abi
from ingot_runtime.format.plan import LibraryPlan
from ingot_runtime.loader import choose, cpu, system
from ingot_runtime.loader.area import Area
from ingot_runtime.loader.image import LAUNCH, Image

from .begun_copy import BegunCopy
from .device import ALIGNMENT_BYTES, Device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .device import Allocation

ID_COUNT = 16
MEMORY_BYTES = 1 << 40
# Behind each allocation: what lies beside one must not be another.
_GAP_BYTES = system.PAGE_SIZE_BYTES
# What is as large lies in huge pages where the system has them: a right is then given and taken
# for 512 small pages at once, which for the weights of a network is a launch's largest cost.
# What is smaller is copied before a thread for it would have started.
_BEGUN_BYTES_MIN = 1 << 18
_OPEN = system.PROT_READ | system.PROT_WRITE
_SHUT = 0


def open_host_memory(
    kind: str,
    name: str,
    id: int,
    library: LibraryPlan,
    code: bytes,
    where: str,
    features: frozenset[str],
) -> "HostMemory":
    """Return device `id` of a kind; `name` is that of the virtual device, for messages.

    Raises:
        IncompatibleError: no such device, or code for other machines. FormatError: no image.
    """
    if id >= ID_COUNT:
        here = (
            f"there are {kind}:0 to {kind}:{ID_COUNT - 1}" if ID_COUNT > 1 else f"there is {kind}:0"
        )
        why = f"device {name!r} wants {kind}:{id}; {here}"
        do = f"map it: --device {name}={kind}:0"
        raise IncompatibleError(f"no device {kind}:{id} here", where, why, do)
    missing = choose.missing_features(library, features, cpu.machine_architecture())
    if missing:
        what = f"device {name!r} cannot run its library here"
        why = f"code for {library.target} needs {', '.join(missing)}, which this machine lacks"
        raise IncompatibleError(what, where, why, "compile for this machine")
    return HostMemory(f"{kind}:{id}", Image(code, library.kernel_count, where, is_library=True))


class Piece:
    """An allocation: whole pages that nobody may touch, with a gap behind them."""

    __slots__ = ("__weakref__", "_area", "address", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        """Reserve, or raise ``ResourceError``."""
        unit = system.PAGE_SIZE_BYTES
        if size_bytes >= system.HUGE_PAGE_SIZE_BYTES:
            unit = system.HUGE_PAGE_SIZE_BYTES
        self.size_bytes = system.round_up(max(size_bytes, 1), unit)
        self._area = Area(self.size_bytes + unit - system.PAGE_SIZE_BYTES + _GAP_BYTES)
        self.address = system.round_up(self._area.address, unit)
        if unit == system.HUGE_PAGE_SIZE_BYTES:
            system.advise(self.address, self.size_bytes, system.MADV_HUGEPAGE)

    def protect(self, protection: int) -> None:
        """Give rights to its pages, or take them."""
        system.protect(self.address, self.size_bytes, protection)


class HostMemory(Device):
    """One device. Two of them have nothing in common."""

    __slots__ = ("__weakref__", "_begun", "_image", "_launch", "_pieces")

    def __init__(self, name: str, image: Image) -> None:
        super().__init__(name)
        self._image = image
        self._launch = LAUNCH(image.exports["launch"])
        # By address. A piece that nobody holds leaves by the weak reference's own callback.
        self._pieces: dict[int, weakref.ref[Piece]] = {}
        # By where they write. The device's side of them stays open until they are joined.
        self._begun: dict[int, BegunCopy] = {}

    def allocate(self, size_bytes: int) -> "Allocation":
        """Reserve whole pages that nobody may touch."""
        self.require_open()
        used = sum(piece.size_bytes for piece in self._live())
        if not 0 <= size_bytes <= MEMORY_BYTES - used:
            what = f"not enough memory on device {self.name}"
            why = f"{used} of {MEMORY_BYTES} bytes are in use"
            raise ResourceError(what, f"{size_bytes} bytes", why, "use smaller shapes")
        piece = Piece(size_bytes)
        forget = system.callback(self._pieces.pop, piece.address)
        self._pieces[piece.address] = weakref.ref(piece, forget)
        return piece

    def free(self, allocation: "Allocation") -> None:
        """Forget the allocation; its pages go back with its last reference."""
        self._require("free", allocation.address, 0)
        del self._pieces[allocation.address]

    def write(self, address: int, source: int, size_bytes: int) -> None:
        """Copy from the host, at once."""
        self._copy(address, source, size_bytes, [self._require("write", address, size_bytes)])

    def read(self, target: int, address: int, size_bytes: int) -> None:
        """Copy to the host, at once."""
        self._copy(target, address, size_bytes, [self._require("read", address, size_bytes)])

    def move(self, target: int, source: int, size_bytes: int) -> None:
        """Copy within the device, at once."""
        pieces = [self._require("move", address, size_bytes) for address in (target, source)]
        self._copy(target, source, size_bytes, pieces)

    def _copy(self, target: int, source: int, size_bytes: int, pieces: list[Piece]) -> None:
        if not size_bytes:
            return
        try:
            _protect(pieces, _OPEN)
            ctypes.memmove(target, source, size_bytes)
        finally:
            self._shut(pieces)

    def begin_read(self, target: int, address: int, size_bytes: int) -> None:
        """Copy to the host beside what the calling thread does next, if it is worth a thread."""
        piece = self._require("read", address, size_bytes)
        if not self._begins(target, address, size_bytes, piece):
            self.read(target, address, size_bytes)

    def begin_write(self, address: int, source: int, size_bytes: int) -> None:
        """Copy from the host, likewise."""
        piece = self._require("write", address, size_bytes)
        if not self._begins(address, source, size_bytes, piece):
            self.write(address, source, size_bytes)

    def _begins(self, target: int, source: int, size_bytes: int, piece: Piece) -> bool:
        """Give a copy a thread, unless it is not worth one or none can be had."""
        if size_bytes < _BEGUN_BYTES_MIN or target in self._begun:
            return False
        try:
            _protect([piece], _OPEN)
            self._begun[target] = BegunCopy(target, source, size_bytes, piece)
        except RuntimeError:  # no thread can be had
            self._shut([piece])
            return False
        return True

    def end_read(self, target: int) -> "tuple[float, float] | None":
        """Join the copy's thread, if it has one."""
        self.require_open()
        return self._end(target) if target in self._begun else None

    def end_write(self, address: int) -> "tuple[float, float] | None":
        """Join the copy's thread, if it has one."""
        return self.end_read(address)

    def _end(self, target: int) -> "tuple[float, float]":
        times = self._begun[target].join()
        self._shut([self._begun.pop(target).piece])
        return times

    def _shut(self, pieces: list[Piece]) -> None:
        """Take the rights, but for what is being copied."""
        copied = [begun.piece for begun in self._begun.values()]
        _protect([piece for piece in pieces if piece not in copied], _SHUT)

    def launch(
        self,
        kernel: int,
        buffers: "Sequence[int]",
        scalars: "Sequence[int]",
        extent: int,
        grain: int,
        watch: int,
    ) -> int:
        """Run the kernel on the calling thread, with only these allocations in reach."""
        self.require_open()
        if not 0 <= kernel < len(self._image.kernels):
            raise self.refused("launch", f"kernel {kernel} of {len(self._image.kernels)}")
        if extent < 0 or grain < 1:
            raise self.refused("launch", f"extent {extent}, grain {grain}")
        # A buffer of no bytes may lie at the very end of what it lies in.
        pieces = list({self._require("launch", address, 0): None for address in buffers})
        if not buffers or any(address % ALIGNMENT_BYTES for address in buffers):
            at = f"multiples of {ALIGNMENT_BYTES}"
            why = f"its buffers, the last of which is scratch, must lie at {at}"
            raise self.refused("launch", why)
        scratch = buffers[-1]
        addresses = (ctypes.c_uint64 * len(buffers))(*buffers[:-1])
        values = (ctypes.c_int64 * max(len(scalars), 1))(*scalars)
        try:
            _protect(pieces, _OPEN)
            code = self._launch(
                0, self._image.kernels[kernel], addresses, values, extent, grain, scratch, 0, watch
            )  # fmt: skip
        finally:
            self._shut(pieces)
        if code and code != abi.RC_CANCELLED and code < abi.RC_REQUIREMENT:
            raise self.refused("launch", f"kernel {kernel} returns {code}")
        return int(code)

    def wait(self) -> None:
        """Wait for the copies that were begun: everything else is done at once."""
        self._end_all()
        self.require_open()

    def close(self) -> None:
        """Refuse everything from now on, when what was begun is there."""
        self._end_all()
        super().close()

    def _end_all(self) -> None:
        for target in tuple(self._begun):
            self._end(target)

    def _live(self) -> list[Piece]:
        found = [place() for place in list(self._pieces.values())]
        return [piece for piece in found if piece is not None]

    def _require(self, what: str, address: int, size_bytes: int) -> Piece:
        """Return the allocation that holds these bytes."""
        self.require_open()
        for piece in self._live():
            if piece.address <= address <= address + size_bytes <= piece.address + piece.size_bytes:
                return piece
        raise self.refused(what, f"{size_bytes} bytes at {address:#x} are not in its memory")


def _protect(pieces: list[Piece], protection: int) -> None:
    for piece in pieces:
        piece.protect(protection)
