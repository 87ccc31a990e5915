"""Makes a cache smaller: forgets the records used longest ago, then deletes the blobs that nothing
needs any more.

In: a cache, a size. Out: what went, what stayed and why. Not done here: damage (``scrub``). Never
while a build runs.

Records go first: who stops us in between leaves blobs that the next collection deletes, never a
record without its blobs.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from contextlib import nullcontext, suppress

from ingot_artifacts.errors import ArtifactError, read_only_error
from ingot_artifacts.store.atomic import output_error
from ingot_artifacts.store.blob_file import blob_path
from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.survey import Kept, RecordEntry, Survey, take_survey
from ingot_artifacts.store.tally import Tally, set_tally
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CollectReport:
    """Sizes count blobs and records. ``forgotten``: (rule, records); ``roots`` keep what they keep
    whatever the size.

    ``leftover_bytes``: what killed writers and ``scrub`` left, deleted as well.
    """

    size_bytes_before: int
    size_bytes_after: int
    record_count_before: int
    record_count_after: int
    blob_count_before: int
    blob_count_after: int
    leftover_bytes: int
    forgotten: tuple[tuple[str, int], ...]
    roots: tuple[Kept, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    forgotten: tuple[RecordEntry, ...]
    deleted: tuple[str, ...]
    size_bytes: int


def gc(
    cache: Cache,
    max_size_bytes: int,
    dry_run: bool = False,
    wait_seconds: float = 0,
    limit_bytes: int = 0,
) -> CollectReport:
    """Bring a cache down to ``max_size_bytes``, as far as its roots allow.

    Args:
        cache: not opened for reading alone, unless for a dry run.
        max_size_bytes: 0 or more.
        dry_run: only say what would be done, as of this moment.
        wait_seconds: for a build that runs to end.
        limit_bytes: a cache that has no more than this forgets nothing.

    Raises:
        CacheInUseError: a build runs.
        ArtifactError: a root is damaged.
        OutputError: a file cannot be deleted.
    """
    if cache.read_only and not dry_run:
        raise read_only_error(cache.folder)
    _check_roots(cache)
    with nullcontext() if dry_run else cache.leases.alone(wait_seconds):
        survey = take_survey(cache)
        goal_bytes = max_size_bytes if survey.size_bytes > limit_bytes else survey.size_bytes
        plan = _plan(survey, goal_bytes, time.time())
        leftovers = _leftovers(cache)
        leftover_bytes = sum(map(_size_bytes, leftovers))
        if not dry_run:
            _carry_out(cache, plan, leftovers)
            _settle(cache, plan.size_bytes, limit_bytes)
    return _report(survey, plan, leftover_bytes)


def _check_roots(cache: Cache) -> None:
    damaged = cache.roots.damaged()
    if damaged:
        what, why = "a root of the cache is damaged", "what it keeps is not known"
        raise ArtifactError(what, damaged[0], why, "check the cache first (ingot cache verify)")


def _report(survey: Survey, plan: _Plan, leftover_bytes: int) -> CollectReport:
    forgotten = Counter(entry.facts.rule if entry.facts else "" for entry in plan.forgotten)
    return CollectReport(
        survey.size_bytes,
        plan.size_bytes,
        len(survey.records),
        len(survey.records) - len(plan.forgotten),
        len(survey.blobs),
        len(survey.blobs) - len(plan.deleted),
        leftover_bytes,
        tuple(sorted(forgotten.items())),
        survey.roots,
    )


def _plan(survey: Survey, max_size_bytes: int, now: float) -> _Plan:
    """Forget what is no record, then from the one used longest ago on until the rest fits."""
    forgotten = [entry for entry in survey.records if entry.facts is None or entry.key is None]
    known = [entry for entry in survey.records if entry.facts is not None and entry.key is not None]
    users = Counter(digest for entry in known if entry.facts for digest in entry.facts.refs)
    users.update(digest for kept in survey.roots for digest in kept.digests)
    rooted = {key for kept in survey.roots for key in kept.keys}
    size_bytes = sum(survey.blobs.get(digest, 0) for digest in users)
    size_bytes += sum(entry.facts.size_bytes for entry in known if entry.facts)
    # A time that lies ahead is from before the clock was set back: it counts as now.
    for entry in sorted(known, key=lambda entry: (min(entry.used, now), entry.key or b"")):
        if size_bytes <= max_size_bytes:
            break
        if entry.key in rooted or entry.facts is None:
            continue
        forgotten.append(entry)
        size_bytes -= entry.facts.size_bytes
        for digest in entry.facts.refs:
            users[digest] -= 1
            if not users[digest]:
                size_bytes -= survey.blobs.get(digest, 0)
    deleted = tuple(digest for digest in survey.blobs if not users[digest])
    return _Plan(tuple(forgotten), deleted, size_bytes)


def _carry_out(cache: Cache, plan: _Plan, leftovers: list[str]) -> None:
    cache.index.discard([entry.number for entry in plan.forgotten])
    cache.index.settle_times()
    try:
        for path in [blob_path(cache.folder, digest) for digest in plan.deleted] + leftovers:
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
    except OSError as error:
        raise output_error(cache.path, str(error.filename or cache.folder), error) from error


def _settle(cache: Cache, size_bytes: int, limit_bytes: int) -> None:
    """Note what is left, and whether that is more than the limit: last, so that who is stopped
    before leaves a sum that is too large."""
    missed_bytes = limit_bytes if size_bytes > limit_bytes else 0
    try:
        set_tally(cache.folder, Tally(size_bytes, missed_bytes, size_bytes))
    except OSError as error:
        raise output_error(cache.path, str(error.filename or cache.folder), error) from error


def _leftovers(cache: Cache) -> list[str]:
    """List what killed writers left, and what is in quarantine."""
    found: list[str] = []
    for name in ("tmp", "quarantine"):
        folder = os.path.join(cache.folder, name)
        with suppress(FileNotFoundError):
            found += [os.path.join(folder, file) for file in sorted(os.listdir(folder))]
    return found


def _size_bytes(path: str) -> int:
    total = os.lstat(path).st_size
    for folder, _, files in os.walk(path):
        total += sum(os.lstat(os.path.join(folder, file)).st_size for file in files)
    return total
