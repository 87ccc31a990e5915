"""Verb ``why``: what a bundle's next build would do and what has changed, how its last build
failed, why the last that did not did what it did.

In: a bundle's name. Out: explanations. Not done here: reasons (``engine.events.explain``), words
(``workspace.explanations``).
"""

from __future__ import annotations

import argparse
from typing import cast

from ingot_build_rules.cli import console
from ingot_build_rules.cli.options import JSON, PROJECT, add_options
from ingot_build_rules.workspace.user_key import known_key
from ingot_compiler.ir.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("words", nargs="+", metavar="TARGET", help="bundles or their output files")
    add_options(parser, *PROJECT, JSON)


def run(arguments: argparse.Namespace) -> int:
    """Explain each bundle."""
    from ingot_build_rules.engine.events.trace_file import read_trace
    from ingot_build_rules.workspace.open_workspace import load_project
    from ingot_build_rules.workspace.pending import pending_changes
    from ingot_build_rules.workspace.state import failed_trace_path, read_workspace, trace_path

    loaded = load_project(arguments.folder, arguments.config)
    names = loaded.select(arguments.words).bundles
    if not names:
        raise UserError(
            "no bundle named",
            "command ingot why",
            "tests have no actions of their own",
            "name a bundle",
        )
    state = read_workspace(loaded.folder, known_key())
    found: dict[str, dict[str, object]] = {}
    for name in names:
        trace = read_trace(trace_path(loaded.folder, name))
        failed = read_trace(failed_trace_path(loaded.folder, name))
        found[name] = {
            "pending": pending_changes(loaded, state, name, trace),
            "failed": list(failed.explanation) if failed else [],
            "last": list(trace.explanation) if trace else [],
            "built": trace is not None,
        }
    if arguments.json:
        console.print_json(found)
        return 0
    for name, item in found.items():
        console.print_lines(*_lines(name, item))
    return 0


def _lines(name: str, item: dict[str, object]) -> list[str]:
    failed = (
        ["the last build failed:", *(f"  {line}" for line in _list(item["failed"]))]
        if item["failed"]
        else []
    )
    if not item["built"]:
        return [f"{name}: never built here", *failed]
    pending, last = (
        [str(line) for line in _list(item["pending"])],
        [str(line) for line in _list(item["last"])],
    )
    head = (
        [f"{name}: would be built again", *(f"  {line}" for line in pending)]
        if pending
        else [f"{name}: up to date"]
    )
    reasons = [f"  {line}" for line in last] or [
        "  nothing had to run: every result was in the cache"
    ]
    which = [word for word, holds in (("succeeded", failed), ("ran something", last)) if holds]
    return [
        *head,
        *failed,
        f"the last build{' that ' * bool(which)}{' and '.join(which)}:",
        *reasons,
    ]


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return cast("list[object]", value)
