"""Verb ``log``: what the last build of a bundle did, action by action, also one that failed.

In: a bundle's name. Out: one line per action: how, seconds, rule, label, key; what it had to tell;
the error. Not done here: why (``why``).
"""

from __future__ import annotations

import argparse
from typing import cast

from ingot_build_rules.cli import console
from ingot_build_rules.cli.options import JSON, PROJECT, add_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("words", nargs="+", metavar="TARGET", help="bundles or their output files")
    add_options(parser, *PROJECT, JSON)


def run(arguments: argparse.Namespace) -> int:
    """Print the log of each bundle."""
    from ingot_build_rules.engine.events.trace_file import read_trace
    from ingot_build_rules.workspace.open_workspace import load_project
    from ingot_build_rules.workspace.state import failed_trace_path, trace_path

    loaded = load_project(arguments.folder, arguments.config)
    found: dict[str, list[dict[str, object]]] = {}
    errors: dict[str, tuple[str, ...]] = {}
    for name in loaded.select(arguments.words).bundles:
        failed = read_trace(failed_trace_path(loaded.folder, name))
        trace = failed or read_trace(trace_path(loaded.folder, name))
        errors[name] = failed.explanation if failed else ()
        found[name] = [
            {
                "rule": item.rule, "label": item.label, "how": item.how, "seconds": item.seconds, "key": item.key,
                "messages": list(item.messages), "ingredients": {part.name: part.digest for part in item.ingredients},
            }
            for item in (trace.actions if trace else ())
        ]  # fmt: skip
    if arguments.json:
        console.print_json(found)
        return 0
    for name, actions in found.items():
        console.print_lines(f"{name}:" if actions or errors[name] else f"{name}: never built here")
        for item in actions:
            seconds = console.format_seconds(float(str(item["seconds"])))
            console.print_lines(
                f"  {item['how']:7}{seconds:>10}  {item['rule']} {item['label']}  {str(item['key'])[:12]}".rstrip()
            )
            for text in cast("list[str]", item["messages"]):
                console.print_lines(f"    {text}")
        for line in errors[name]:
            console.print_lines(f"  {line}")
    return 0
