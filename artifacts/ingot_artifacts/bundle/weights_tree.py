"""The tree over the weights of all devices: digests of each MiB (FORMAT.md, "Tree").

In: chunks of weights, a function MiB -> tree entry. Out: sizes of the sections, the tree's bytes.
Not done here: the digests themselves, the file (``write``).
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from ingot_artifacts.bundle.contents import Chunk, bytes_of
from ingot_artifacts.errors import ArtifactError
from ingot_runtime.format.limits import ALIGNMENT_MAPPED_BYTES, MIB, TREE_ENTRY_SIZE_BYTES

TreeEntry = Callable[[memoryview], bytes]
"""One MiB -> 40 bytes: BLAKE3, then the lane checksum."""


def section_sizes_bytes(weights_bytes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the bytes of each section with the zeros that fill its last page."""
    return tuple(_rounded(size, ALIGNMENT_MAPPED_BYTES) for size in weights_bytes)


def _rounded(size_bytes: int, unit_bytes: int) -> int:
    return -(-size_bytes // unit_bytes) * unit_bytes


def weights_tree(
    weights: Iterable[Chunk], weights_bytes: tuple[int, ...], tree_entry: TreeEntry
) -> bytes:
    """Return the trees of all sections, one after the other.

    Args:
        weights: chunks in rising order, asked for once; what lies between them is zero.
        weights_bytes: each section without the zeros that fill its last page.
        tree_entry: digests of one MiB (the compiler's own code; tests use the oracle).

    Raises:
        ArtifactError: chunks that overlap or leave their section.
    """
    return b"".join(_entry(tree_entry, mib) for mib in _mibs(_spans(weights, weights_bytes)))


def _mibs(spans: Iterable[memoryview]) -> Iterator[bytearray]:
    """Yield the sections MiB by MiB, in one buffer that is filled again and again."""
    mib, filled = bytearray(MIB), 0
    for data in spans:
        rest = data
        while len(rest):
            part = rest[: MIB - filled]
            mib[filled : filled + len(part)] = part
            filled, rest = filled + len(part), rest[len(part) :]
            if filled == MIB:
                yield mib
                filled = 0


def _spans(weights: Iterable[Chunk], weights_bytes: tuple[int, ...]) -> Iterator[memoryview]:
    """Yield chunks, and the zeros between them and behind them, up to a whole MiB per section."""
    starts = list(accumulate(section_sizes_bytes(weights_bytes), initial=0))
    leaves = list(accumulate((_rounded(size, MIB) for size in weights_bytes), initial=0))
    at = 0
    for offset, source in weights:
        data = bytes_of(source)
        section = bisect_right(starts, offset, hi=len(weights_bytes)) - 1
        place = offset - starts[section] + leaves[section]
        end = leaves[section] + weights_bytes[section] if section >= 0 else 0
        if place < at or place + len(data) > end:
            why = f"{len(data)} bytes at {place}, after {at} of {end}"
            raise ArtifactError("weights overlap or leave their section", "weights", why)
        yield from _zeros(place - at)
        yield data
        at = place + len(data)
    yield from _zeros(leaves[-1] - at)


def _zeros(count: int) -> Iterator[memoryview]:
    zeros = memoryview(bytes(min(count, MIB)))
    while count:
        yield zeros[:count]
        count -= min(count, MIB)


def _entry(tree_entry: TreeEntry, mib: bytearray) -> bytes:
    with memoryview(mib) as view:
        entry = tree_entry(view)
    if len(entry) != TREE_ENTRY_SIZE_BYTES:
        raise ArtifactError(
            "bad tree entry", "weights", f"expected {TREE_ENTRY_SIZE_BYTES} bytes, got {len(entry)}"
        )
    return entry
