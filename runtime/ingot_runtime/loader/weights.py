"""The weights: mapped read-only, and checked by the image's own native code that sha256 has vouched for.

In: a source, an image, the chosen variant's ranges, the policy. Out: a base address. Not done here: copies to other devices.
"""

import ctypes

from ..errors import DigestError
from ..format import abi
from ..format import header as head
from ..format.checks import DAMAGED
from ..format.limits import MIB
from ..format.source import Source
from . import system
from .image import Image

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

VERIFY_MODES = ("full", "fast", "code")
_EXPORTS = {"full": "blake3_verify", "fast": "checksum_verify"}
_PARALLEL_MIBS_MIN = 32
_VERIFY = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_uint64, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64
)


def map_weights(source: Source, id: int = 0) -> tuple[int, int]:
    """Map the weights of device `id` shared and read-only; return (address, bytes), (0, 0) if there are none."""
    row = source.by_key.get((head.WEIGHTS, id))
    if row is None:
        return 0, 0
    # The file is shared, not copied: what is in the page cache costs no memory, and sessions share it.
    base = system.map_memory(row.size_bytes, system.PROT_READ, system.MAP_SHARED, source.fd, row.offset)
    return base, row.size_bytes


def whole_mibs(ranges: "tuple[tuple[int, int], ...]") -> list[tuple[int, int]]:
    """Return the [first, last) MiBs that the sorted `ranges` touch, joined."""
    mibs: list[tuple[int, int]] = []
    for offset, size_bytes in ranges:
        first, last = offset // MIB, (offset + size_bytes + MIB - 1) // MIB
        if mibs and first <= mibs[-1][1]:
            mibs[-1] = (mibs[-1][0], max(last, mibs[-1][1]))
        else:
            mibs.append((first, last))
    return mibs


def verify_weights(
    image: Image, base: int, mibs: list[tuple[int, int]], tree: bytes, mode: str, threads: int, name: str
) -> None:
    """Check the given MiBs against `tree`: "full" by BLAKE3, "fast" by the lane checksum, "code" not at all.

    Raises:
        DigestError: naming the first MiB that differs.
    """
    if mode not in _EXPORTS or not mibs:
        return
    for first, last in mibs:
        system.advise(base + first * MIB, (last - first) * MIB, system.MADV_WILLNEED)
    verify = _VERIFY(image.exports[_EXPORTS[mode]])
    tree_address, keep = _address_of(tree)
    bad: list[int] = []

    def check(pieces: list[tuple[int, int]]) -> None:
        scratch = system.map_anonymous(abi.VERIFY_SCRATCH_BYTES)
        try:
            for first, last in pieces:
                found = verify(base, first, last, tree_address, scratch)
                if found >= 0:
                    bad.append(found)
                    return
        finally:
            system.unmap(scratch, abi.VERIFY_SCRATCH_BYTES)

    _share_out(check, mibs, threads)
    del keep
    if bad:
        raise DigestError(
            f"weights are damaged in MiB {min(bad)}",
            f"{name}, section weights 0",
            f"the {'BLAKE3 digest' if mode == 'full' else 'checksum'} is not that of section tree 0",
            DAMAGED,
        )


def _address_of(data: bytes) -> tuple[int, object]:
    keep = ctypes.c_char_p(data)
    return ctypes.cast(keep, ctypes.c_void_p).value or 0, keep


def _share_out(check: "Callable[[list[tuple[int, int]]], None]", mibs: list[tuple[int, int]], threads: int) -> None:
    """Call `check` with all pieces, on several threads when it pays."""
    total = sum(last - first for first, last in mibs)
    if threads < 2 or total < _PARALLEL_MIBS_MIN:
        check(mibs)
        return
    import threading

    step = (total + threads - 1) // threads
    pieces = [(at, min(at + step, last)) for first, last in mibs for at in range(first, last, step)]
    workers = [threading.Thread(target=check, args=(pieces[index::threads],)) for index in range(1, threads)]
    for worker in workers:
        worker.start()
    check(pieces[::threads])
    for worker in workers:
        worker.join()
