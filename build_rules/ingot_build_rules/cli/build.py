"""Verb ``build``: everything that a project asks for, as far as something has changed.

In: arguments, ``ingot.toml``. Out: bundles, lock files, results of tests, a summary, an exit code. Not done here: what is up to date
(``workspace.build_project``), the case that nothing has changed at all (``cli.no_op``, which runs before this).
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ingot_build_rules.cli import console, no_op, usage
from ingot_build_rules.cli.cache_folder import add_cache, cache_folder
from ingot_build_rules.cli.compile import usable_cpu_count
from ingot_compiler.ir.errors import UserError, VerificationError

if TYPE_CHECKING:
    from ingot_build_rules.engine.events import Event, Observer
    from ingot_build_rules.engine.scheduler import Scheduler
    from ingot_build_rules.project.selection import Selection
    from ingot_build_rules.workspace.build_project import TargetResult, Workspace
    from ingot_build_rules.workspace.open_workspace import LoadedProject
    from ingot_build_rules.workspace.tools import Tools

_LIST_MAX = 20


def add_project(parser: usage.Parser) -> None:
    """Declare which project a verb is about."""
    parser.add_argument("-C", "--folder", default=".", metavar="DIR", help="the project's folder, or one below it")
    parser.add_argument("--config", action="append", default=[], metavar="PATH=VALUE", help="override a value of ingot.toml")


def add_arguments(parser: usage.Parser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("words", nargs="*", metavar="TARGET", help="bundles, tests or output files (default: all)")
    add_project(parser)
    parser.add_argument("-j", "--jobs", type=usage.positive, default=usable_cpu_count(), metavar="N", help="processes at most")
    parser.add_argument("-n", "--dry-run", action="store_true", help="say what would run, run nothing")
    parser.add_argument("-k", "--keep-going", action="store_true", help="after a failure, build all that can be built")
    parser.add_argument("--explain", action="store_true", help="say for everything that runs why it does")
    parser.add_argument("--trace", metavar="F.json", help="write a trace for a trace viewer (Perfetto)")
    parser.add_argument("--events", metavar="FILE", help="write every event as a line of JSON; - is standard output")
    parser.add_argument("--depfile", metavar="FILE", help="write the sources of one bundle for make or ninja")
    parser.add_argument("--expect-cached", action="store_true", help="fail, and say why, if anything has to run")
    parser.add_argument("--frozen", action="store_true", help="fail if a bundle or its sources are not those of its lock file")
    parser.add_argument("--rehash", action="store_true", help="read every source again, whatever its times say")
    parser.add_argument(
        "--check-hits", type=_share, default=0.0, metavar="RATE", help="run this share of cached actions again and compare"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    add_cache(parser)
    parser.add_argument("--read-only", action="store_true", help="take results from the cache, leave none there")
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
    from ingot_build_rules.workspace.open_workspace import load_project

    loaded = load_project(arguments.folder, arguments.config)
    return build_once(loaded, arguments)


def build_once(loaded: LoadedProject, arguments: argparse.Namespace) -> int:
    """Build a loaded project; ``watch`` does this again and again."""
    from ingot_build_rules.project.selection import select
    from ingot_build_rules.workspace.build_project import exit_code_of

    started = time.perf_counter()
    selection = select(loaded.project, arguments.words)
    with ExitStack() as stack:
        opened = stack.enter_context(_open(loaded, arguments, selection))
        results = _build(loaded, arguments, selection, opened)
        explanations = _explain(loaded, arguments, opened, results)
    report = Report(results, opened.build.counts, time.perf_counter() - started, explanations, arguments.dry_run)
    opened.finish(report)
    errors = [result.error for result in results if result.how == "failed" and result.error is not None]
    _tell(report, arguments)
    code = max(map(exit_code_of, errors), default=0)
    if arguments.expect_cached and any(result.how == "would-build" for result in results):
        raise _not_cached(opened.build)
    if not code and not arguments.dry_run:
        no_op.remember_build(loaded, report, opened.tools.paths)
    return code


@dataclass(slots=True)
class Report:
    """What a build did."""

    results: list[TargetResult]
    counts: dict[str, Any]
    seconds: float
    explanations: dict[str, tuple[str, ...]]
    dry_run: bool

    def plain(self) -> dict[str, object]:
        """As plain values, for JSON."""
        return {
            "rules": {name: {"ran": count.ran, "hit": count.hit} for name, count in self.counts.items()},
            "seconds": round(self.seconds, 3),
            "targets": {
                item.name: {"how": item.how, "path": item.path or None, "digest": item.root or None} for item in self.results
            },
            "built": [item.name for item in self.results if item.how in ("built", "unchanged")],
            "failed": [item.name for item in self.results if item.how == "failed"],
            "skipped": [item.name for item in self.results if item.how == "skipped"],
            "explanations": {name: list(lines) for name, lines in self.explanations.items()},
        }

    def summary(self) -> str:
        """One line."""
        hows = [item.how for item in self.results]
        parts = [f"{hows.count(how)} {how.replace('-', ' ')}" for how in _HOWS if how in hows]
        ran = sum(count.ran for count in self.counts.values())
        hit = sum(count.hit for count in self.counts.values())
        actions = f"{ran} actions ran, {hit} from the cache"
        return f"{', '.join(parts) or 'nothing to do'}; {actions}, {console.format_seconds(self.seconds)}"


_HOWS = ("built", "unchanged", "failed", "skipped", "would-build")


@dataclass(slots=True)
class _Opened:
    build: Scheduler
    workspace: Workspace
    tools: Tools
    observe: Observer
    events: list[Event]
    finish: Callable[[Report], None]


@contextmanager
def _open(loaded: LoadedProject, arguments: argparse.Namespace, selection: Selection) -> Generator[_Opened]:
    """Open cache, processes, displays and what the workspace remembers; keep all of it at the end."""
    from ingot_build_rules.cli.build_events import ActionEvents
    from ingot_build_rules.cli.build_progress import build_observer
    from ingot_build_rules.engine.events import BuildFinished, BuildStarted, Event, Message, TargetFinished
    from ingot_build_rules.engine.history import medians, read_history, with_events, write_history
    from ingot_build_rules.engine.scheduler import Policy
    from ingot_build_rules.rules.open_build import BuildSettings, open_build
    from ingot_build_rules.rules.toolchain import toolchain
    from ingot_build_rules.workspace.build_project import Workspace
    from ingot_build_rules.workspace.state import read_workspace, state_folder, write_workspace
    from ingot_build_rules.workspace.tools import tools_of

    folder = state_folder(loaded.folder)
    history_path = os.path.join(folder, "history")
    history = read_history(history_path)
    events: list[Event] = []
    quiet = arguments.quiet or arguments.json
    with ExitStack() as stack:
        show = stack.enter_context(build_observer(medians(history), quiet=quiet, events=arguments.events))

        def observe(event: Event) -> None:
            events.append(event)
            show(event)

        names = (*selection.bundles, *(f"test.{name}" for name in selection.tests))
        observe(BuildStarted(names, arguments.jobs))
        policy = Policy(
            arguments.keep_going, arguments.check_hits, expect_cached=arguments.dry_run or arguments.expect_cached
        )
        cache = cache_folder(arguments.cache or _inside(loaded.folder, loaded.project.cache))
        settings = BuildSettings(
            cache, read_only=arguments.read_only, jobs=arguments.jobs, rehash=arguments.rehash,
            policy=policy, observers=ActionEvents(observe).observers(), makeflags=os.environ.get("MAKEFLAGS", ""),
            warn=lambda text: observe(Message("warning", text)),
        )  # fmt: skip
        build = stack.enter_context(open_build(settings))
        tools = tools_of(build, os.path.join(cache, "v1", "code_digests"))
        state = read_workspace(loaded.folder)
        told = lambda name, how, path: observe(TargetFinished(name, _public(how), path))
        linker = build.keys.tool("linker")
        workspace = Workspace(loaded.folder, build, state, tools.digest, toolchain(linker), dry=arguments.dry_run, told=told)

        def finish(report: Report) -> None:
            counts = {name: {"ran": count.ran, "hit": count.hit} for name, count in build.counts.items()}
            failed = tuple(item.name for item in report.results if item.how == "failed")
            built = tuple(item.name for item in report.results if item.how in ("built", "unchanged"))
            observe(BuildFinished(counts, report.seconds, failed, built))
            _write_trace(arguments, folder, events)

        yield _Opened(build, workspace, tools, observe, events, finish)
        if not arguments.dry_run:
            write_workspace(loaded.folder, state)
            write_history(history_path, with_events(history, events))


def _inside(folder: str, path: str | None) -> str | None:
    return None if path is None else os.path.join(folder, path)


def _public(how: str) -> Any:
    return "skipped" if how == "would-build" else how


def _write_trace(arguments: argparse.Namespace, folder: str, events: Sequence[Event]) -> None:
    """The trace that was asked for, and always the last one in the workspace's folder."""
    del arguments, folder, events


