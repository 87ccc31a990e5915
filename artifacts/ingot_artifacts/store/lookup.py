"""What a key or a digest stands for in a cache, and why it is still there.

In: the first digits of a key or of a digest. Out: records and blobs that start with them. Not done
here: printing.
"""

from __future__ import annotations

from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.records import RecordFacts
from ingot_artifacts.store.survey import Survey, take_survey
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """``blobs``: (digest, bytes; None where it is not in this folder); ``roots``: names of those
    that keep it."""

    key: str
    facts: RecordFacts
    used: float
    blobs: tuple[tuple[str, int | None], ...]
    roots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoundBlob:
    """``records``: (key, rule) of those that need it; ``roots``: names of those that keep it."""

    digest: str
    size_bytes: int | None
    records: tuple[tuple[str, str], ...]
    roots: tuple[str, ...]


def look_up(cache: Cache, prefix: str) -> tuple[FoundRecord | FoundBlob, ...]:
    """Return all records whose key, and all blobs whose digest, starts with ``prefix`` (hex
    digits), records first."""
    survey = take_survey(cache)
    records = [
        FoundRecord(
            entry.key.hex(),
            entry.facts,
            entry.used,
            tuple((digest, survey.blobs.get(digest)) for digest in entry.facts.refs),
            tuple(kept.root.name for kept in survey.roots if entry.key in kept.keys),
        )
        for entry in survey.records
        if entry.key is not None and entry.facts is not None and entry.key.hex().startswith(prefix)
    ]
    needed = {digest for entry in survey.records if entry.facts for digest in entry.facts.refs}
    digests = sorted(digest for digest in needed | set(survey.blobs) if digest.startswith(prefix))
    return (*records, *(_blob(survey, digest) for digest in digests))


def _blob(survey: Survey, digest: str) -> FoundBlob:
    users = [
        (entry.key.hex(), entry.facts.rule)
        for entry in survey.records
        if entry.key is not None and entry.facts is not None and digest in entry.facts.refs
    ]
    roots = tuple(kept.root.name for kept in survey.roots if digest in kept.digests)
    return FoundBlob(digest, survey.blobs.get(digest), tuple(users), roots)
