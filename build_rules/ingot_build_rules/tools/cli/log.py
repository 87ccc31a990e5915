"""Verb ``log``: what the last build of a bundle, or run of a test, did, action by action, also one
that failed.

In: names of bundles and tests. Out: one line per action: status, seconds, rule, label, key; what it had
to tell; the error. Not done here: why (``why``).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ingot_build_rules.tools.cli.shell import console

if TYPE_CHECKING:
    from ingot_build_rules.engine.events.trace_file import TracedAction
    from ingot_build_rules.tools.workspace.open_workspace import LoadedProject


def run(arguments: argparse.Namespace) -> int:
    """Print the log of each bundle and test."""
    from ingot_build_rules.tools.workspace.open_workspace import load_project

    loaded = load_project(arguments.folder, arguments.config)
    values: dict[str, dict[str, object]] = {}
    lines: list[str] = []
    for name, path in _traces(loaded, arguments.words):
        actions, error = _last_build(path)
        values[name] = {
            "actions": [_action_values(item) for item in actions],
            "failed": list(error),
        }
        lines.append(f"{name}:" if actions or error else f"{name}: {_never(name)}")
        lines += [f"  {line}" for item in actions for line in _action_lines(item)]
        lines += [f"  {line}" for line in error]
    console.print_report({"targets": values}, lines, as_json=arguments.json)
    return 0


def _never(name: str) -> str:
    return f"never {'run' if name.startswith('test.') else 'built'} here"


def _traces(loaded: LoadedProject, words: Sequence[str]) -> list[tuple[str, str]]:
    """Names, and where the trace of each is."""
    from ingot_build_rules.tools.workspace.state import trace_path, trace_path_of_test

    selection = loaded.select(words)
    bundles = [(name, trace_path(loaded.folder, name)) for name in selection.bundles]
    tests = [(f"test.{name}", trace_path_of_test(loaded.folder, name)) for name in selection.tests]
    return bundles + tests


def _last_build(path: str) -> tuple[tuple[TracedAction, ...], tuple[str, ...]]:
    """The actions of the last build that left a trace, and the lines of its error if it failed."""
    from ingot_build_rules.engine.events.trace_file import read_trace
    from ingot_build_rules.tools.workspace.state import failed_trace_path

    failed = read_trace(failed_trace_path(path))
    trace = failed or read_trace(path)
    return trace.actions if trace else (), failed.explanation if failed else ()


def _action_values(item: TracedAction) -> dict[str, object]:
    return {
        "rule": item.rule,
        "label": item.label,
        "status": item.status,
        "seconds": item.seconds,
        "key": item.key,
        "messages": list(item.messages),
        "ingredients": {part.name: part.digest for part in item.ingredients},
    }


def _action_lines(item: TracedAction) -> list[str]:
    seconds = console.format_seconds(item.seconds)
    line = f"{item.status:7}{seconds:>10}  {item.rule} {item.label}  {item.key[:12]}"
    return [line.rstrip(), *(f"  {text}" for text in item.messages)]
