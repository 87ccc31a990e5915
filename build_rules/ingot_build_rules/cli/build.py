"""Verb ``build``: everything that a project asks for, as far as something has changed.

In: arguments, ``ingot.toml``. Out: bundles, lock files, results of tests, a summary, an exit code.
Not done here: building (``workspace.run_build``), the case that nothing has changed at all
(``cli.no_op``, which runs before this).
"""

from __future__ import annotations

import argparse
import os
import secrets
import time
from typing import TYPE_CHECKING

from ingot_build_rules.cli import console, no_op, usage
from ingot_build_rules.cli.cache_options import add_caches
from ingot_build_rules.cli.compile import usable_cpu_count
from ingot_build_rules.cli.in_four_parts import in_four_parts
from ingot_build_rules.cli.jobserver_flags import makeflags
from ingot_build_rules.workspace.cache_folder import cache_trust, project_cache_folder
from ingot_compiler.ir.errors import UserError, VerificationError

if TYPE_CHECKING:
    from ingot_build_rules.engine.events.events import Event, Observer
    from ingot_build_rules.workspace.build_report import Report
    from ingot_build_rules.workspace.build_request import BuildRequest
    from ingot_build_rules.workspace.open_workspace import LoadedProject
    from ingot_runtime.ingot_error import IngotError

_LIST_MAX = 20
_HOWS = ("built", "passed", "unchanged", "failed", "skipped", "would-build", "would-run")


def add_project(parser: usage.Parser) -> None:
    """Declare which project a verb is about."""
    parser.add_argument(
        "-C", "--folder", default=".", metavar="DIR", help="the project's folder, or one below it"
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="override a value of ingot.toml",
    )


