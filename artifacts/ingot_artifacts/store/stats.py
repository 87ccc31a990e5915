"""How much is in a cache, by rule.

In: a cache. Out: ``CacheStats``. Not done here: how often a build hit (the build's own report).
"""

from __future__ import annotations

import os

from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.survey import Survey, take_survey
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RuleStats:
    """Records of one rule (empty: of none); ``blob_bytes`` counts a blob once per rule that needs
    it."""

    rule: str
    record_count: int
    record_bytes: int
    blob_count: int
    blob_bytes: int


@dataclass(frozen=True, slots=True)
class CacheStats:
    """``foreign_count``: records whose seal does not hold; ``unreachable_bytes``: blobs that no record and no root needs; ``rules`` are sorted by
    name."""

    record_count: int
    foreign_count: int
    blob_count: int
    size_bytes: int
    unreachable_bytes: int
    quarantine_count: int
    root_count: int
    rules: tuple[RuleStats, ...]


def stat(cache: Cache) -> CacheStats:
    """Count records and blobs; no blob is read but those that hold a record."""
    survey = take_survey(cache)
    needed = {digest for entry in survey.records if entry.facts for digest in entry.facts.refs}
    needed.update(digest for kept in survey.roots for digest in kept.digests)
    names = sorted({entry.facts.rule for entry in survey.records if entry.facts})
    quarantine = os.path.join(cache.folder, "quarantine")
    return CacheStats(
        record_count=len(survey.records),
        foreign_count=cache.index.count_foreign()[0],
        blob_count=len(survey.blobs),
        size_bytes=survey.size_bytes,
        unreachable_bytes=sum(
            size for digest, size in survey.blobs.items() if digest not in needed
        ),
        quarantine_count=len(os.listdir(quarantine)) if os.path.isdir(quarantine) else 0,
        root_count=len(survey.roots),
        rules=tuple(_of_rule(survey, name) for name in names),
    )


def _of_rule(survey: Survey, rule: str) -> RuleStats:
    facts = [entry.facts for entry in survey.records if entry.facts and entry.facts.rule == rule]
    digests = {digest for item in facts for digest in item.refs if digest in survey.blobs}
    return RuleStats(
        rule,
        len(facts),
        sum(item.size_bytes for item in facts),
        len(digests),
        sum(survey.blobs[digest] for digest in digests),
    )
