"""The tree over the weights section: digests of each MiB (FORMAT.md, "Tree").

In: chunks of weights, a function MiB -> tree entry. Out: the tree's bytes. Not done here: the digests themselves, the file (``write``).
"""

from collections.abc import Callable, Iterable, Iterator

from ingot_artifacts.bundle.contents import Chunk, bytes_of
from ingot_artifacts.errors import ArtifactError
from ingot_runtime.format.limits import MIB, TREE_ENTRY_SIZE_BYTES

TreeEntry = Callable[[memoryview], bytes]
"""One MiB -> 40 bytes: BLAKE3, then the lane checksum."""


def weights_tree(weights: Iterable[Chunk], weights_bytes: int, tree_entry: TreeEntry) -> bytes:
    """Return the tree of a section.

    Args:
        weights: chunks in rising order inside ``weights_bytes``, asked for once; what lies between them is zero.
        weights_bytes: the section without the zeros that fill its last MiB.
        tree_entry: digests of one MiB (the compiler's own code; tests use the oracle).

    Raises:
        ArtifactError: chunks that overlap or leave the section.
    """
    return b"".join(_entry(tree_entry, mib) for mib in _mibs(_spans(weights, weights_bytes)))


def _mibs(spans: Iterable[memoryview]) -> Iterator[bytearray]:
    """Yield the section MiB by MiB, in one buffer that is filled again and again."""
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


def _spans(weights: Iterable[Chunk], weights_bytes: int) -> Iterator[memoryview]:
    """Yield chunks, and the zeros between them and behind them."""
    at = 0
    for offset, source in weights:
        data = bytes_of(source)
        if offset < at or offset + len(data) > weights_bytes:
            why = f"{len(data)} bytes at {offset}, after {at} of {weights_bytes}"
            raise ArtifactError("weights overlap or leave their section", "weights", why)
        yield from _zeros(offset - at)
        yield data
        at = offset + len(data)
    yield from _zeros(-(-weights_bytes // MIB) * MIB - at)


def _zeros(count: int) -> Iterator[memoryview]:
    zeros = memoryview(bytes(min(count, MIB)))
    while count:
        yield zeros[:count]
        count -= min(count, MIB)


def _entry(tree_entry: TreeEntry, mib: bytearray) -> bytes:
    with memoryview(mib) as view:
        entry = tree_entry(view)
    if len(entry) != TREE_ENTRY_SIZE_BYTES:
        raise ArtifactError("bad tree entry", "weights", f"expected {TREE_ENTRY_SIZE_BYTES} bytes, got {len(entry)}")
    return entry
