"""Verb ``clean``: removes what builds of a project have made: bundles, and what the workspace
remembers.

In: names of bundles, or none for all. Out: fewer files. Not done here: the cache (``cache gc``),
lock files, which belong to the sources. A file that is not as a build left it is not ours and
stays.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from ingot_artifacts.errors import OutputError
from ingot_build_rules.tools.cli.building import no_op
from ingot_build_rules.tools.cli.shell import console
from ingot_build_rules.tools.workspace.user_key import known_key, user_key

if TYPE_CHECKING:
    from ingot_build_rules.tools.workspace.state import BundleState, WorkspaceState


def run(arguments: argparse.Namespace) -> int:
    """Remove, and say what."""
    from ingot_build_rules.tools.workspace.open_workspace import load_project
    from ingot_build_rules.tools.workspace.state import (
        read_workspace,
        state_folder,
        write_workspace,
    )

    loaded = load_project(arguments.folder, arguments.config)
    folder, key = loaded.folder, known_key() if arguments.dry_run else user_key()
    state = read_workspace(folder, key)
    names = loaded.select(arguments.words).bundles if arguments.words else sorted(state.bundles)
    removed, kept = _clean(folder, state, names, dry_run=arguments.dry_run)
    if not arguments.dry_run:
        no_op.forget_build(folder)
        if arguments.words or kept:
            write_workspace(folder, state, key)
        else:
            shutil.rmtree(state_folder(folder), ignore_errors=True)
    _tell(removed, kept, arguments)
    return 0


def _clean(
    folder: str, state: WorkspaceState, names: Iterable[str], *, dry_run: bool
) -> tuple[list[str], list[str]]:
    """Remove bundles, and forget them; return the files that went and those that stayed."""
    present = {item.output for item in state.bundles.values()}
    removed: list[str] = []
    kept: list[str] = []
    for name in names:
        known = state.bundles.get(name)
        if known is None:
            continue
        ours, others = _outputs(known, present)
        removed += ours
        kept += others
        if not dry_run:
            _remove(*ours)
            for output in ours:
                _remove_empty(os.path.dirname(output), folder)
        if not (dry_run or others):
            del state.bundles[name]
            _remove(*_traces(folder, name))
    return removed, kept


def _outputs(known: BundleState, present: Collection[str]) -> tuple[list[str], list[str]]:
    """The files of a bundle that are there: as builds have left them, and others.

    What it left at the ``present`` output of another bundle is that one's now.
    """
    from ingot_build_rules.engine.cache.file_digests import stamp_of

    stamps = {
        path: stamp
        for path, stamp in known.outputs()
        if os.path.exists(path) and (path == known.output or path not in present)
    }
    ours = [path for path, stamp in stamps.items() if stamp == stamp_of(path)]
    return ours, [path for path in stamps if path not in ours]


def _traces(folder: str, name: str) -> tuple[str, str]:
    from ingot_build_rules.tools.workspace.state import failed_trace_path, trace_path

    trace = trace_path(folder, name)
    return trace, failed_trace_path(trace)


def _remove(*paths: str) -> None:
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            do = "choose a folder that you may write to"
            raise OutputError(
                "cannot remove a file", path, error.strerror or str(error), do
            ) from error


def _remove_empty(folder: str, root: str) -> None:
    """Remove folders that builds have made and nobody uses, up to the project's own."""
    while folder.startswith(root + os.sep):
        try:
            os.rmdir(folder)
        except OSError:
            return
        folder = os.path.dirname(folder)


def _tell(removed: list[str], kept: list[str], arguments: argparse.Namespace) -> None:
    if arguments.json:
        console.print_json({"dry_run": arguments.dry_run, "removed": removed, "kept": kept})
        return
    word = "would remove" if arguments.dry_run else "removed"
    for path in removed:
        console.print_lines(f"{word} {os.path.relpath(path)}")
    for path in kept:
        console.print_lines(f"kept {os.path.relpath(path)}: it is not as the last build left it")
    if not removed and not kept:
        console.print_lines("nothing to remove")
