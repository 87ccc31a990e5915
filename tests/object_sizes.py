"""What an object of 32 bits (ELF) has in RAM and in flash.

In: its file. Out: bytes. Not done here: linking.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

_WRITE, _ALLOC, _EXECUTE = 1, 2, 4  # flags of a section


def writable_bytes(path: Path) -> int:
    """All that it has in RAM."""
    return sum(size for flags, size in _sections(path) if flags & _ALLOC and flags & _WRITE)


def code_bytes(path: Path) -> int:
    """Its instructions, and the constants beside them."""
    return sum(size for flags, size in _sections(path) if flags & _ALLOC and not flags & _WRITE)


def _sections(path: Path) -> Iterator[tuple[int, int]]:
    """(flags, size) of each section."""
    data = path.read_bytes()
    (start,), (count,) = struct.unpack_from("<I", data, 32), struct.unpack_from("<H", data, 48)
    for at in range(count):
        header = struct.unpack_from("<10I", data, start + 40 * at)
        yield header[2], header[5]