def add_arguments(parser: usage.Parser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "words", nargs="*", metavar="TARGET", help="bundles, tests or output files (default: all)"
    )
    add_project(parser)
    parser.add_argument(
        "-j",
        "--jobs",
        type=usage.positive,
        default=usable_cpu_count(),
        metavar="N",
        help="processes at most",
    )
    parser.add_argument(
        "-n", "--dry-run", action="store_true", help="say what would run, run nothing"
    )
    parser.add_argument(
        "-k",
        "--keep-going",
        action="store_true",
        help="after a failure, build all that can be built",
    )
    parser.add_argument(
        "--explain", action="store_true", help="say for everything that runs why it does"
    )
    parser.add_argument(
        "--trace", metavar="F.json", help="write a trace for a trace viewer (Perfetto)"
    )
    parser.add_argument(
        "--events", metavar="FILE", help="write every event as a line of JSON; - is standard output"
    )
    parser.add_argument(
        "--depfile", metavar="FILE", help="write the sources of one bundle for make or ninja"
    )
    parser.add_argument(
        "--expect-cached", action="store_true", help="fail, and say why, if anything has to run"
    )
    parser.add_argument(
        "--frozen",
        action="store_true",
        help="fail if a bundle or a source is not that of its lock file",
    )
    parser.add_argument(
        "--rehash", action="store_true", help="read every source again, whatever its times say"
    )
    parser.add_argument(
        "--check-hits",
        type=_share,
        default=0.0,
        metavar="RATE",
        help="run this share of cached actions again, compare",
    )
    parser.add_argument(
        "--lint",
        action="store_true",
        help="fail when an action reads a file that it has not declared",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    add_caches(parser)
    parser.add_argument(
        "--allow-outside",
        action="store_true",
        help="let the project write outside of its folder: bundles, its cache",
    )
    usage.add_json(parser)


def _share(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"expected a share such as 0.02 or 2%, got {text!r}")
    return share


def run(arguments: argparse.Namespace) -> int:
    """Build, and say what became of it."""
    from ingot_build_rules.cli.build_progress import STANDARD_OUTPUT, build_observer
    from ingot_build_rules.workspace.build_project import exit_code_of
    from ingot_build_rules.workspace.open_workspace import load_project
    from ingot_build_rules.workspace.opened_build import project_history
    from ingot_build_rules.workspace.run_build import run_build

    if arguments.json and arguments.events == STANDARD_OUTPUT:
        raise _two_outputs()
    started_ns = time.time_ns()
    loaded = load_project(arguments.folder, arguments.config)
    looked_at = loaded.stamps()
    if not arguments.dry_run:
        no_op.forget_build(loaded.folder)
    quiet = arguments.quiet or arguments.json
    with build_observer(project_history(loaded), quiet=quiet, events=arguments.events) as show:
        timed = TimedEvents(show)
        report = run_build(loaded, _request(loaded, arguments), timed.observe)
    _write_traces(loaded, arguments, timed)
    _tell(report, arguments)
    if arguments.expect_cached and report.would_run:
        raise _not_cached(report)
    code = max(
        (
            exit_code_of(item.error)
            for item in report.results
            if item.how == "failed" and item.error
        ),
        default=0,
    )
    if not code and not arguments.dry_run:
        no_op.remember_build(loaded, report, looked_at, started_ns)
    return code


class TimedEvents:
    """Keeps every event with its time, and passes it on."""

    def __init__(self, then: Observer) -> None:
        """Begin to count seconds."""
        self._then = then
        self._started = time.perf_counter()
        self.events: list[tuple[float, Event]] = []

    def observe(self, event: Event) -> None:
        """Note an event."""
        self.events.append((time.perf_counter() - self._started, event))
        self._then(event)


def _write_traces(loaded: LoadedProject, arguments: argparse.Namespace, timed: TimedEvents) -> None:
    """Write the trace that was asked for, and always that of the last build, into the workspace's
    folder."""
    from ingot_build_rules.compilation.output_file import write_text
    from ingot_build_rules.engine.cache.unchanged import write_atomically
    from ingot_build_rules.engine.events.chrome_trace import chrome_trace
    from ingot_build_rules.workspace.state import state_folder

    text = chrome_trace(timed.events)
    if not arguments.dry_run:
        write_atomically(os.path.join(state_folder(loaded.folder), "trace.json"), text.encode())
    if arguments.trace is not None:
        write_text(arguments.trace, text)


def _request(loaded: LoadedProject, arguments: argparse.Namespace) -> BuildRequest:
    from ingot_build_rules.workspace.build_request import BuildRequest

    return BuildRequest(
        project_cache_folder(loaded, arguments.cache, allow_outside=arguments.allow_outside),
        cache_trust(shared=arguments.cache_shared, writes=not arguments.dry_run),
        tuple(arguments.words),
        jobs=arguments.jobs,
        dry_run=arguments.dry_run,
        keep_going=arguments.keep_going,
        expect_cached=arguments.expect_cached,
        frozen=arguments.frozen,
        rehash=arguments.rehash,
        read_only=arguments.read_only,
        caches_below=tuple(map(os.path.abspath, arguments.cache_below)),
        lint=arguments.lint,
        checked_share=arguments.check_hits,
        check_seed=secrets.randbits(32),
        depfile=arguments.depfile,
        makeflags=makeflags(),
        allow_outside=arguments.allow_outside,
    )


def summary(report: Report) -> str:
    """One line: what became of the targets, what ran."""
    hows = [item.how for item in report.results]
    parts = [f"{hows.count(how)} {how.replace('-', ' ')}" for how in _HOWS if how in hows]
    ran = sum(count.ran for count in report.counts.values())
    hit = sum(count.hit for count in report.counts.values())
    actions = f"{ran} actions ran, {hit} from the cache"
    return f"{', '.join(parts) or 'nothing to do'}; {actions}, {console.format_seconds(report.seconds)}"


def _tell(report: Report, arguments: argparse.Namespace) -> None:
    failures = _failures(report)
    for failure in failures.values():
        console.print_error(failure)
    if arguments.json:
        errors = {name: console.plain_error(failure) for name, failure in failures.items()}
        console.print_json({**report.plain(), "errors": errors})
        return
    if arguments.explain:
        _tell_why(report)
    if arguments.quiet or arguments.events == "-":
        return
    if arguments.dry_run:
        for text in report.would_run:
            console.print_lines(f"would run {text}, and what depends on it")
    changed = [item for item in report.results if item.how != "unchanged"]
    for item in changed[:_LIST_MAX]:
        size = (
            f", {console.format_bytes(item.size_bytes)}, digest {item.root[:16]}"
            if item.how == "built"
            else ""
        )
        console.print_lines(
            f"{item.how.replace('-', ' ')} {os.path.relpath(item.path) if item.path else item.name}{size}"
        )
    if len(changed) > _LIST_MAX:
        console.print_lines(f"and {len(changed) - _LIST_MAX} more")
    console.print_lines(summary(report))


def _failures(report: Report) -> dict[str, IngotError]:
    """What stopped each target; the place begins with its name."""
    found: dict[str, IngotError] = {}
    for result in report.results:
        if result.how == "failed" and isinstance(result.error, Exception):
            error = in_four_parts(result.error, result.name)
            name = (
                f"bundle {result.name!r}"
                if result.path
                else f"test {result.name.removeprefix('test.')!r}"
            )
            where = error.where if error.where.startswith(name) else f"{name}, {error.where}"
            found[result.name] = error.at(where)
    return found


def _tell_why(report: Report) -> None:
    for name, lines in report.explanations.items():
        console.print_lines(f"{name}:")
        for line in lines:
            console.print_lines(f"  {line}")


def _two_outputs() -> UserError:
    return UserError(
        "two outputs on standard output",
        where="options --json and --events",
        why="--events - writes every line there, --json its last and only one",
        do="give --events a file",
    )


def _not_cached(report: Report) -> VerificationError:
    return VerificationError(
        "not everything is in the cache",
        "option --expect-cached",
        f"would run {', '.join(report.would_run[:_LIST_MAX])} and what depends on it",
        "see why with `ingot why TARGET`, or build without --expect-cached",
    )
