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


class Grow:
    """The `grow` callback of the call struct: blocks that live until `forget`.

    ``address`` is 0 until `make`: ctypes puts callbacks on a page that is writable and executable,
    so only the programs that ask for one get one.
    """

    __slots__ = ("_attached", "_native", "_room", "address", "blocks", "failure")

    def __init__(self, attached: "Attached | None" = None) -> None:
        """Give blocks on the devices of `attached`, too, whose ``failure`` is then the same."""
        self._room = [1 << 64]  # as much as there is
        self._attached = attached
        self.blocks: list[Memory] = []
        self.failure: list[BaseException] = [] if attached is None else attached.failure
        self.address = 0
        self._native: object = None

    def make(self) -> None:
        """Make the native function, or raise ``ResourceError``; it lives as long as this object."""
        # A bound method would be a cycle of object, callback and object.
        attached, blocks, failure, room = self._attached, self.blocks, self.failure, self._room

        def grow(device: int, size_bytes: int) -> int:
            return _allocate(attached, blocks, failure, room, device, size_bytes)

        try:
            native = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)(grow)
        except (MemoryError, OSError) as error:
            why = f"{error}: a security policy forbids pages that are writable and executable"
            raise ResourceError("this process may not make callbacks", "ctypes", why) from error
        self._native = native
        self.address = ctypes.c_uint64.from_buffer(native).value  # `cast` would make a cycle

    def allocate(self, device: int, size_bytes: int) -> int:
        """Return the address of a new block, or 0 after keeping the failure (the vm calls this)."""
        return _allocate(self._attached, self.blocks, self.failure, self._room, device, size_bytes)

    @property
    def room_bytes(self) -> int:
        """Bytes that all blocks of a call may have together."""
        return self._room[0]

    @room_bytes.setter
    def room_bytes(self, value: int) -> None:
        self._room[0] = value

    def forget(self) -> None:
        """Drop the blocks and the failure of the last call."""
        self.blocks.clear()
        self.failure.clear()


def _allocate(
    attached: "Attached | None",
    blocks: "list[Memory]",
    failure: list[BaseException],
    room: list[int],
    device: int,
    size_bytes: int,
) -> int:
    try:
        used = sum(block.size_bytes for block in blocks)
        if used + size_bytes > room[0]:
            why = f"max_bytes leaves {room[0]} bytes for them, got {used + size_bytes}"
            what = "tensors whose size the data decide need too much memory"
            raise LimitError(what, "", why, MORE)
        block = Block(size_bytes) if attached is None else attached.allocate(device, size_bytes)
    except BaseException as error:  # an exception must not cross native code; it is raised later
        failure.append(error)
        return 0
    blocks.append(block)
    return block.address
