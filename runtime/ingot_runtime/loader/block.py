"""Memory for workspaces, scratch and bound tensors: zeroed pages that go with the last reference.

In: a size. Out: ``Block``. Not done here: planning what lies where.
"""

import ctypes
import mmap

from ..errors import ResourceError
from ..format.limits import SIZE_BYTES_MAX
from .system import HUGE_PAGE_SIZE_BYTES, MADV_HUGEPAGE, advise

_FRESH = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


class Block:
    """``size_bytes`` of zeroed memory at ``address``, which is never null: whole pages. ``lease``:
    a type of objects that stand for it while arrays lie over it."""

    __slots__ = ("address", "lease", "memory", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        """Map the memory, or raise ``ResourceError``."""
        self.size_bytes = size_bytes
        self.lease: type[ctypes.Array[ctypes.c_char]] | None = None
        try:
            if size_bytes > SIZE_BYTES_MAX:
                raise OSError(f"more than {SIZE_BYTES_MAX} bytes")
            self.memory = mmap.mmap(-1, max(size_bytes, 1), flags=_FRESH)
        except (OSError, OverflowError, ValueError, MemoryError) as error:
            where = f"a block of {size_bytes} bytes"
            do = "free memory, use smaller shapes, or fewer threads"
            raise ResourceError("not enough memory", where, str(error), do) from error
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        # A hint: a kernel without huge pages refuses it.
        if size_bytes >= HUGE_PAGE_SIZE_BYTES:
            advise(self.address, size_bytes, MADV_HUGEPAGE)
