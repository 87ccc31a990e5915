"""Verb ``build``: everything that a project asks for, as far as something has changed.

In: arguments, ``ingot.toml``. Out: bundles, lock files, results of tests, a summary, an exit code.
Not done here: building (``workspace.run_build``), the case that nothing has changed at all
(``cli.building.no_op``, which runs before this).
"""

from __future__ import annotations

import argparse
import os
import secrets
import time
from functools import partial
from typing import TYPE_CHECKING

from ingot_artifacts.store.layers import whole_address
from ingot_build_rules.tools.cli.building import no_op
from ingot_build_rules.tools.cli.building.build_progress import STANDARD_OUTPUT, build_observer
from ingot_build_rules.tools.cli.building.build_report import (
    first_pending,
    print_errors,
    print_report,
    report_values,
)
from ingot_build_rules.tools.cli.building.jobserver_flags import makeflags
from ingot_build_rules.tools.cli.shell import console
from ingot_build_rules.tools.cli.shell.failure import FailedCommand
from ingot_build_rules.tools.workspace.cache_folder import (
    cache_trust,
    project_cache_folder,
    project_cache_max_bytes,
)
from ingot_compiler.ir.errors import UserError, VerificationError

if TYPE_CHECKING:
    from ingot_build_rules.engine.events.events import Event, Observer
    from ingot_build_rules.tools.workspace.build_report import Report
    from ingot_build_rules.tools.workspace.build_request import BuildRequest
    from ingot_build_rules.tools.workspace.open_workspace import LoadedProject


def run(arguments: argparse.Namespace) -> int:
    """Build, and say what became of it."""
    from ingot_build_rules.tools.workspace.open_workspace import load_project

    if arguments.json and arguments.events == STANDARD_OUTPUT:
        raise _two_outputs()
    started_ns = time.time_ns()
    loaded = load_project(arguments.folder, arguments.config)
    looked_at = loaded.stamps()
    if not arguments.dry_run:
        no_op.forget_build(loaded.folder)
    report = _built(loaded, arguments)
    print_errors(report)
    refused = arguments.expect_cached and bool(report.would_run)
    if not (refused and arguments.json):
        print_report(report, arguments)
        _print_note(loaded, report, arguments)
    if refused:
        raise FailedCommand(_not_cached(report), report_values(report))
    code = _exit_code(report)
    if not code and not arguments.dry_run:
        no_op.remember_build(loaded, report, looked_at, started_ns)
    return code


def _built(loaded: LoadedProject, arguments: argparse.Namespace) -> Report:
    """Build, and show how it goes."""
    from ingot_build_rules.tools.workspace.opened_build import last_actions, project_history
    from ingot_build_rules.tools.workspace.run_build import run_build

    quiet = arguments.quiet or arguments.json
    with build_observer(
        project_history(loaded),
        last_actions=partial(last_actions, loaded),
        quiet=quiet,
        events=arguments.events,
    ) as show:
        timed = TimedEvents(show)
        report = run_build(loaded, _request(loaded, arguments), timed.observe)
    _write_traces(loaded, arguments, timed)
    return report


def _print_note(loaded: LoadedProject, report: Report, arguments: argparse.Namespace) -> None:
    """Say which new bundles are for this machine alone, and what is odd about devices."""
    built = {item.name for item in report.results if item.status == "built"}
    if built and not (arguments.quiet or arguments.json):
        from ingot_build_rules.making.project.compile_requests import compile_requests
        from ingot_build_rules.tools.cli.shell.device_notes import device_notes
        from ingot_build_rules.tools.cli.shell.portable_note import project_note

        if note := project_note(loaded.project, built):
            console.print_note(note)
        for request in compile_requests(loaded.project, built, loaded.path):
            for note in device_notes(request.bundle.output, request.options):
                console.print_note(note)


def _exit_code(report: Report) -> int:
    """The exit code of the worst failure; 0 without one."""
    from ingot_build_rules.tools.workspace.build_project import exit_code_of

    errors = [item.error for item in report.results if item.status == "failed"]
    return max((exit_code_of(error) for error in errors if error), default=0)


class TimedEvents:
    """Keeps every event with its time, and passes it on."""

    def __init__(self, then: Observer) -> None:
        """Begin to count seconds."""
        self._then = then
        self.started_seconds = time.perf_counter()
        self.events: list[tuple[float, Event]] = []

    def observe(self, event: Event) -> None:
        """Note an event."""
        self.events.append((time.perf_counter() - self.started_seconds, event))
        self._then(event)


def _write_traces(loaded: LoadedProject, arguments: argparse.Namespace, timed: TimedEvents) -> None:
    """Write the trace that was asked for, and always that of the last build, into the workspace's
    folder."""
    from ingot_build_rules.engine.cache.unchanged import write_atomically
    from ingot_build_rules.engine.events.chrome_trace import chrome_trace
    from ingot_build_rules.engine.events.trace_entries import TraceProcess
    from ingot_build_rules.making.stages.output_file import write_text
    from ingot_build_rules.tools.workspace.state import state_folder

    name = f"ingot build {os.path.basename(loaded.folder)}"
    process = TraceProcess(name, os.getpid(), timed.started_seconds)
    text = chrome_trace(timed.events, process)
    if not arguments.dry_run:
        write_atomically(
            os.path.join(state_folder(loaded.folder), "trace.json"),
            text.encode("utf-8", "surrogateescape"),
        )
    if arguments.trace is not None:
        write_text(arguments.trace, text)


def _request(loaded: LoadedProject, arguments: argparse.Namespace) -> BuildRequest:
    from ingot_build_rules.tools.workspace.build_request import BuildRequest

    folder = project_cache_folder(loaded, arguments.cache, allow_outside=arguments.allow_outside)
    return BuildRequest(
        folder,
        cache_trust(shared=arguments.cache_shared, writes=not arguments.dry_run),
        tuple(arguments.words),
        jobs=arguments.jobs,
        dry_run=arguments.dry_run,
        keep_going=arguments.keep_going,
        expect_cached=arguments.expect_cached,
        frozen=arguments.frozen,
        rehash=arguments.rehash,
        read_only=arguments.read_only,
        caches_below=tuple(map(whole_address, arguments.cache_below)),
        lint=arguments.lint,
        checked_share=arguments.check_hits,
        check_seed=secrets.randbits(32),
        depfile=arguments.depfile,
        makeflags=makeflags(),
        allow_outside=arguments.allow_outside,
        cache_max_bytes=project_cache_max_bytes(loaded, folder, arguments.cache_max),
    )


def _two_outputs() -> UserError:
    what, where = "two outputs on standard output", "options --json and --events"
    why = "--events - writes every line there, --json its last and only one"
    return UserError(what, where, why, "give --events a file")


def _not_cached(report: Report) -> VerificationError:
    return VerificationError(
        "not everything is in the cache",
        "option --expect-cached",
        f"would run {first_pending(report)} and what depends on it",
        "see why with `ingot why TARGET`, or build without --expect-cached",
    )
