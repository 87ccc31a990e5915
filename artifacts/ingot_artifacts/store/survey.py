"""What is in a cache: its blobs by size, its records by what they need, what the roots keep.

In: a cache. Out: ``Survey``. Not done here: judging blobs (``scrub``), deleting (``collect``).
Lower layers are left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ingot_artifacts.store.blob_file import is_digest
from ingot_artifacts.store.blobs import StoreError
from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.records import RecordError, RecordFacts, read_facts
from ingot_artifacts.store.roots import Root
from ingot_runtime.lazy_dataclass import dataclass

_SHARD_DIGITS = 2


@dataclass(frozen=True, slots=True)
class RecordEntry:
    """One row of the index: ``facts`` is None where it is no record, or its own blob is lost;
    ``used``: seconds since 1970."""

    number: int
    key: bytes | None
    facts: RecordFacts | None
    used: float


@dataclass(frozen=True, slots=True)
class Kept:
    """What one root keeps of what there is; ``size_bytes`` counts blobs and records."""

    root: Root
    keys: frozenset[bytes]
    digests: frozenset[str]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Survey:
    """``records`` are sorted by key, ``blobs`` (digest -> bytes) by digest, ``roots`` by name."""

    records: tuple[RecordEntry, ...]
    blobs: dict[str, int]
    roots: tuple[Kept, ...]

    @property
    def size_bytes(self) -> int:
        """Return the size of all blobs and records."""
        return sum(self.blobs.values()) + sum(
            entry.facts.size_bytes for entry in self.records if entry.facts
        )


def take_survey(cache: Cache) -> Survey:
    """Look at all records and at the names of all blobs."""
    records = tuple(read_records(cache))
    blobs = dict(
        sorted(
            (entry.digest, entry.size_bytes) for entry in walk_blobs(cache.folder) if entry.digest
        )
    )
    facts = {
        entry.key: entry.facts
        for entry in records
        if entry.key is not None and entry.facts is not None
    }
    return Survey(records, blobs, tuple(_kept(root, facts, blobs) for root in cache.roots.roots()))


def read_records(cache: Cache) -> Iterator[RecordEntry]:
    """Yield all rows of the index, sorted by key."""
    for entry in cache.index.scan():
        facts = None
        if entry.value is not None:
            try:
                facts = read_facts(entry.value, cache.blobs)
            except (RecordError, StoreError):
                facts = None
        yield RecordEntry(entry.number, entry.key, facts, entry.used)


@dataclass(frozen=True, slots=True)
class BlobEntry:
    """Something below ``cas/``: a file with a blob's name, or (``digest`` is empty) what does not
    belong there."""

    path: str
    digest: str
    size_bytes: int


def walk_blobs(folder: str) -> Iterator[BlobEntry]:
    """Yield everything below ``cas/`` of a cache's folder."""
    cas = os.path.join(folder, "cas")
    for shelf in _entries(cas):
        if shelf.name != "sha256" or not shelf.is_dir(follow_symlinks=False):
            yield BlobEntry(shelf.path, "", 0)
            continue
        for shard in _entries(shelf.path):
            named = len(shard.name) == _SHARD_DIGITS and is_digest(shard.name.ljust(64, "0"))
            if not named or not shard.is_dir(follow_symlinks=False):
                yield BlobEntry(shard.path, "", 0)
                continue
            yield from (_blob_entry(shard.name, file) for file in _entries(shard.path))


def _blob_entry(shard: str, file: os.DirEntry[str]) -> BlobEntry:
    digest = shard + file.name
    try:
        size_bytes = file.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        size_bytes = 0
    return BlobEntry(file.path, digest if is_digest(digest) else "", size_bytes)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _kept(root: Root, records: dict[bytes, RecordFacts], blobs: dict[str, int]) -> Kept:
    keys = frozenset(key for key in root.keys if key in records)
    named = {digest for key in keys for digest in records[key].refs} | set(root.digests)
    digests = frozenset(digest for digest in named if digest in blobs)
    size_bytes = sum(blobs[digest] for digest in digests) + sum(
        records[key].size_bytes for key in keys
    )
    return Kept(root, keys, digests, size_bytes)
