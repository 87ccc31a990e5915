"""The weights' tree: 40 bytes per MiB, BLAKE3 and the lane checksum. FORMAT.md, "Tree".

In: whole MiBs, a BLAKE3 function. Out: tree entries. Not done here: BLAKE3 itself (compiled code,
or the oracle package).
"""

import struct
from collections.abc import Callable

from ingot_runtime.format.limits import MIB

_LANES = 64
_START_STEP = 0x9E3779B1
_MULTIPLIER = 0x85EBCA77
_FOLD = 0x9E3779B97F4A7C15
_TURN = 13
_U32, _U64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def lane_checksum(mib: memoryview) -> int:
    """Return the u64 lane checksum of one MiB, by its definition; slow, the oracle of the compiled
    one."""
    if mib.nbytes != MIB:
        raise ValueError(f"expected {MIB} bytes, got {mib.nbytes}")
    lanes = [(lane * _START_STEP + 1) & _U32 for lane in range(_LANES)]
    for row in struct.iter_unpack(f"<{_LANES}I", mib):
        for lane, word in enumerate(row):
            mixed = ((lanes[lane] ^ word) * _MULTIPLIER) & _U32
            lanes[lane] = (mixed << _TURN | mixed >> (32 - _TURN)) & _U32
    folded = 0
    for value in lanes:
        folded = ((folded ^ value) * _FOLD) & _U64
    return folded


def tree_entry_with(blake3_digest: Callable[[memoryview], bytes]) -> Callable[[memoryview], bytes]:
    """Return the function MiB -> 40 bytes that uses `blake3_digest` (MiB -> 32 bytes)."""

    def tree_entry(mib: memoryview) -> bytes:
        return blake3_digest(mib) + struct.pack("<Q", lane_checksum(mib))

    return tree_entry
