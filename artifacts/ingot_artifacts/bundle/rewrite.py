"""A bundle with other sections than before: those that stay are copied, not made again.

In: an open bundle, sections that change, are new or go. Out: a file, whole or not at all. Not done
here: what the sections hold, whether plan and sections still agree (the reader checks).
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import field

from ingot_artifacts.bundle.encode_head import encode_head
from ingot_artifacts.bundle.place_sections import Key, place_sections, reserve
from ingot_artifacts.store.atomic import atomic_file, sync_folders
from ingot_runtime.format import header as head
from ingot_runtime.format.sha256 import sha256
from ingot_runtime.format.source import Source
from ingot_runtime.lazy_dataclass import dataclass

_CHUNK_SIZE_BYTES = 1 << 24


Ranges = tuple[tuple[int, int], ...]
"""Where something begins and ends, in bytes."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Weights of another size: ``pieces`` of those before, as (offset, offset before, bytes), and zeros
    between them."""

    size_bytes: int
    pieces: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """``payloads``: sections that are new or other than before; ``dropped``: those that go;
    ``kept``: of weights, what stays; the rest becomes zeros, which take no place on a disk.
    ``placed``: likewise, but what stays moves, and the size changes."""

    payloads: Mapping[Key, bytes] = field(default_factory=dict[Key, bytes])
    dropped: frozenset[Key] = frozenset()
    kept: Mapping[Key, Ranges] = field(default_factory=dict[Key, Ranges])
    placed: Mapping[Key, Placed] = field(default_factory=dict[Key, Placed])


def changed_sections(source: Source, changes: Changes) -> list[head.Section]:
    """Return the rows of the table that the bundle has with its changes."""
    kept = {key: row for key, row in source.by_key.items() if key not in changes.dropped}
    sizes = {key: row.size_bytes for key, row in kept.items()}
    sizes |= {key: len(payload) for key, payload in changes.payloads.items()}
    sizes |= {key: placed.size_bytes for key, placed in changes.placed.items()}
    sections = place_sections(sizes)
    for row in sections:
        payload = changes.payloads.get((row.kind, row.id))
        row.digest = kept[row.kind, row.id].digest if payload is None else sha256(payload)
    return sections


def changed_digest(source: Source, changes: Changes) -> bytes:
    """Return the root digest of the bundle with its changes, which is not written."""
    sections = changed_sections(source, changes)
    return encode_head(sections, _end(sections), _version_minor(source, changes))[1]


def rewrite_bundle(source: Source, changes: Changes, path: str | os.PathLike[str]) -> str:
    """Write the bundle with its changes; return the root digest, as hex. ``path`` may be that of
    the bundle itself.

    Raises:
        OutputError: no folder, no permission, no space; nothing is left behind.
    """
    sections = changed_sections(source, changes)
    end = _end(sections)
    start, root = encode_head(sections, end, _version_minor(source, changes))
    with atomic_file(path, lasting=True) as file:
        if not changes.kept and not changes.placed:
            reserve(file.fileno(), end)
        file.write(start)
        for row in sections:
            for at, data in _pieces(source, changes, (row.kind, row.id)):
                file.seek(row.offset + at)
                file.write(data)
        file.truncate(end)
        source.require_unchanged()
    sync_folders([os.path.dirname(os.path.abspath(path))])
    return root.hex()


def _pieces(source: Source, changes: Changes, key: Key) -> Iterator[tuple[int, bytes]]:
    """Yield the bytes of a section, each piece with its place in it."""
    if key in changes.payloads:
        yield 0, changes.payloads[key]
        return
    row = source.by_key[key]
    ranges = changes.kept.get(key, ((0, row.size_bytes),))
    placed = changes.placed.get(key)
    pieces = placed.pieces if placed else [(start, start, end - start) for start, end in ranges]
    for to, start, size in pieces:
        for at in range(0, size, _CHUNK_SIZE_BYTES):
            data = source.read(row.offset + start + at, min(_CHUNK_SIZE_BYTES, size - at))
            yield to + at, data


def _end(sections: list[head.Section]) -> int:
    return sections[-1].offset + sections[-1].size_bytes


def _version_minor(source: Source, changes: Changes) -> int:
    return max(source.minor, *(head.section_kind(kind).since for kind, _ in changes.payloads), 0)
