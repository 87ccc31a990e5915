"""The request of one build of a project.

In: options of the command line, or arguments of ``ingot.Project.build``. Out: ``BuildRequest``. Not
done here: reading either, building (``run_build``).
"""

from __future__ import annotations

from ingot_artifacts.store.trust import Trust
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """``words``: bundles, tests or output files, none for all; ``dry_run``: say what would run, and
    run nothing; ``frozen``: fail where a bundle or its sources are not those of its lock file;
    ``depfile``: where to write the sources of one bundle; ``allow_outside``: the project may write
    outside of its folder; ``cache_max_bytes``: what the cache may take, None for the default."""

    cache_folder: str
    trust: Trust
    words: tuple[str, ...] = ()
    jobs: int = 1
    dry_run: bool = False
    keep_going: bool = False
    expect_cached: bool = False
    frozen: bool = False
    rehash: bool = False
    read_only: bool = False
    caches_below: tuple[str, ...] = ()
    lint: bool = False
    checked_share: float = 0.0
    check_seed: int = 0
    depfile: str | None = None
    makeflags: str = ""
    allow_outside: bool = False
    cache_max_bytes: int | None = None
