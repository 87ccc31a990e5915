"""One build of a project, from the project as it is read to a report: what ``ingot build`` and
``ingot.Project.build`` share.

In: a loaded project, what is asked for, an observer of events. Out: ``Report``; bundles, lock files
and what the workspace remembers. Not done here: arguments and printing (``cli.build``), what is up
to date (``build_project``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ingot_artifacts.store.atomic import sync_folders
from ingot_artifacts.store.layout import versioned
from ingot_artifacts.store.roots import Roots
from ingot_artifacts.store.trust import Trust
from ingot_build_rules.compilation.lock_file import record_code
from ingot_build_rules.compilation.open_build import BuildSettings, code_digests_of, open_build
from ingot_build_rules.compilation.output_file import write_text
from ingot_build_rules.compilation.toolchain import toolchain
from ingot_build_rules.engine.actions.build import Count
from ingot_build_rules.engine.cache.file_digests import stamp_of
from ingot_build_rules.engine.cache.unchanged import Stamp, forget
from ingot_build_rules.engine.events.depfile import depfile_text
from ingot_build_rules.engine.events.events import (
    BuildFinished,
    BuildStarted,
    Event,
    Message,
    Observer,
    TargetFinished,
    TargetHow,
)
from ingot_build_rules.engine.events.history import (
    medians,
    read_history,
    with_events,
    write_history,
)
from ingot_build_rules.engine.scheduler import Policy, Scheduler
from ingot_build_rules.project.compile_requests import CompileRequest, compile_requests
from ingot_build_rules.project.model import BundleSpec, TestSpec
from ingot_build_rules.project.selection import Selection
from ingot_build_rules.workspace.action_events import ActionEvents
from ingot_build_rules.workspace.build_project import TargetResult, Workspace
from ingot_build_rules.workspace.code_tables import drop_code
from ingot_build_rules.workspace.locks import FILES_LISTED_MAX, check_lock, lock_bundle
from ingot_build_rules.workspace.open_workspace import LoadedProject
from ingot_build_rules.workspace.places import check_outputs
from ingot_build_rules.workspace.state import (
    failed_trace_path,
    read_workspace,
    state_folder,
    write_workspace,
)
from ingot_build_rules.workspace.tools import Tools, tools_of
from ingot_build_rules.workspace.trace_keeper import TraceKeeper
from ingot_compiler.ir.errors import UserError


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """``words``: bundles, tests or output files, none for all; ``dry_run``: say what would run, and
    run nothing; ``frozen``: fail where a bundle or its sources are not those of its lock file;
    ``depfile``: where to write the sources of one bundle; ``allow_outside``: the project may write
    outside of its folder."""

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


@dataclass(slots=True)
class Report:
    """What a build did. ``explanations``: by bundle, why what ran did; ``would_run``: what had to
    run and was not allowed to; ``looked_at``: what every source looked like when it had the content
    that was built, None where one has changed since."""

    results: list[TargetResult] = field(default_factory=list[TargetResult])
    counts: Mapping[str, Count] = field(default_factory=dict[str, Count])
    seconds: float = 0.0
    explanations: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    would_run: list[str] = field(default_factory=list[str])
    tool_paths: tuple[str, ...] = ()
    looked_at: Mapping[str, Stamp] | None = None

    def named(self, *hows: str) -> list[str]:
        """Names of the bundles and tests that ended in one of these ways."""
        return [item.name for item in self.results if item.how in hows]

    def good(self) -> list[str]:
        """Names of the bundles and tests that are as they should be now."""
        return [item.name for item in self.results if item.is_good]

    def plain(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "rules": {
                name: {"ran": count.ran, "hit": count.hit} for name, count in self.counts.items()
            },
            "seconds": round(self.seconds, 3),
            "targets": {
                item.name: {"how": item.how, "path": item.path or None, "digest": item.root or None}
                for item in self.results
            },
            "built": self.good(),
            "failed": self.named("failed"),
            "skipped": self.named("skipped"),
            "would_run": self.would_run,
            "explanations": {name: list(lines) for name, lines in self.explanations.items()},
        }


def project_history(loaded: LoadedProject) -> dict[str, float]:
    """Seconds of one action of each rule in past builds."""
    return medians(read_history(_history_path(loaded)))


def run_build(
    loaded: LoadedProject, request: BuildRequest, observe: Observer = lambda _: None
) -> Report:
    """Build what is asked for.

    Raises:
        UserError: words that mean nothing, a depfile for several bundles, outputs outside of the
            project. Failures of bundles and tests are in the report.
    """
    started = time.perf_counter()
    selection = loaded.select(request.words)
    if request.depfile is not None and len(selection.bundles) != 1:
        why = f"expected one bundle, got {len(selection.bundles)}"
        raise UserError("a depfile is about one bundle", "option --depfile", why, "name one bundle")
    if not request.allow_outside:
        check_outputs(loaded.folder, loaded.path, _bundles(loaded, selection))
    report = Report()
    with _opened(loaded, request, selection, observe) as opened:
        report.results = _build(loaded, request, selection, opened)
        report.explanations = _explain(loaded, request, opened, report.results)
        report.counts, report.tool_paths = opened.build.counts, opened.tools.paths
        report.looked_at = _stamps(opened.build, report.results)
        report.would_run = [_name(item.rule.name, item.label) for item in opened.build.would_run]
    report.seconds = time.perf_counter() - started
    counts = {name: {"ran": count.ran, "hit": count.hit} for name, count in report.counts.items()}
    built = tuple(report.good())
    observe(BuildFinished(counts, report.seconds, tuple(report.named("failed")), built))
    return report


def _bundles(loaded: LoadedProject, selection: Selection) -> list[BundleSpec]:
    """The bundles that are asked for, and those that the tests that are asked for run."""
    names = {
        *selection.bundles,
        *(spec.bundle for spec in loaded.project.tests if spec.name in selection.tests),
    }
    return [spec for spec in loaded.project.bundles if spec.name in names]


@dataclass(slots=True)
class _Opened:
    build: Scheduler
    workspace: Workspace
    tools: Tools


@contextmanager
def _opened(
    loaded: LoadedProject, request: BuildRequest, selection: Selection, observe: Observer
) -> Generator[_Opened]:
    """Open cache, processes and what the workspace remembers; keep all of it at the end."""
    samples, events = read_history(_history_path(loaded)), list[Event]()

    def see(event: Event) -> None:
        events.append(event)
        observe(event)

    see(
        BuildStarted(
            (*selection.bundles, *(f"test.{name}" for name in selection.tests)), request.jobs
        )
    )
    settings = _settings(request, see, medians(samples))
    with open_build(settings) as build:
        tools = tools_of(build.files, code_digests_of(settings))
        state = read_workspace(loaded.folder, request.trust.key)
        versions = toolchain(build.keys.tool("zig"))
        may_run = not (request.dry_run or request.expect_cached)
        thorough = may_run and (request.lint or request.checked_share > 0)
        workspace = Workspace(
            loaded.folder,
            build,
            state,
            tools.digest,
            versions,
            request.dry_run,
            thorough,
            told=_teller(see),
        )
        if request.frozen:
            workspace.check = partial(check_lock, loaded.folder)
        yield _Opened(build, workspace, tools)
        if not request.dry_run:
            write_workspace(loaded.folder, state, request.trust.key)
            write_history(_history_path(loaded), with_events(samples, events))


def _settings(request: BuildRequest, see: Observer, history: Mapping[str, float]) -> BuildSettings:
    return BuildSettings(
        request.cache_folder,
        request.trust,
        request.caches_below,
        read_only=request.read_only or request.dry_run,
        jobs=1 if request.lint else request.jobs,
        rehash=request.rehash,
        lint=request.lint,
        policy=Policy(
            request.keep_going or request.dry_run,
            request.checked_share,
            request.dry_run or request.expect_cached,
            request.check_seed,
        ),
        observers=ActionEvents(see).observers(),
        waiting=lambda process: see(
            Message("note", f"waiting for process {process}, which cleans the cache")
        ),
        makeflags=request.makeflags,
        warn=lambda text: see(Message("warning", text)),
        history=history,
    )


def _teller(see: Observer) -> Callable[[str, str, str], None]:
    public: dict[str, TargetHow] = {
        "built": "built",
        "passed": "passed",
        "unchanged": "unchanged",
        "failed": "failed",
    }
    return lambda name, how, path: see(TargetFinished(name, public.get(how, "skipped"), path))


def _history_path(loaded: LoadedProject) -> str:
    return os.path.join(state_folder(loaded.folder), "history")


def _build(
    loaded: LoadedProject, request: BuildRequest, selection: Selection, opened: _Opened
) -> list[TargetResult]:
    tests = [spec for spec in loaded.project.tests if spec.name in selection.tests]
    names = {spec.name for spec in _bundles(loaded, selection)}
    requests = compile_requests(loaded.project, names, loaded.path)
    results = opened.workspace.build_bundles(requests)
    if request.dry_run:
        return [*results, *(opened.workspace.run_test(spec, _run_test) for spec in tests)]
    _lock(loaded, opened, requests, results, frozen=request.frozen)
    sync_folders(_folders_of(loaded.folder, results))  # before anything says that they are there
    _root(request, results)
    if request.depfile is not None and results[0].is_good:
        sources = [loaded.path, *(path for path, _ in results[0].sources)]
        write_text(
            request.depfile,
            depfile_text(os.path.relpath(results[0].path), list(map(os.path.relpath, sources))),
        )
    return [*results, *(opened.workspace.run_test(spec, _run_test) for spec in tests)]


def _folders_of(project_folder: str, results: Sequence[TargetResult]) -> set[str]:
    """The folders of bundles that were built, and those above them that the build may have made."""
    found: set[str] = set()
    for result in results:
        folder = os.path.dirname(result.path) if result.how == "built" else ""
        while folder and folder not in found:
            found.add(folder)
            folder = os.path.dirname(folder) if folder.startswith(project_folder + os.sep) else ""
    return found


def _run_test(spec: TestSpec, bundle: str, folder: str) -> None:
    from ingot_build_rules.workspace.run_test import (
        run_test,
    )  # numpy and the loader: most builds run no test

    run_test(spec, bundle, folder)


def _lock(
    loaded: LoadedProject,
    opened: _Opened,
    requests: Sequence[CompileRequest],
    results: Sequence[TargetResult],
    *,
    frozen: bool,
) -> None:
    """Write what each bundle was made from beside it; a ``frozen`` build has found it there."""
    built = [pair for pair in zip(requests, results, strict=True) if pair[1].how == "built"]
    if built:
        code = record_code(opened.tools.digests)
        if len(loaded.project.bundles) > FILES_LISTED_MAX:
            code = replace(code, files=())
        for item, result in built:
            if not frozen:
                lock_bundle(loaded.folder, item, result, code)
            opened.workspace.locked(result)


def _root(request: BuildRequest, results: Sequence[TargetResult]) -> None:
    """Keep what the project's bundles are made of from being collected while the bundles are
    there."""
    if request.read_only:
        return
    roots = Roots(versioned(request.cache_folder))
    for result in results:
        if result.how == "built":
            keys = [
                bytes.fromhex(key)
                for item in result.actions
                for key in (item.key, item.where)
                if key
            ]
            roots.add(result.path, keys)


def _explain(
    loaded: LoadedProject, request: BuildRequest, opened: _Opened, results: Sequence[TargetResult]
) -> dict[str, tuple[str, ...]]:
    """Keep the trace of every bundle that was looked at, and say why what ran did; forget failures
    that are over."""
    for result in results:
        if result.is_good:
            forget(failed_trace_path(loaded.folder, result.name))
    looked_at = [
        result for result in results if (result.actions or result.error) and not request.dry_run
    ]
    if not looked_at:
        return {}
    keeper = TraceKeeper(loaded.folder, opened.build, opened.tools)
    lines = {result.name: keeper.keep(result) for result in looked_at}
    drop_code(
        loaded.folder,
        {opened.tools.digest, *(item.code for item in opened.workspace.state.bundles.values())},
    )
    return {name: found for name, found in lines.items() if found}


def _stamps(build: Scheduler, results: Sequence[TargetResult]) -> dict[str, Stamp] | None:
    """What the sources look like; None where one has not the content any more that was built."""
    stamps: dict[str, Stamp] = {}
    for path, content in dict.fromkeys(pair for result in results for pair in result.sources):
        stamp = stamp_of(path)
        if stamp is None or build.files.digest(path) != content:
            return None
        stamps[path] = stamp
    return stamps


def _name(rule: str, label: str) -> str:
    return f"{rule} ({label})" if label else rule