def _build(
    loaded: LoadedProject, arguments: argparse.Namespace, selection: Selection, opened: _Opened
) -> list[TargetResult]:
    from ingot_build_rules.project.compile_requests import compile_requests
    from ingot_build_rules.workspace.run_test import run_test

    tests = [spec for spec in loaded.project.tests if spec.name in selection.tests]
    names = {*selection.bundles, *(spec.bundle for spec in tests)}
    requests = compile_requests(loaded.project, names, loaded.path)
    no_op.forget_build(loaded.folder)
    results = opened.workspace.build_bundles(requests)
    if not arguments.dry_run:
        results += [opened.workspace.run_test(spec, run_test) for spec in tests]
    if arguments.depfile is not None:
        _write_depfile(arguments, results)
    return results


def _write_depfile(arguments: argparse.Namespace, results: Sequence[TargetResult]) -> None:
    from ingot_build_rules.engine.depfile import depfile_text
    from ingot_build_rules.rules.output_file import write_text

    bundles = [result for result in results if result.path]
    if len(bundles) != 1:
        why = f"expected one bundle, got {len(bundles)}"
        raise UserError("a depfile is about one bundle", "option --depfile", why, "name one bundle")
    write_text(arguments.depfile, depfile_text(bundles[0].path, bundles[0].sources))


