"""Opens and closes a build over a cache and processes: it joins the generic engine with our rules
and our code.

In: where the cache is, whose records in it count, how many processes, what to do with failures and
hits. Out: a ``Scheduler``. Not done here: scheduling.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace

from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.foreign_records import foreign_lines
from ingot_artifacts.store.layers import open_layer
from ingot_artifacts.store.layout import versioned
from ingot_artifacts.store.trust import Trust
from ingot_build_rules.engine.actions.backlog import Backlog
from ingot_build_rules.engine.actions.codec import Codec
from ingot_build_rules.engine.actions.key import KeyMaker
from ingot_build_rules.engine.actions.values import Values
from ingot_build_rules.engine.cache.action_cache import ActionCache
from ingot_build_rules.engine.cache.code_digest import CodeDigests
from ingot_build_rules.engine.cache.file_digests import DiskFiles
from ingot_build_rules.engine.executors.registry import LINT, LOCAL, Site, open_executor
from ingot_build_rules.engine.scheduler import Observers, Policy, Scheduler
from ingot_build_rules.making.options.compile_options import PluginOption
from ingot_build_rules.making.options.plugins import with_plugins
from ingot_build_rules.making.rules.registry import RULEBOOK
from ingot_build_rules.making.stages.limit_keeper import LimitKeeper
from ingot_build_rules.making.stages.own_code import (
    PACKAGE_FOLDERS,
    code_digests,
    code_of,
    loaded_code_of,
    tool_path,
)
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """``cache_folder`` is written to, ``lower`` ones are only read; ``trust`` says whose records in
    them count; with ``read_only`` the first one is, too. ``jobs``: processes at most, 1 runs
    everything in this one; more are started when there is enough to do. ``rehash``: look into every
    file. ``makeflags``: names the jobserver of a make that shares out jobs; ``warn`` is told when
    it cannot be had. ``executor``: of the list; ``lint`` runs everything again, in this process, and
    fails what reads a file that its key does not know of. ``history``: rule -> seconds of one action in past builds.
    ``plugins``: those that the user has named: no other code from outside ever runs.
    ``max_bytes``: what the first cache may take, None for the default; ``tell`` is told when it was
    made smaller for that."""

    cache_folder: str
    trust: Trust
    lower: tuple[str, ...] = ()
    read_only: bool = False
    jobs: int = 1
    rehash: bool = False
    policy: Policy = field(default_factory=Policy)
    observers: Observers = field(default_factory=Observers)
    waiting: Callable[[int], None] | None = None
    makeflags: str = ""
    warn: Callable[[str], None] = lambda _: None
    executor: str = LOCAL
    history: Mapping[str, float] = field(default_factory=dict[str, float])
    plugins: tuple[PluginOption, ...] = ()
    max_bytes: int | None = None
    tell: Callable[[str], None] = lambda _: None


@contextmanager
def open_build(settings: BuildSettings) -> Generator[Scheduler]:
    """Open a build; its processes end with the block, at once if it fails.

    Raises:
        CacheAuthorityError: others can write to the cache. OutputError: it cannot be made or
            written.
    """
    with ExitStack() as stack:
        cache = stack.enter_context(_opened_cache(settings))
        files = disk_files(settings)
        values, backlog = Values(cache.blobs, Codec(RULEBOOK.types)), Backlog(settings.history)
        rulebook = with_plugins(RULEBOOK, settings.plugins)
        site = Site(
            rulebook, values, cache.layers, cache.temporary, backlog, settings.jobs,
            settings.makeflags, settings.warn, stack, [*PACKAGE_FOLDERS.values()],
        )  # fmt: skip
        executor = open_executor(settings.executor, site)
        build = Scheduler(
            rulebook, values, executor, ActionCache(cache.index, cache.blobs), cache.leases, files,
            key_maker(settings, files), _policy(settings), settings.observers, backlog,
        )  # fmt: skip
        try:
            yield build
        except BaseException:
            executor.close(kill=True)
            raise
        executor.close(kill=False)
        cache.index.touch(build.used_records())
        files.save()


@contextmanager
def _opened_cache(settings: BuildSettings) -> Generator[Cache]:
    """The cache while a build runs; with ``read_only`` an empty one above it, since what is made is
    of use within this build alone."""
    with ExitStack() as stack:
        folder, lower, trust = settings.cache_folder, settings.lower, settings.trust
        if settings.read_only:
            lower = (folder, *lower)
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ingot-"))
        cache = Cache(folder, [open_layer(path, trust) for path in lower], trust=trust)
        stack.callback(cache.close)
        if not settings.read_only:
            stack.push(LimitKeeper(cache, settings.max_bytes, settings.tell))
        stack.callback(_warn_of_foreign, cache, settings.warn)
        stack.enter_context(cache.building(settings.waiting))
        yield cache


def _warn_of_foreign(cache: Cache, warn: Callable[[str], None]) -> None:
    for line in foreign_lines(cache):
        warn(line)


def disk_files(settings: BuildSettings) -> DiskFiles:
    """Digests of files, kept between builds in the cache."""
    return DiskFiles(
        _facts_path(settings, "file_digests"),
        rehash=settings.rehash,
        saves=not settings.read_only,
        key=settings.trust.key,
    )


def key_maker(settings: BuildSettings, files: DiskFiles) -> KeyMaker:
    """Keys of actions of today's code and tools."""
    digests = code_digests_of(settings)
    return KeyMaker(
        code_of(digests), lambda tool: files.digest(tool_path(tool)), loaded_code_of(digests)
    )


def _policy(settings: BuildSettings) -> Policy:
    """To lint, everything runs again."""
    return (
        replace(settings.policy, checked_share=1.0)
        if settings.executor == LINT
        else settings.policy
    )


def code_digests_of(settings: BuildSettings) -> CodeDigests:
    """Digests of our own code, kept between builds in the cache."""
    return code_digests(
        _facts_path(settings, "code_digests"), saves=not settings.read_only, key=settings.trust.key
    )


def _facts_path(settings: BuildSettings, name: str) -> str:
    return os.path.join(versioned(settings.cache_folder), name)
