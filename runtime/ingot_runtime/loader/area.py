"""Address space with an owner: what is mapped into it goes with the last reference.

In: a size. Out: ``Area``. Not done here: what lies in it.

The interpreter's own ``mmap`` object reserves the addresses, and everything else is mapped over
them. So no Ctrl-C can lose a mapping or give it back twice; no code has to clean up.
"""

import ctypes
import mmap

from ..errors import ResourceError
from . import system

_GET_BUFFER = ctypes.pythonapi.PyObject_GetBuffer
_GET_BUFFER.argtypes = (ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
_RELEASE_BUFFER = ctypes.pythonapi.PyBuffer_Release
_RELEASE_BUFFER.argtypes = (ctypes.c_void_p,)
_RELEASE_BUFFER.restype = None
_PY_BUFFER_SIZE_BYTES = 128  # a Py_buffer has 80; its first field is the address


class Area:
    """``size_bytes`` from ``address`` on, whole pages that nobody may touch until `put`."""

    __slots__ = ("__weakref__", "_owner", "address", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        """Reserve, or raise ``ResourceError``."""
        self.size_bytes = system.round_up(size_bytes)
        flags = system.MAP_PRIVATE | system.MAP_ANONYMOUS | system.MAP_NORESERVE
        try:
            self._owner = mmap.mmap(-1, self.size_bytes, flags=flags, prot=0)
        except (OSError, OverflowError, ValueError, MemoryError) as error:
            where, do = f"{size_bytes} bytes of addresses", system.FREE_MEMORY
            raise ResourceError("the system refused mmap", where, str(error), do) from error
        self.address = _address_of(self._owner)

    def put(
        self, at: int, size_bytes: int, protection: int, flags: int, fd: int = -1, offset: int = 0
    ) -> int:
        """Map a file or fresh memory over the bytes from `at` on; return their address, or raise
        ``ResourceError``."""
        assert at >= 0
        assert at + system.round_up(size_bytes) <= self.size_bytes
        place, flags = self.address + at, flags | system.MAP_FIXED
        return system.map_memory(place, size_bytes, protection, flags, fd, offset)


def _address_of(owner: mmap.mmap) -> int:
    """Return the address of a buffer that may not be written, or even read."""
    view = ctypes.create_string_buffer(_PY_BUFFER_SIZE_BYTES)
    place = ctypes.addressof(view)
    _GET_BUFFER(owner, place, 0)
    address = ctypes.c_uint64.from_buffer(view).value
    _RELEASE_BUFFER(place)
    return address
