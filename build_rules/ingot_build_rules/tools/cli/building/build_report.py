"""What ``ingot build`` tells at its end: errors, why what ran did, what became of each target.

In: the report of a build, the command's arguments. Out: text on the standard streams. Not done
here: building (``build``), progress meanwhile (``build_progress``).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ingot_build_rules.tools.cli.building.build_progress import STANDARD_OUTPUT
from ingot_build_rules.tools.cli.shell import console
from ingot_build_rules.tools.cli.shell.in_four_parts import in_four_parts
from ingot_build_rules.tools.cli.shell.in_words_of_verb import in_words_of
from ingot_build_rules.tools.cli.shell.placement_lines import placement_lines
from ingot_runtime.json_output import error_values

if TYPE_CHECKING:
    from ingot_build_rules.tools.workspace.build_report import Report
    from ingot_build_rules.tools.workspace.target_result import TargetResult
    from ingot_runtime.ingot_error import IngotError

_LIST_MAX = 20
_STATUSES = (
    "built",
    "passed",
    "unchanged",
    "failed",
    "skipped",
    "would-build",
    "would-run",
    "would-pass",
)


def report_values(report: Report) -> dict[str, Any]:
    """Return the report with the error of each target that failed; ``error`` is the one that
    decides the exit code."""
    failures = _failures(report)
    errors = {name: error_values(failure) for name, failure in failures.items()}
    worst = max(errors.values(), key=lambda error: error["exit_code"], default=None)
    return {**report.plain(), "errors": errors, **({"error": worst} if worst else {})}


def print_errors(report: Report) -> None:
    """Print the error of each target that failed; one that stopped several is told once."""
    alike: dict[tuple[object, ...], list[IngotError]] = {}
    for failure in _failures(report).values():
        alike.setdefault((type(failure), failure.why, failure.do), []).append(failure)
    for first, *others in alike.values():
        console.print_error(first.at(_places(first, others)))


def _places(first: IngotError, others: Sequence[IngotError]) -> str:
    """Where an error stopped the first target, and which others it stopped."""
    named = [error.where.partition(",")[0] for error in others[:_LIST_MAX]]
    left = len(others) - len(named)
    also = [*named, *([f"{left} more"] if left else [])]
    return f"{first.where}; likewise {', '.join(also)}" if also else first.where


def print_report(report: Report, arguments: argparse.Namespace) -> None:
    """Print as much of the report as the arguments ask for."""
    if arguments.json:
        console.print_json(report_values(report))
        return
    if arguments.explain:
        _print_explanations(report)
    if not (arguments.quiet or arguments.events == STANDARD_OUTPUT):
        console.print_lines(*_lines(report, arguments))


def summary(report: Report) -> str:
    """One line: what became of the targets, what ran."""
    statuses = [item.status for item in report.results]
    parts = [
        f"{statuses.count(status)} {status.replace('-', ' ')}"
        for status in _STATUSES
        if status in statuses
    ]
    ran = sum(count.ran for count in report.counts.values())
    hit = sum(count.hit for count in report.counts.values())
    actions = f"{ran} actions ran, {hit} from the cache"
    seconds = console.format_seconds(report.seconds)
    return f"{', '.join(parts) or 'nothing to do'}; {actions}, {seconds}"


def first_pending(report: Report) -> str:
    """What had to run and was not allowed to, as far as one can read it."""
    return ", ".join(report.would_run[:_LIST_MAX])


def _lines(report: Report, arguments: argparse.Namespace) -> list[str]:
    names = {item.name for item in report.results}  # tests have a line of their own
    would_run = [text for text in report.would_run if arguments.dry_run and text not in names]
    changed = [item for item in report.results if item.status != "unchanged"]
    left = len(changed) - _LIST_MAX
    return [
        *(f"would run {text}, and what depends on it" for text in would_run),
        *(line for item in changed[:_LIST_MAX] for line in _result_lines(item)),
        *([f"and {left} more"] if left > 0 else []),
        *_checked_lines(report, arguments),
        summary(report),
    ]


def _checked_lines(report: Report, arguments: argparse.Namespace) -> list[str]:
    """The results of ``--check-hits`` and ``--lint`` as lines; mistakes that they find are reported
    as errors."""
    actions = {item.key: item.status for result in report.results for item in result.actions}
    statuses = list(actions.values())
    if arguments.dry_run or arguments.expect_cached or "failed" in statuses:
        return []
    checked, ran = statuses.count("checked"), statuses.count("checked") + statuses.count("ran")
    again = f"{checked} of {checked + statuses.count('hit')} cached actions ran again"
    return [
        *([f"checked: {again}, with the same results"] if arguments.check_hits else []),
        *([f"lint: {ran} actions read only what their keys know"] if arguments.lint else []),
    ]


def _result_lines(item: TargetResult) -> list[str]:
    return [_result_line(item), *placement_lines(item.placement)]


def _result_line(item: TargetResult) -> str:
    line = (
        f"{item.status.replace('-', ' ')} {os.path.relpath(item.path) if item.path else item.name}"
    )
    if item.status != "built":
        return line
    return f"{line}, {console.format_bytes(item.size_bytes)}, digest {item.root[:16]}"


def _failures(report: Report) -> dict[str, IngotError]:
    """What stopped each target; the place begins with its name."""
    found: dict[str, IngotError] = {}
    for result in report.results:
        if result.status == "failed" and isinstance(result.error, Exception):
            error = in_words_of(in_four_parts(result.error, result.name), "build")
            test = result.name.removeprefix("test.")
            name = f"bundle {result.name!r}" if result.path else f"test {test!r}"
            where = error.where if error.where.startswith(name) else f"{name}, {error.where}"
            found[result.name] = error.at(where)
    return found


def _print_explanations(report: Report) -> None:
    for name, lines in report.explanations.items():
        console.print_lines(f"{name}:", *(f"  {line}" for line in lines))
