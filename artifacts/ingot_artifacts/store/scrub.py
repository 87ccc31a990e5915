"""Checks a whole cache: every blob's bytes, every record and what it needs, every root, the index's
database.

In: a cache. Out: what was wrong. Not done here: repair by running something again: what is damaged
goes to quarantine, a record that needs it is deleted, and so the next build makes it anew. May run
beside builds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ingot_artifacts.store.blobs import BlobStore, StoreError
from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.index.index import Entry
from ingot_artifacts.store.quarantine import set_aside
from ingot_artifacts.store.records import RecordError, read_facts
from ingot_artifacts.store.survey import walk_blobs
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class StoreDamage:
    """``kind``: blob, record, root, index, or foreign (a file that the cache did not make);
    ``name``: which; ``why``."""

    kind: str
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class ScrubReport:
    """Nothing was wrong when ``findings`` is empty."""

    blob_count: int
    blob_bytes: int
    record_count: int
    findings: tuple[StoreDamage, ...]


def verify(cache: Cache) -> ScrubReport:
    """Check everything; in a cache that is only read, nothing is moved or deleted.

    Raises:
        OutputError: what is damaged cannot be moved.
    """
    with cache.building():
        findings = _check_database(cache)
        strangers = [entry.path for entry in walk_blobs(cache.folder) if not entry.digest]
        findings += _set_aside(cache, "foreign", "not a file of the cache", strangers)
        blob_count, blob_bytes = _check_blobs(cache, findings)
        record_count = _check_records(cache, findings)
        findings += _set_aside(cache, "root", "its digest does not fit", cache.roots.damaged())
        return ScrubReport(blob_count, blob_bytes, record_count, tuple(findings))


def _check_database(cache: Cache) -> list[StoreDamage]:
    if cache.read_only or not cache.index.heal():
        return []
    why = "the database was damaged: an empty one stands in its place"
    return [StoreDamage("index", "index", why)]


def _check_records(cache: Cache, findings: list[StoreDamage]) -> int:
    """Check every record, and remove those that are wrong; return how many there were."""
    entries = list(cache.index.scan())
    wrong = [(entry, why) for entry in entries for why in [_fault(entry, cache.blobs)] if why]
    findings += [
        StoreDamage("record", entry.key.hex() if entry.key else "", why) for entry, why in wrong
    ]
    if not cache.read_only:
        cache.index.discard([entry.number for entry, _ in wrong])
    return len(entries)


def _check_blobs(cache: Cache, findings: list[StoreDamage]) -> tuple[int, int]:
    count = total_bytes = 0
    for entry in walk_blobs(cache.folder):
        if entry.digest:
            count += 1
            total_bytes += entry.size_bytes
            if not cache.blobs.verify(entry.digest):
                findings.append(
                    StoreDamage("blob", entry.digest, "its bytes do not have this sha256")
                )
    return count, total_bytes


def _set_aside(cache: Cache, kind: str, why: str, paths: Sequence[str]) -> Iterator[StoreDamage]:
    """Move files to quarantine, unless the cache is only read."""
    for path in paths:
        if not cache.read_only:
            set_aside(cache.folder, path, os.path.basename(path))
        yield StoreDamage(kind, os.path.relpath(path, cache.folder), why)


def _fault(entry: Entry, blobs: BlobStore) -> str:
    """Say what is wrong with a row of the index; empty if nothing is."""
    if entry.key is None or entry.value is None:
        return "its seal does not hold: it is damaged, or was made with another key"
    try:
        facts = read_facts(entry.value, blobs)
    except RecordError as error:
        return f"not a record: {error}"
    except StoreError as error:
        return f"the record itself is lost: blob {error.digest}"
    missing = [digest for digest in facts.refs if not blobs.has(digest)]
    return f"blob {missing[0]} is missing" if missing else ""
