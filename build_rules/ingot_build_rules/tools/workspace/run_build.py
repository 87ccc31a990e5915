"""One build of a project, from the project as it is read to a report: what ``ingot build`` and
``ingot.Project.build`` share.

In: a loaded project, what is asked for, an observer of events. Out: ``Report``; bundles, lock files
and what the workspace remembers. Not done here: arguments and printing (``cli.build``), what is up
to date (``build_project``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace

from ingot_artifacts.store.atomic import sync_folders
from ingot_artifacts.store.layout import versioned
from ingot_artifacts.store.roots import Roots
from ingot_build_rules.engine.actions.action import Action
from ingot_build_rules.engine.cache.file_digests import stamp_of
from ingot_build_rules.engine.cache.unchanged import Stamp, forget
from ingot_build_rules.engine.events.depfile import depfile_text
from ingot_build_rules.engine.events.events import (
    BuildFinished,
    Observer,
)
from ingot_build_rules.engine.scheduler import Scheduler
from ingot_build_rules.making.project.compile_requests import CompileRequest, compile_requests
from ingot_build_rules.making.project.model import BundleSpec, ExportSpec
from ingot_build_rules.making.project.selection import Selection
from ingot_build_rules.making.rules.run_test import RUN_TEST
from ingot_build_rules.making.stages.lock_file import record_code
from ingot_build_rules.making.stages.output_file import write_text
from ingot_build_rules.tools.workspace.build_report import Report
from ingot_build_rules.tools.workspace.build_request import BuildRequest
from ingot_build_rules.tools.workspace.code_tables import drop_code
from ingot_build_rules.tools.workspace.locks import FILES_LISTED_MAX, lock_bundle
from ingot_build_rules.tools.workspace.open_workspace import LoadedProject
from ingot_build_rules.tools.workspace.opened_build import OpenedBuild, opened_build
from ingot_build_rules.tools.workspace.places import check_outputs
from ingot_build_rules.tools.workspace.run_exports import run_exports
from ingot_build_rules.tools.workspace.run_tests import run_tests
from ingot_build_rules.tools.workspace.state import (
    failed_trace_path,
)
from ingot_build_rules.tools.workspace.target_result import TargetResult
from ingot_build_rules.tools.workspace.trace_keeper import TraceKeeper, trace_path_of
from ingot_compiler.ir.errors import UserError
from ingot_runtime.option_ref import OptionRef


def run_build(
    loaded: LoadedProject, request: BuildRequest, observe: Observer = lambda _: None
) -> Report:
    """Build what is asked for.

    Raises:
        UserError: words that mean nothing, a depfile for several bundles, outputs outside of the
            project. Failures of bundles and tests are in the report.
    """
    started = time.perf_counter()
    selection = _selection(loaded, request)
    report = Report()
    with opened_build(loaded, request, selection, observe) as opened:
        report.results = _build(loaded, request, selection, opened)
        report.explanations = _explain(loaded, request, opened, report.results)
        report.counts, report.tool_paths = opened.build.counts, opened.tools.paths
        report.looked_at = _stamps(opened.build, report.results)
        report.would_run = [_name(item) for item in opened.build.would_run]
    report.seconds = time.perf_counter() - started
    failed, built = tuple(report.named("failed")), tuple(report.good())
    observe(BuildFinished(report.rules(), report.seconds, failed, built))
    return report


def _selection(loaded: LoadedProject, request: BuildRequest) -> Selection:
    selection = loaded.select(request.words)
    if request.depfile is not None and len(selection.bundles) != 1:
        why = f"expected one bundle, got {len(selection.bundles)}"
        raise UserError(
            "a depfile is about one bundle",
            ("option ", OptionRef("depfile")),
            why,
            "name one bundle",
        )
    if not request.allow_outside:
        exports = _exports(loaded, selection)
        check_outputs(loaded.folder, loaded.path, _bundles(loaded, selection), exports)
    return selection


def _bundles(loaded: LoadedProject, selection: Selection) -> list[BundleSpec]:
    """The bundles that are asked for, and those that the tests that are asked for run."""
    names = {
        *selection.bundles,
        *(spec.bundle for spec in loaded.project.tests if spec.name in selection.tests),
    }
    return [spec for spec in loaded.project.bundles if spec.name in names]


def _exports(loaded: LoadedProject, selection: Selection) -> list[ExportSpec]:
    """What the bundles that are asked for are exported as."""
    return [spec for spec in loaded.project.exports if spec.bundle in selection.bundles]


def _build(
    loaded: LoadedProject, request: BuildRequest, selection: Selection, opened: OpenedBuild
) -> list[TargetResult]:
    tests = [spec for spec in loaded.project.tests if spec.name in selection.tests]
    names = {spec.name for spec in _bundles(loaded, selection)}
    requests = compile_requests(loaded.project, names, loaded.path)
    results = opened.workspace.build_bundles(requests)
    exports = _exports(loaded, selection)
    if request.dry_run:
        made = run_exports(opened.workspace, requests, exports)
        return [*results, *made, *run_tests(opened.workspace, requests, tests)]
    _lock(loaded, opened, requests, results, frozen=request.frozen)
    sync_folders(_folders_of(loaded.folder, results))  # before anything says that they are there
    _root(request, results)
    if request.depfile is not None and results[0].is_good:
        _write_depfile(request.depfile, loaded.path, results[0])
    made = run_exports(opened.workspace, requests, exports)
    return [*results, *made, *run_tests(opened.workspace, requests, tests)]


def _write_depfile(path: str, project_path: str, result: TargetResult) -> None:
    sources = [project_path, *(source for source, _ in result.sources)]
    relative = list(map(os.path.relpath, sources))
    write_text(path, depfile_text(os.path.relpath(result.path), relative))


def _folders_of(project_folder: str, results: Sequence[TargetResult]) -> set[str]:
    """The folders of bundles that were built, and those above them that the build may have made."""
    found: set[str] = set()
    for result in results:
        folder = os.path.dirname(result.path) if result.is_bundle_made else ""
        while folder and folder not in found:
            found.add(folder)
            folder = os.path.dirname(folder) if folder.startswith(project_folder + os.sep) else ""
    return found


def _lock(
    loaded: LoadedProject,
    opened: OpenedBuild,
    requests: Sequence[CompileRequest],
    results: Sequence[TargetResult],
    *,
    frozen: bool,
) -> None:
    """Write what each bundle was made from beside it; a ``frozen`` build has found it there."""
    built = [pair for pair in zip(requests, results, strict=True) if pair[1].is_bundle_made]
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
        if result.is_bundle_made:
            keys = [key for item in result.actions for key in (item.key, item.where) if key]
            roots.add(result.path, list(map(bytes.fromhex, keys)))


def _explain(
    loaded: LoadedProject,
    request: BuildRequest,
    opened: OpenedBuild,
    results: Sequence[TargetResult],
) -> dict[str, tuple[str, ...]]:
    """Keep the trace of every bundle that was looked at, and say why what ran did; forget failures
    that are over."""
    for result in results:
        if result.is_good:
            forget(failed_trace_path(trace_path_of(loaded.folder, result)))
    looked_at = [result for result in results if result.actions or result.error]
    if request.dry_run or not looked_at:
        return {}
    keeper = TraceKeeper(loaded.folder, opened.build, opened.tools)
    lines = {result.name: keeper.keep(result) for result in looked_at}
    state = opened.workspace.state
    known = {item.code for item in state.bundles.values()}
    known |= {item.code for item in state.tests.values()}
    drop_code(loaded.folder, {opened.tools.digest, *known})
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


def _name(action: Action) -> str:
    """What people call an action: a test by its own name."""
    if action.rule is RUN_TEST:
        return f"test.{action.label}"
    return f"{action.rule.name} ({action.label})" if action.label else action.rule.name
