"""What ``ingot cache`` tells of a cache: plain values for ``--json``, lines for people.

In: what the store has found or done. Out: values and lines. Not done here: finding and doing it
(``ingot_artifacts.store``), printing (``cache``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from ingot_build_rules.tools.cli.shell.console import format_bytes, format_table

if TYPE_CHECKING:
    from ingot_artifacts.store.collect import CollectReport
    from ingot_artifacts.store.lookup import FoundBlob, FoundRecord
    from ingot_artifacts.store.scrub import ScrubReport
    from ingot_artifacts.store.stats import CacheStats, RuleStats
    from ingot_artifacts.store.survey import Kept
    from ingot_build_rules.tools.workspace.bundles_in_cache import CachedBundle


def stat_values(path: str, stats: CacheStats, limit_bytes: int | None) -> dict[str, object]:
    """Return how much is in the cache at ``path``, by rule, and how much may be."""
    return {
        "cache": path,
        "record_count": stats.record_count,
        "foreign_count": stats.foreign_count,
        "blob_count": stats.blob_count,
        "size_bytes": stats.size_bytes,
        "limit_bytes": limit_bytes,
        "unreachable_bytes": stats.unreachable_bytes,
        "quarantine_count": stats.quarantine_count,
        "root_count": stats.root_count,
        "rules": {item.rule: _rule_values(item) for item in stats.rules},
    }


def _rule_values(item: RuleStats) -> dict[str, int]:
    return {
        "record_count": item.record_count,
        "record_bytes": item.record_bytes,
        "blob_count": item.blob_count,
        "blob_bytes": item.blob_bytes,
    }


def stat_lines(path: str, stats: CacheStats, limit_bytes: int | None) -> list[str]:
    """Return the statistics of a cache as lines for people."""
    rows = [
        ("cache", path),
        ("size", format_bytes(stats.size_bytes)),
        ("limit", "none" if limit_bytes is None else format_bytes(limit_bytes)),
        ("records", str(stats.record_count)),
        ("foreign", str(stats.foreign_count)),
        ("blobs", str(stats.blob_count)),
        ("unreachable", format_bytes(stats.unreachable_bytes)),
        ("quarantined", str(stats.quarantine_count)),
        ("roots", str(stats.root_count)),
    ]
    rules = [("rule", "records", "blobs", "bytes"), *map(_rule_row, stats.rules)]
    table = format_table(rules, right=(1, 2, 3)) if stats.rules else []
    return [*format_table(rows), *([""] if table else []), *table]


def _rule_row(item: RuleStats) -> tuple[str, ...]:
    counts = str(item.record_count), str(item.blob_count)
    return (item.rule or "-", *counts, format_bytes(item.blob_bytes))


def collect_values(
    path: str, report: CollectReport, max_bytes: int, *, dry_run: bool
) -> dict[str, object]:
    """Return what a collection has forgotten and kept; ``max_bytes``: the size that was asked
    for."""
    return {
        "cache": path,
        "dry_run": dry_run,
        "max_bytes": max_bytes,
        "is_reached": report.size_bytes_after <= max_bytes,
        "before": {
            "record_count": report.record_count_before,
            "blob_count": report.blob_count_before,
            "size_bytes": report.size_bytes_before,
        },
        "after": {
            "record_count": report.record_count_after,
            "blob_count": report.blob_count_after,
            "size_bytes": report.size_bytes_after,
        },
        "leftover_bytes": report.leftover_bytes,
        "forgotten": dict(report.forgotten),
        "kept": {kept.root.name: _kept_values(kept) for kept in report.roots},
    }


def _kept_values(kept: Kept) -> dict[str, int]:
    return {"record_count": len(kept.keys), "size_bytes": kept.size_bytes}


def collect_lines(report: CollectReport, max_bytes: int, *, dry_run: bool) -> list[str]:
    """Return the result of a collection as lines for people; ``max_bytes``: the requested size."""
    before, after = map(format_bytes, (report.size_bytes_before, report.size_bytes_after))
    lines = [
        f"{'would come' if dry_run else 'came'} from {before} to {after}",
        f"records  {report.record_count_before} -> {report.record_count_after}",
        f"blobs    {report.blob_count_before} -> {report.blob_count_after}",
    ]
    if report.leftover_bytes:
        lines.append(f"leftovers and quarantine  {format_bytes(report.leftover_bytes)}")
    lines += [f"forgotten  {rule or '-'}  {count}" for rule, count in report.forgotten]
    for kept in report.roots:
        size = format_bytes(kept.size_bytes)
        lines.append(f"kept by root {kept.root.name}  {len(kept.keys)} records  {size}")
    if report.size_bytes_after > max_bytes:
        missed = f"missed {format_bytes(max_bytes)}: bundles that are present need the rest"
        lines.append(f"{missed}; remove some, or build fewer")
    return lines


def scrub_values(path: str, report: ScrubReport) -> dict[str, object]:
    """Return what was checked and what was wrong."""
    return {
        "cache": path,
        "record_count": report.record_count,
        "blob_count": report.blob_count,
        "size_bytes": report.blob_bytes,
        "findings": [asdict(item) for item in report.findings],
    }


def scrub_lines(report: ScrubReport, *, dry_run: bool) -> list[str]:
    """Return the result of a scrub as lines for people."""
    checked = f"{report.record_count} records, {report.blob_count} blobs"
    healed = ["moved to quarantine or deleted; the next build makes it anew"]
    return [
        *(f"{item.kind}  {item.name}: {item.why}" for item in report.findings),
        f"checked {checked}, {format_bytes(report.blob_bytes)}: {len(report.findings)} wrong",
        *(healed if report.findings and not dry_run else []),
    ]


def record_values(item: FoundRecord) -> dict[str, object]:
    """Return what a record was made from, what it needs and what keeps it."""
    return {
        "key": item.key,
        "rule": item.facts.rule,
        "size_bytes": item.facts.size_bytes,
        "used_unix_seconds": int(item.used),
        "ingredients": dict(item.facts.ingredients),
        "blobs": dict(item.blobs),
        "kept_by": list(item.roots),
    }


def record_lines(item: FoundRecord) -> list[str]:
    """Return a record as lines for people."""
    keepers = _roots(item.roots) or [("last use", "until a collection needs room")]
    return [
        f"record  {item.key}",
        f"rule    {item.facts.rule or '-'}",
        f"size    {format_bytes(item.facts.size_bytes)}",
        *_section("made from", item.facts.ingredients),
        *_section("needs", [(digest, _size(size_bytes)) for digest, size_bytes in item.blobs]),
        *_section("kept by", keepers),
    ]


def blob_values(item: FoundBlob) -> dict[str, object]:
    """Return which records need a blob and what keeps it."""
    return {
        "digest": item.digest,
        "size_bytes": item.size_bytes,
        "needed_by": [{"key": key, "rule": rule} for key, rule in item.records],
        "kept_by": list(item.roots),
    }


def blob_lines(item: FoundBlob) -> list[str]:
    """Return a blob as lines for people."""
    unneeded = [] if item.records else [("nothing", "the next collection deletes it")]
    return [
        f"blob  {item.digest}",
        f"size  {_size(item.size_bytes)}",
        *_section("needed by", [(rule or "-", key) for key, rule in item.records]),
        *_section("kept by", _roots(item.roots) or unneeded),
    ]


def bundle_values(item: CachedBundle) -> dict[str, object]:
    """Return what made a bundle and what keeps that."""
    return {
        "digest": item.digest,
        "size_bytes": item.size_bytes,
        "made_by": list(item.keys),
        "kept_by": list(item.roots),
    }


def bundle_lines(item: CachedBundle) -> list[str]:
    """Return a bundle of the cache as lines for people."""
    keepers = _roots(item.roots) or [("last use", "until a collection needs room")]
    return [
        f"bundle  {item.digest}",
        f"size    {format_bytes(item.size_bytes)}",
        *_section("made by", [("bundle", key) for key in item.keys]),
        *_section("kept by", keepers),
    ]


def _roots(names: Sequence[str]) -> list[tuple[str, str]]:
    return [("root", name) for name in names]


def _section(title: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    return [title, *(f"  {line}" for line in format_table(rows))] if rows else []


def _size(size_bytes: int | None) -> str:
    return "not here" if size_bytes is None else format_bytes(size_bytes)
