"""Verb ``cache``: what is in the cache, making it smaller, checking it, saying why something is
there.

In: a cache's folder. Out: a report. Not done here: the work (``ingot_artifacts.store``).
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ingot_build_rules.making.options.cache_size import NO_LIMIT
from ingot_build_rules.tools.cli.building import cache_report as report
from ingot_build_rules.tools.cli.shell import console
from ingot_build_rules.tools.cli.shell.failure import FailedCommand
from ingot_build_rules.tools.workspace.cache_folder import (
    cache_folder,
    cache_max_bytes,
    cache_trust,
)
from ingot_compiler.ir.errors import UserError, VerificationError

if TYPE_CHECKING:
    from ingot_artifacts.store.cache import Cache
    from ingot_artifacts.store.lookup import FoundBlob, FoundRecord
    from ingot_build_rules.tools.workspace.bundles_in_cache import CachedBundle

_PREFIX_DIGITS_MIN = 6
# option -> the actions that it is for
_ONLY_FOR = {"max": ("gc",), "wait": ("gc",), "dry_run": ("gc", "verify"), "what": ("why",)}


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
    where = "command ingot cache"
    for name, actions in _ONLY_FOR.items():
        given = getattr(arguments, name)
        if given not in (None, False) and arguments.action not in actions:
            option = "KEY_OR_DIGEST" if name == "what" else "--" + name.replace("_", "-")
            what = f"{option} is not for {arguments.action}"
            raise UserError(what, where, f"it is for {' and '.join(actions)}", "leave it out")
    for action, name, option in (("gc", "max", "--max SIZE"), ("why", "what", "KEY_OR_DIGEST")):
        if arguments.action == action and getattr(arguments, name) is None:
            what = f"{action} needs {option}"
            raise UserError(what, where, "it is not given", "see ingot cache --help")


def _stat(cache: Cache, arguments: argparse.Namespace) -> int:
    from ingot_artifacts.store.limit import limit_bytes
    from ingot_artifacts.store.stats import stat

    found = stat(cache)
    given = cache_max_bytes()
    limit = None if given == NO_LIMIT else limit_bytes(cache.path, found.size_bytes, given)
    values = report.stat_values(cache.path, found, limit)
    lines = report.stat_lines(cache.path, found, limit)
    console.print_report(values, lines, as_json=arguments.json)
    return 0


def _gc(cache: Cache, arguments: argparse.Namespace) -> int:
    from ingot_artifacts.store.collect import gc

    if not arguments.dry_run:
        cache.roots.forget_gone()
    found = gc(cache, arguments.max, arguments.dry_run, arguments.wait or 0)
    values = report.collect_values(cache.path, found, arguments.max, dry_run=arguments.dry_run)
    lines = report.collect_lines(found, arguments.max, dry_run=arguments.dry_run)
    console.print_report(values, lines, as_json=arguments.json)
    return 0


def _verify(cache: Cache, arguments: argparse.Namespace) -> int:
    from ingot_artifacts.store.scrub import verify

    found = verify(cache)
    values = report.scrub_values(cache.path, found)
    lines = report.scrub_lines(found, dry_run=arguments.dry_run)
    if not (found.findings and arguments.json):
        console.print_report(values, lines, as_json=arguments.json)
    if found.findings:
        raise FailedCommand(_damaged(cache, len(found.findings)), values)
    return 0


def _damaged(cache: Cache, count: int) -> VerificationError:
    why = f"expected nothing wrong, got {count} findings"
    do = "build again, which makes what is missing"
    return VerificationError("the cache is damaged", cache.path, why, do)


def _why(cache: Cache, arguments: argparse.Namespace) -> int:
    item = _look_up_one(cache, arguments.what)
    name = type(item).__name__
    values = _TOLD[name][0](item)
    console.print_report(values, _TOLD[name][1](item), as_json=arguments.json)
    return 0


_TOLD: dict[str, tuple[Callable[[Any], dict[str, object]], Callable[[Any], list[str]]]] = {
    "FoundRecord": (report.record_values, report.record_lines),
    "FoundBlob": (report.blob_values, report.blob_lines),
    "CachedBundle": (report.bundle_values, report.bundle_lines),
}
"""Class -> how it is told to programs, and to people."""


def _look_up_one(cache: Cache, text: str) -> FoundRecord | FoundBlob | CachedBundle:
    """The one record, blob or bundle whose key or digest begins with these digits."""
    from ingot_artifacts.store.lookup import look_up
    from ingot_build_rules.tools.workspace.bundles_in_cache import bundles_in_cache

    prefix = text.lower()
    if not re.fullmatch(r"[0-9a-f]{6,64}", prefix):
        what, where = "not a key and not a digest", "command ingot cache why"
        why = f"expected {_PREFIX_DIGITS_MIN} to 64 hex digits, got {text!r}"
        raise UserError(what, where, why, "copy it from another report")
    found = (*look_up(cache, prefix), *bundles_in_cache(cache, prefix))
    if len(found) != 1:
        raise _not_one(cache, prefix, found)
    return found[0]


def _not_one(
    cache: Cache, prefix: str, entries: Sequence[FoundRecord | FoundBlob | CachedBundle]
) -> UserError:
    from ingot_artifacts.store.lookup import FoundRecord

    names = [item.key if isinstance(item, FoundRecord) else item.digest for item in entries]
    why = f"expected one that starts with {prefix}, got {', '.join(names) or 'none'}"
    if entries:
        return UserError("several records, blobs or bundles", cache.path, why, "give more digits")
    do = "it was never made, or has been collected; `ingot cache stat` counts what is there"
    return UserError("no such record, blob or bundle", cache.path, why, do)


_ACTIONS = {"stat": _stat, "gc": _gc, "verify": _verify, "why": _why}
