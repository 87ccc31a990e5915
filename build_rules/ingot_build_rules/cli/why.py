"""Verb ``why``: what a bundle's next build would do and what has changed, how its last build
failed, why the last that did not did what it did.

In: a bundle's name. Out: explanations. Not done here: reasons (``engine.events.explain``), words
(``workspace.explanations``).
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ingot_build_rules.cli import console
from ingot_build_rules.workspace.user_key import known_key
from ingot_compiler.ir.errors import UserError

if TYPE_CHECKING:
    from ingot_build_rules.workspace.open_workspace import LoadedProject
    from ingot_build_rules.workspace.state import WorkspaceState


def run(arguments: argparse.Namespace) -> int:
    """Explain each bundle."""
    from ingot_build_rules.workspace.open_workspace import load_project
    from ingot_build_rules.workspace.state import read_workspace

    loaded = load_project(arguments.folder, arguments.config)
    names = loaded.select(arguments.words).bundles
    if not names:
        why = "tests have no actions of their own"
        raise UserError("no bundle named", "command ingot why", why, "name a bundle")
    state = read_workspace(loaded.folder, known_key())
    found = {name: _explained(loaded, state, name) for name in names}
    lines = [line for name, item in found.items() for line in _lines(name, item)]
    values = {name: asdict(item) for name, item in found.items()}
    console.print_report({"bundles": values}, lines, as_json=arguments.json)
    return 0


@dataclass(frozen=True, slots=True)
class _Explained:
    """Lines: what the next build would do, how the last one failed, what the ``last`` that ran
    something did. ``built``: whether one has succeeded here."""

    pending: list[str]
    failed: list[str]
    last: list[str]
    built: bool


def _explained(loaded: LoadedProject, state: WorkspaceState, name: str) -> _Explained:
    from ingot_build_rules.engine.events.trace_file import read_trace
    from ingot_build_rules.workspace.pending import pending_changes
    from ingot_build_rules.workspace.state import failed_trace_path, trace_path

    trace = read_trace(trace_path(loaded.folder, name))
    failed = read_trace(failed_trace_path(loaded.folder, name))
    return _Explained(
        pending_changes(loaded, state, name, trace),
        list(failed.explanation) if failed else [],
        list(trace.explanation) if trace else [],
        built=trace is not None,
    )


def _lines(name: str, item: _Explained) -> list[str]:
    failed = ["the last build failed:", *_indented(item.failed)] if item.failed else []
    if not item.built:
        return [f"{name}: never built here", *failed]
    state = "would be built again" if item.pending else "up to date"
    which = [word for word, holds in (("succeeded", failed), ("ran something", item.last)) if holds]
    return [
        f"{name}: {state}",
        *_indented(item.pending),
        *failed,
        f"the last build{' that ' * bool(which)}{' and '.join(which)}:",
        *_indented(item.last or ["nothing had to run: every result was in the cache"]),
    ]


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
