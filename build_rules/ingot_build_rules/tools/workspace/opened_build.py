"""One build of a project while it is open: its cache, its processes, and what its workspace
remembers.

In: a loaded project, a request, an observer of events. Out: ``OpenedBuild``; at its end the memory
of the workspace and its history. Not done here: what is built (``run_build``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from ingot_build_rules.engine.events.events import (
    BuildStarted,
    Event,
    Message,
    Observer,
    TargetFinished,
    TargetStatus,
)
from ingot_build_rules.engine.events.history import (
    medians,
    read_history,
    with_events,
    write_history,
)
from ingot_build_rules.engine.events.trace_file import read_trace
from ingot_build_rules.engine.executors.registry import LINT, LOCAL
from ingot_build_rules.engine.scheduler import Policy, Scheduler
from ingot_build_rules.making.options.compile_options import PluginOption
from ingot_build_rules.making.project.compile_requests import compile_requests
from ingot_build_rules.making.project.selection import Selection
from ingot_build_rules.making.stages.open_build import BuildSettings, code_digests_of, open_build
from ingot_build_rules.making.stages.toolchain import toolchain
from ingot_build_rules.tools.workspace.action_events import ActionEvents
from ingot_build_rules.tools.workspace.build_project import Workspace
from ingot_build_rules.tools.workspace.build_request import BuildRequest
from ingot_build_rules.tools.workspace.locks import check_lock
from ingot_build_rules.tools.workspace.open_workspace import LoadedProject
from ingot_build_rules.tools.workspace.state import (
    read_workspace,
    state_folder,
    trace_path,
    trace_path_of_test,
    write_workspace,
)
from ingot_build_rules.tools.workspace.tools import Tools, tools_of
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(slots=True)
class OpenedBuild:
    """``tools``: the code and the programs that decide results today."""

    build: Scheduler
    workspace: Workspace
    tools: Tools


def history_path(loaded: LoadedProject) -> str:
    """Where what actions took in past builds of a project is kept."""
    return os.path.join(state_folder(loaded.folder), "history")


def project_history(loaded: LoadedProject) -> dict[str, float]:
    """Seconds of one action of each rule in past builds."""
    return medians(read_history(history_path(loaded)))


def last_actions(loaded: LoadedProject, target: str) -> dict[str, str] | None:
    """Key -> rule of each action of the last build that succeeded of a bundle, or of a test
    (``test.NAME``); None if there is none."""
    test = target.removeprefix("test.")
    is_test = test != target
    folder = loaded.folder
    trace = read_trace(trace_path_of_test(folder, test) if is_test else trace_path(folder, target))
    return {action.key: action.rule for action in trace.actions} if trace else None


@contextmanager
def opened_build(
    loaded: LoadedProject, request: BuildRequest, selection: Selection, observe: Observer
) -> Generator[OpenedBuild]:
    """Open cache, processes and what the workspace remembers; keep all of it at the end."""
    samples, events = read_history(history_path(loaded)), list[Event]()

    def see(event: Event) -> None:
        events.append(event)
        observe(event)

    tests = (f"test.{name}" for name in selection.tests)
    see(BuildStarted((*selection.bundles, *tests), request.jobs))
    settings = _settings(request, see, medians(samples))
    settings = replace(settings, plugins=_plugins(loaded, selection))
    with open_build(settings) as build:
        tools = tools_of(build.files, code_digests_of(settings))
        workspace = _workspace(loaded, request, build, tools, see)
        yield OpenedBuild(build, workspace, tools)
        if not request.dry_run:
            write_workspace(loaded.folder, workspace.state, request.trust.key)
            write_history(history_path(loaded), with_events(samples, events))


def _plugins(loaded: LoadedProject, selection: Selection) -> tuple[PluginOption, ...]:
    """The plug-ins of the bundles that are asked for, and of those that tests run."""
    tested = {spec.bundle for spec in loaded.project.tests if spec.name in selection.tests}
    wanted = tested.union(selection.bundles)
    specs = loaded.project.bundles
    names = [spec.name for spec in specs if spec.options.plugins and spec.name in wanted]
    requests = compile_requests(loaded.project, names, loaded.path)
    return tuple(dict.fromkeys(each for item in requests for each in item.options.plugins))


def _workspace(
    loaded: LoadedProject, request: BuildRequest, build: Scheduler, tools: Tools, see: Observer
) -> Workspace:
    may_run = not (request.dry_run or request.expect_cached)
    workspace = Workspace(
        loaded.folder,
        build,
        read_workspace(loaded.folder, request.trust.key),
        tools.digest,
        toolchain(),
        dry=request.dry_run,
        thorough=may_run and (request.lint or request.checked_share > 0),
        notify=_result_teller(see),
    )
    if request.frozen:
        workspace.check = partial(check_lock, loaded.folder)
    return workspace


def _settings(request: BuildRequest, see: Observer, history: Mapping[str, float]) -> BuildSettings:
    return BuildSettings(
        request.cache_folder,
        request.trust,
        request.caches_below,
        read_only=request.read_only or request.dry_run,
        jobs=request.jobs,
        rehash=request.rehash,
        executor=LINT if request.lint else LOCAL,
        policy=_policy(request),
        observers=ActionEvents(see).observers(),
        waiting=_waiting_teller(see),
        makeflags=request.makeflags,
        warn=lambda text: see(Message("warning", text)),
        history=history,
        max_bytes=request.cache_max_bytes,
        tell=lambda text: see(Message("note", text)),
    )


def _policy(request: BuildRequest) -> Policy:
    return Policy(
        keep_going=request.keep_going or request.dry_run,
        checked_share=request.checked_share,
        expect_cached=request.dry_run or request.expect_cached,
        check_seed=request.check_seed,
    )


def _waiting_teller(see: Observer) -> Callable[[int], None]:
    text = "waiting for process {}, which cleans the cache"
    return lambda process: see(Message("note", text.format(process)))


def _result_teller(see: Observer) -> Callable[[str, str, str], None]:
    public: dict[str, TargetStatus] = {
        "built": "built",
        "passed": "passed",
        "unchanged": "unchanged",
        "failed": "failed",
    }
    return lambda name, status, path: see(TargetFinished(name, public.get(status, "skipped"), path))
