"""Verb ``cache``: what is in the cache, making it smaller, checking it, saying why something is
there.

In: a cache's folder. Out: a report. Not done here: the work (``ingot_artifacts.store``).
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ingot_build_rules.cli import console, usage
from ingot_build_rules.cli.options import CACHE, JSON, Option, add_options
from ingot_build_rules.workspace.cache_folder import cache_folder, cache_trust
from ingot_compiler.ir.errors import UserError

if TYPE_CHECKING:
    from ingot_artifacts.store.cache import Cache
    from ingot_artifacts.store.lookup import FoundBlob, FoundRecord

_EXIT_FAILED = 4
_PREFIX_DIGITS_MIN = 6
# option -> the actions that it is for
_ONLY_FOR = {"max": ("gc",), "wait": ("gc",), "dry_run": ("gc", "verify"), "what": ("why",)}


_OPTIONS = (
    Option("--max", "for gc: the size to come down to, such as 5GB", "SIZE", usage.size_bytes),
    Option("--wait", "for gc: wait for a build that runs", "SECONDS", usage.seconds),
    Option("--dry-run", "for gc and verify: report only"),
)
_ACTIONS_HELP = (
    "stat: how much is there; gc: forget what was used longest ago; verify: check every byte; "
    "why: say what a key or a digest is, and what keeps it"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("action", choices=tuple(_ACTIONS), metavar="ACTION", help=_ACTIONS_HELP)
    parser.add_argument(
        "what", nargs="?", metavar="KEY_OR_DIGEST", help="for why: its first digits, 6 or more"
    )
    add_options(parser, *_OPTIONS, *CACHE, JSON)


def run(arguments: argparse.Namespace) -> int:
    """Do one of the four."""
    from ingot_artifacts.store.cache import Cache

    _check(arguments)
    folder = cache_folder(arguments.cache)
    if arguments.action != "stat" and not os.path.isdir(folder):
        do = "build something first, or name another folder (--cache DIR)"
        raise UserError("there is no cache", folder, "expected a folder, got none", do)
    read_only = arguments.action in ("stat", "why") or arguments.dry_run
    trust = cache_trust(shared=arguments.cache_shared, writes=not read_only)
    cache = Cache(folder, read_only=read_only, trust=trust)
    try:
        return _ACTIONS[arguments.action](cache, arguments)
    finally:
        cache.close()


def _check(arguments: argparse.Namespace) -> None:
    for name, actions in _ONLY_FOR.items():
        given = getattr(arguments, name)
        if given not in (None, False) and arguments.action not in actions:
            option = "KEY_OR_DIGEST" if name == "what" else "--" + name.replace("_", "-")
            raise UserError(
                f"{option} is not for {arguments.action}", "command ingot cache", f"it is for {' and '.join(actions)}",
                "leave it out",
            )  # fmt: skip
    for action, name, option in (("gc", "max", "--max SIZE"), ("why", "what", "KEY_OR_DIGEST")):
        if arguments.action == action and getattr(arguments, name) is None:
            raise UserError(
                f"{action} needs {option}",
                "command ingot cache",
                "it is not given",
                "see ingot cache --help",
            )


def _stat(cache: Cache, arguments: argparse.Namespace) -> int:
    from ingot_artifacts.store.stats import stat

    found = stat(cache)
    if arguments.json:
        rules = {
            item.rule: {
                "records": item.record_count,
                "record_bytes": item.record_bytes,
                "blobs": item.blob_count,
                "blob_bytes": item.blob_bytes,
            }
            for item in found.rules
        }
        console.print_json(
            {
                "cache": cache.path,
                "records": found.record_count,
                "blobs": found.blob_count,
                "bytes": found.size_bytes,
                "unreachable_bytes": found.unreachable_bytes,
                "quarantined": found.quarantine_count,
                "roots": found.root_count,
                "rules": rules,
            }
        )
        return 0
    console.print_lines(f"cache        {cache.path}")
    console.print_lines(f"size         {console.format_bytes(found.size_bytes)}")
    console.print_lines(f"records      {found.record_count}")
    console.print_lines(f"blobs        {found.blob_count}")
    console.print_lines(f"unreachable  {console.format_bytes(found.unreachable_bytes)}")
    console.print_lines(f"quarantined  {found.quarantine_count}")
    console.print_lines(f"roots        {found.root_count}")
    rows = [("rule", "records", "blobs", "bytes")]
    rows += [
        (
            item.rule or "-",
            str(item.record_count),
            str(item.blob_count),
            console.format_bytes(item.blob_bytes),
        )
        for item in found.rules
    ]
    if found.rules:
        console.print_lines("", *console.format_table(rows, right=(1, 2, 3)))
    return 0


def _gc(cache: Cache, arguments: argparse.Namespace) -> int:
    from ingot_artifacts.store.collect import gc

    if not arguments.dry_run:
        for root in cache.roots.roots():  # a bundle that is gone keeps nothing any more
            if os.path.isabs(root.name) and not os.path.exists(root.name):
                cache.roots.remove(root.name)
    found = gc(cache, arguments.max, arguments.dry_run, arguments.wait or 0)
    if arguments.json:
        console.print_json(
            {
                "cache": cache.path,
                "dry_run": arguments.dry_run,
                "bytes_before": found.size_bytes_before,
                "bytes_after": found.size_bytes_after,
                "records_before": found.record_count_before,
                "records_after": found.record_count_after,
                "blobs_before": found.blob_count_before,
                "blobs_after": found.blob_count_after,
                "leftover_bytes": found.leftover_bytes,
                "forgotten": dict(found.forgotten),
                "roots": {
                    kept.root.name: {"records": len(kept.keys), "bytes": kept.size_bytes}
                    for kept in found.roots
                },
            }
        )
        return 0
    before, after = map(console.format_bytes, (found.size_bytes_before, found.size_bytes_after))
    console.print_lines(f"{'would come' if arguments.dry_run else 'came'} from {before} to {after}")
    console.print_lines(f"records  {found.record_count_before} -> {found.record_count_after}")
    console.print_lines(f"blobs    {found.blob_count_before} -> {found.blob_count_after}")
    if found.leftover_bytes:
        console.print_lines(
            f"leftovers and quarantine  {console.format_bytes(found.leftover_bytes)}"
        )
    for rule, count in found.forgotten:
        console.print_lines(f"forgotten  {rule or '-'}  {count}")
    for kept in found.roots:
        console.print_lines(
            f"kept by root {kept.root.name}  {len(kept.keys)} records  {console.format_bytes(kept.size_bytes)}"
        )
    if found.size_bytes_after > arguments.max:
        console.print_lines(f"more than {console.format_bytes(arguments.max)}: roots keep the rest")
    return 0


def _verify(cache: Cache, arguments: argparse.Namespace) -> int:
    from ingot_artifacts.store.scrub import verify

    found = verify(cache)
    if arguments.json:
        findings = [
            {"kind": item.kind, "name": item.name, "why": item.why} for item in found.findings
        ]
        counts = {
            "records": found.record_count,
            "blobs": found.blob_count,
            "bytes": found.blob_bytes,
        }
        console.print_json({"cache": cache.path, **counts, "findings": findings})
    else:
        for item in found.findings:
            console.print_lines(f"{item.kind}  {item.name}: {item.why}")
        size = console.format_bytes(found.blob_bytes)
        console.print_lines(
            f"checked {found.record_count} records, {found.blob_count} blobs, {size}: {len(found.findings)} wrong"
        )
        if found.findings and not arguments.dry_run:
            console.print_lines("moved to quarantine or deleted; the next build makes it anew")
    return _EXIT_FAILED if found.findings else 0


def _why(cache: Cache, arguments: argparse.Namespace) -> int:
    from ingot_artifacts.store.lookup import FoundRecord, look_up

    prefix = arguments.what.lower()
    if not re.fullmatch(r"[0-9a-f]{6,64}", prefix):
        why = f"expected {_PREFIX_DIGITS_MIN} to 64 hex digits, got {arguments.what!r}"
        raise UserError(
            "not a key and not a digest",
            "command ingot cache why",
            why,
            "copy it from another report",
        )
    found = look_up(cache, prefix)
    if len(found) != 1:
        names = [item.key if isinstance(item, FoundRecord) else item.digest for item in found]
        why = f"expected one that starts with {prefix}, got {', '.join(names) or 'none'}"
        do = (
            "give more digits"
            if found
            else "it was never made, or has been collected; `ingot cache stat` counts what is there"
        )
        raise UserError(
            "no such record or blob" if not found else "several records or blobs",
            cache.path,
            why,
            do,
        )
    item = found[0]
    if isinstance(item, FoundRecord):
        _print_record(item, json=arguments.json)
    else:
        _print_blob(item, json=arguments.json)
    return 0


def _print_record(item: FoundRecord, *, json: bool) -> None:
    if json:
        console.print_json(
            {
                "record": item.key,
                "rule": item.facts.rule,
                "bytes": item.facts.size_bytes,
                "used": int(item.used),
                "ingredients": dict(item.facts.ingredients),
                "blobs": dict(item.blobs),
                "roots": list(item.roots),
            }
        )
        return
    console.print_lines(f"record  {item.key}")
    console.print_lines(f"rule    {item.facts.rule or '-'}")
    console.print_lines(f"size    {console.format_bytes(item.facts.size_bytes)}")
    _print_section("made from", item.facts.ingredients)
    _print_section("needs", [(digest, _size(size)) for digest, size in item.blobs])
    _print_section(
        "kept by",
        [("root", name) for name in item.roots] or [("last use", "until a collection needs room")],
    )


def _print_blob(item: FoundBlob, *, json: bool) -> None:
    if json:
        records = [{"record": key, "rule": rule} for key, rule in item.records]
        console.print_json(
            {
                "blob": item.digest,
                "bytes": item.size_bytes,
                "records": records,
                "roots": list(item.roots),
            }
        )
        return
    console.print_lines(f"blob  {item.digest}")
    console.print_lines(f"size  {_size(item.size_bytes)}")
    _print_section("needed by", [(rule or "-", key) for key, rule in item.records])
    if item.roots or not item.records:
        _print_section(
            "kept by",
            [("root", name) for name in item.roots]
            or [("nothing", "the next collection deletes it")],
        )


def _print_section(title: str, rows: Sequence[tuple[str, str]]) -> None:
    if rows:
        console.print_lines(title, *(f"  {line}" for line in console.format_table(rows)))


def _size(size: int | None) -> str:
    return "not here" if size is None else console.format_bytes(size)


_ACTIONS = {"stat": _stat, "gc": _gc, "verify": _verify, "why": _why}