def _explain(
    loaded: LoadedProject, arguments: argparse.Namespace, opened: _Opened, results: Sequence[TargetResult]
) -> dict[str, tuple[str, ...]]:
    """Keep the trace of every bundle that was looked at, and say why what ran did."""
    from ingot_build_rules.workspace.trace_keeper import keep_trace

    lines: dict[str, tuple[str, ...]] = {}
    for result in results:
        if result.actions and not arguments.dry_run:
            found = keep_trace(loaded.folder, result, opened.build, opened.tools)
            if found:
                lines[result.name] = found
    return lines


def _tell(report: Report, arguments: argparse.Namespace) -> None:
    for result in report.results:
        if result.how == "failed" and result.error is not None:
            console.print_error(result.error)
    if arguments.json:
        console.print_json(report.plain())
        return
    if arguments.explain:
        for name, lines in report.explanations.items():
            print(f"{name}:")
            for line in lines:
                print(f"  {line}")
    if arguments.quiet:
        return
    changed = [item for item in report.results if item.how != "unchanged" and item.path]
    for item in changed[:_LIST_MAX]:
        size = f", {console.format_bytes(item.size_bytes)}, digest {item.root[:16]}" if item.root else ""
        print(f"{item.how.replace('-', ' ')} {os.path.relpath(item.path)}{size}")
    if len(changed) > _LIST_MAX:
        print(f"and {len(changed) - _LIST_MAX} more")
    print(report.summary())


def _not_cached(build: Scheduler) -> VerificationError:
    names = [f"{item.rule.name} ({item.label})" if item.label else item.rule.name for item in build.would_run]
    return VerificationError(
        "not everything is in the cache",
        "option --expect-cached",
        f"would run {', '.join(names[:_LIST_MAX])} and what depends on it",
        "see why with `ingot why TARGET`, or build without --expect-cached",
    )
