"""Blocks of a size that only `main` knows, on the host or on a device.

In: sizes, one call after the other. Out: ``Grow``: addresses, for `main` by a callback. Not done
here: pools whose size the shapes give.
"""

import ctypes

from ..errors import LimitError, ResourceError
from ..loader.block import Block
from .frame import MORE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .attached import Attached, Memory

_UNLIMITED_BYTES = 1 << 64
_ROUNDED_MAX_BYTES = 1 << 30


class Grow:
    """The `grow` callback of the call struct: blocks that live until `forget`.

    Blocks of the last call are given again to the next one that asks for as much, whose pages need
    not be faulted in. What it does not take is dropped with the call after it.

    ``address`` is 0 until `make`: callbacks lie on a page that is writable and executable, so only
    programs that ask for one get one.
    """

    __slots__ = ("_given", "_native", "address", "blocks", "failure", "returned")

    def __init__(self, attached: "Attached | None" = None) -> None:
        """Give blocks on the devices of `attached`, too, whose ``failure`` is then the same."""
        self.failure: list[BaseException] = [] if attached is None else attached.failure
        self._given = _Given(attached, self.failure)
        self.blocks, self.returned = self._given.blocks, self._given.returned
        self.address = 0
        self._native: object = None

    def make(self) -> None:
        """Make the native function, or raise ``ResourceError``; it lives as long as this object."""
        # A method of this object would be a cycle of object, callback and object.
        try:
            kind = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)
            native = kind(self._given.allocate)
        except (MemoryError, OSError) as error:
            why = f"{error}: a security policy forbids pages that are writable and executable"
            raise ResourceError("this process may not make callbacks", "ctypes", why) from error
        self._native = native
        self.address = ctypes.c_uint64.from_buffer(native).value  # `cast` would make a cycle

    def allocate(self, device: int, size_bytes: int) -> int:
        """Return an address, or 0 after keeping the failure."""
        return self._given.allocate(device, size_bytes)

    def limit(self, limit_bytes: int) -> None:
        """Let all blocks of a call have that many bytes together."""
        self._given.limit_bytes = limit_bytes

    def next_call(self) -> None:
        """Forget the failure of the last call; its blocks may be given again."""
        self._given.next_call()
        self.failure.clear()

    def forget(self) -> None:
        """Drop all blocks, and the failure of the last call."""
        self.next_call()
        self._given.spare.clear()


class _Given:
    """``blocks``: of this call, each with its device, None where an array has it; ``returned``: by
    arrays. ``spare``: those of the last call, by device and size."""

    __slots__ = ("_attached", "_failure", "blocks", "limit_bytes", "returned", "spare")

    def __init__(self, attached: "Attached | None", failure: list[BaseException]) -> None:
        self._attached = attached
        self._failure = failure
        self.limit_bytes = _UNLIMITED_BYTES
        self.blocks: "list[tuple[int, Memory | None]]" = []
        self.returned: "list[Block]" = []
        self.spare: "dict[tuple[int, int], list[Memory]]" = {}

    def allocate(self, device: int, size_bytes: int) -> int:
        """Return an address, or 0 after keeping the failure."""
        try:
            block = self._block(device, size_bytes)
        except BaseException as error:  # must not cross native code; it is raised later
            self._failure.append(error)
            return 0
        self.blocks.append((device, block))
        return block.address

    def next_call(self) -> None:
        """Let the next call have the blocks of the last one."""
        self.spare.clear()
        while self.returned:
            self.blocks.append((0, self.returned.pop()))
        for device, block in self.blocks:
            if block is not None:
                self.spare.setdefault((device, block.size_bytes), []).append(block)
        self.blocks.clear()

    def _block(self, device: int, size_bytes: int) -> "Memory":
        if self.limit_bytes == _UNLIMITED_BYTES:
            # Few binary digits, so that calls of nearly equal needs share blocks.
            if size_bytes <= _ROUNDED_MAX_BYTES:
                size_bytes += -size_bytes % (1 << size_bytes.bit_length() >> 4 or 1)
        else:
            used = sum(block.size_bytes for _, block in self.blocks if block is not None)
            if used + size_bytes > self.limit_bytes:
                why = f"max_bytes leaves {self.limit_bytes} bytes for them, got {used + size_bytes}"
                what = "tensors whose size the data decide need too much memory"
                raise LimitError(what, "", why, MORE)
        alike = self.spare.get((device, size_bytes))
        if alike:
            return alike.pop()
        if self.limit_bytes != _UNLIMITED_BYTES:
            self.spare.clear()  # they count as well
        try:
            return self._new(device, size_bytes)
        except ResourceError:
            self.spare.clear()
            return self._new(device, size_bytes)

    def _new(self, device: int, size_bytes: int) -> "Memory":
        attached = self._attached
        return Block(size_bytes) if attached is None else attached.allocate(device, size_bytes)
