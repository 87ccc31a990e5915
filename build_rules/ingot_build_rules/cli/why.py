"""Verb ``why``: what a bundle's next build would do and what has changed, or why its last build did what it did.

In: a bundle's name. Out: explanations. Not done here: reasons (``engine.explain``), words (``workspace.explanations``).
"""

from __future__ import annotations

import argparse
from typing import cast

from ingot_build_rules.cli import console, usage
from ingot_build_rules.cli.build import add_project
from ingot_compiler.ir.errors import UserError


def add_arguments(parser: usage.Parser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("words", nargs="+", metavar="TARGET", help="bundles or their output files")
    add_project(parser)
    usage.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Explain each bundle."""
    from ingot_build_rules.engine.trace_file import read_trace
    from ingot_build_rules.workspace.open_workspace import load_project
    from ingot_build_rules.workspace.pending import pending_changes
    from ingot_build_rules.workspace.state import read_workspace, trace_path

    loaded = load_project(arguments.folder, arguments.config)
    names = loaded.select(arguments.words).bundles
    if not names:
        raise UserError("no bundle named", "command ingot why", "tests have no actions of their own", "name a bundle")
    state = read_workspace(loaded.folder)
    found: dict[str, dict[str, object]] = {}
    for name in names:
        trace = read_trace(trace_path(loaded.folder, name))
        found[name] = {
            "pending": pending_changes(loaded, state, name, trace),
            "last": list(trace.explanation) if trace else [],
            "built": trace is not None,
        }
    if arguments.json:
        console.print_json(found)
        return 0
    for name, item in found.items():
        print(_text(name, item))
    return 0


def _text(name: str, item: dict[str, object]) -> str:
    if not item["built"]:
        return f"{name}: never built here"
    pending, last = [str(line) for line in _list(item["pending"])], [str(line) for line in _list(item["last"])]
    head = [f"{name}: would be built again", *(f"  {line}" for line in pending)] if pending else [f"{name}: up to date"]
    reasons = [f"  {line}" for line in last] or ["  nothing had to run: every result was in the cache"]
    return "\n".join([*head, "the last build that ran something:" if last else "the last build:", *reasons])


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return cast("list[object]", value)
