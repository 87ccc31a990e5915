"""Verb ``why``: what the next build of a bundle or test would do and what has changed, how its last
build failed, why the last that did not did what it did.

In: names of bundles and tests. Out: explanations. Not done here: reasons
(``engine.events.explain``), words (``workspace.explanations``).
"""

from __future__ import annotations

import argparse
from contextlib import closing, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from ingot_build_rules.tools.cli.shell import console
from ingot_build_rules.tools.workspace.user_key import known_key
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from ingot_build_rules.engine.events.trace_file import TargetTrace
    from ingot_build_rules.making.project.model import TestSpec
    from ingot_build_rules.tools.workspace.open_workspace import LoadedProject
    from ingot_build_rules.tools.workspace.present import Present
    from ingot_build_rules.tools.workspace.state import WorkspaceState


def run(arguments: argparse.Namespace) -> int:
    """Explain each bundle and test."""
    from ingot_build_rules.tools.workspace.open_workspace import load_project
    from ingot_build_rules.tools.workspace.present import present_of
    from ingot_build_rules.tools.workspace.state import read_workspace

    loaded = load_project(arguments.folder, arguments.config)
    selection = loaded.select(arguments.words)
    look = _Look(loaded, read_workspace(loaded.folder, known_key()), present_of(loaded))
    found = {name: look.bundle(name) for name in selection.bundles}
    tests = [spec for spec in loaded.project.tests if spec.name in selection.tests]
    found |= {f"test.{spec.name}": look.test(spec) for spec in tests}
    lines = [line for name, item in found.items() for line in _lines(name, item)]
    values = {name: asdict(item) for name, item in found.items()}
    console.print_report({"targets": values}, lines, as_json=arguments.json)
    if not arguments.json and any(item.pending or not item.built for item in found.values()):
        _note_foreign(loaded)
    return 0


def _note_foreign(loaded: LoadedProject) -> None:
    """Say where the cache has results that count as absent, such as one that CI has restored."""
    from ingot_artifacts.store.cache import Cache
    from ingot_artifacts.store.foreign_records import foreign_of
    from ingot_build_rules.tools.workspace.cache_folder import cache_trust, project_cache_folder

    folder = project_cache_folder(loaded, None, allow_outside=True)
    with suppress(IngotError):  # a cache that cannot be used is told of by a build
        cache = Cache(folder, read_only=True, trust=cache_trust(writes=False))
        with closing(cache):
            for line in foreign_of(cache):
                console.print_note(f"note: {line}")


@dataclass(frozen=True, slots=True)
class _Explained:
    """Lines: what the next build would do, how the last one failed, what the ``last`` that ran
    something did. ``built``: whether one has succeeded here, or the test has passed."""

    pending: list[str]
    failed: list[str]
    last: list[str]
    built: bool


@dataclass(frozen=True, slots=True)
class _Look:
    """What a project is now, and what its workspace remembers."""

    loaded: LoadedProject
    state: WorkspaceState
    present: Present

    def bundle(self, name: str) -> _Explained:
        from ingot_build_rules.tools.workspace.state import trace_path

        path = trace_path(self.loaded.folder, name)
        return _explained(path, lambda trace: self._pending(name, trace))

    def test(self, spec: TestSpec) -> _Explained:
        from ingot_build_rules.engine.events.trace_file import read_trace
        from ingot_build_rules.tools.workspace.pending_tests import pending_of_test
        from ingot_build_rules.tools.workspace.state import trace_path, trace_path_of_test

        bundle_trace = read_trace(trace_path(self.loaded.folder, spec.bundle))
        bundle = self._pending(spec.bundle, bundle_trace)
        more = [f"bundle {spec.bundle} would be built again"] if bundle else []
        return _explained(
            trace_path_of_test(self.loaded.folder, spec.name),
            lambda trace: (
                more + pending_of_test(self.loaded, self.state, spec, trace, self.present)
            ),
        )

    def _pending(self, name: str, trace: TargetTrace | None) -> list[str]:
        from ingot_build_rules.tools.workspace.pending import pending_changes

        return pending_changes(self.loaded, self.state, name, trace, self.present)


def _explained(path: str, pending: Callable[[TargetTrace | None], list[str]]) -> _Explained:
    """Explain by the trace at ``path``."""
    from ingot_build_rules.engine.events.trace_file import read_trace
    from ingot_build_rules.tools.workspace.state import failed_trace_path

    trace, failed = read_trace(path), read_trace(failed_trace_path(path))
    return _Explained(
        pending(trace),
        list(failed.explanation) if failed else [],
        list(trace.explanation) if trace else [],
        built=trace is not None,
    )


def _lines(name: str, item: _Explained) -> list[str]:
    is_test = name.startswith("test.")
    again, never = ("run", "passed") if is_test else ("be built", "built")
    failed = ["the last build failed:", *_indented(item.failed)] if item.failed else []
    if not item.built:
        return [f"{name}: never {never} here", *failed]
    state = f"would {again} again" if item.pending else "up to date"
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
