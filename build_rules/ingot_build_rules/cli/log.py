"""Verb ``log``: what the last build of a bundle did, action by action, also one that failed.

In: a bundle's name. Out: one line per action: how, seconds, rule, label, key; what it had to tell;
the error. Not done here: why (``why``).
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ingot_build_rules.cli import console

if TYPE_CHECKING:
    from ingot_build_rules.engine.events.trace_file import TracedAction


def run(arguments: argparse.Namespace) -> int:
    """Print the log of each bundle."""
    from ingot_build_rules.workspace.open_workspace import load_project

    loaded = load_project(arguments.folder, arguments.config)
    values: dict[str, dict[str, object]] = {}
    lines: list[str] = []
    for name in loaded.select(arguments.words).bundles:
        actions, error = _last_build(loaded.folder, name)
        values[name] = {
            "actions": [_action_values(item) for item in actions],
            "failed": list(error),
        }
        lines.append(f"{name}:" if actions or error else f"{name}: never built here")
        lines += [f"  {line}" for item in actions for line in _action_lines(item)]
        lines += [f"  {line}" for line in error]
    console.print_report({"bundles": values}, lines, as_json=arguments.json)
    return 0


def _last_build(folder: str, name: str) -> tuple[tuple[TracedAction, ...], tuple[str, ...]]:
    """The actions of a bundle's last build, and the lines of its error if it failed."""
    from ingot_build_rules.engine.events.trace_file import read_trace
    from ingot_build_rules.workspace.state import failed_trace_path, trace_path

    failed = read_trace(failed_trace_path(folder, name))
    trace = failed or read_trace(trace_path(folder, name))
    return trace.actions if trace else (), failed.explanation if failed else ()


def _action_values(item: TracedAction) -> dict[str, object]:
    return {
        "rule": item.rule,
        "label": item.label,
        "how": item.how,
        "seconds": item.seconds,
        "key": item.key,
        "messages": list(item.messages),
        "ingredients": {part.name: part.digest for part in item.ingredients},
    }


def _action_lines(item: TracedAction) -> list[str]:
    seconds = console.format_seconds(item.seconds)
    line = f"{item.how:7}{seconds:>10}  {item.rule} {item.label}  {item.key[:12]}"
    return [line.rstrip(), *(f"  {text}" for text in item.messages)]
