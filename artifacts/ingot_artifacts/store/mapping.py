"""A file mapped into memory without a descriptor: thousands of artifacts may be open at once.

In: an open file. Out: a read-only view that unmaps itself. Not done here: hashing. ``mmap.mmap``
keeps a descriptor per mapping.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import weakref
from typing import Any

_FAILED = ctypes.c_void_p(-1).value


def map_file(descriptor: int, size_bytes: int) -> memoryview:
    """Map the first ``size_bytes`` (above 0) of a file that nobody shortens.

    Raises:
        OSError: no memory, or a file that cannot be mapped.
    """
    library = _library()
    address = library.mmap(None, size_bytes, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if address == _FAILED:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    content = (ctypes.c_ubyte * size_bytes).from_address(address)
    # Not at exit: somebody's view may still be read after that.
    weakref.finalize(content, library.munmap, address, size_bytes).atexit = False
    return memoryview(content).cast("B").toreadonly()


@functools.cache
def _library() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_int64)
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return library
