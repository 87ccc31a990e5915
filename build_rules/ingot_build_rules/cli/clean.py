"""Verb ``clean``: removes what builds of a project have made: bundles, lock files, what the
workspace remembers.

In: names of bundles, or none for all. Out: fewer files. Not done here: the cache (``cache gc``). A
file that is not as a build left it is not ours and stays.
"""

from __future__ import annotations

import argparse
import os
import shutil

from ingot_artifacts.errors import OutputError
from ingot_build_rules.cli import console, no_op
from ingot_build_rules.cli.options import JSON, PROJECT, Option, add_options
from ingot_build_rules.workspace.user_key import known_key, user_key

_DRY_RUN = Option("-n --dry-run", "say what would be removed, remove nothing")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "words", nargs="*", metavar="TARGET", help="bundles or their output files (default: all)"
    )
    add_options(parser, *PROJECT, _DRY_RUN, JSON)


def run(arguments: argparse.Namespace) -> int:
    """Remove, and say what."""
    from ingot_build_rules.compilation.lock_file import lock_path
    from ingot_build_rules.engine.cache.file_digests import stamp_of
    from ingot_build_rules.workspace.open_workspace import load_project
    from ingot_build_rules.workspace.state import (
        failed_trace_path,
        read_workspace,
        state_folder,
        trace_path,
        write_workspace,
    )

    loaded = load_project(arguments.folder, arguments.config)
    key = known_key() if arguments.dry_run else user_key()
    state = read_workspace(loaded.folder, key)
    names = (
        loaded.select(arguments.words).bundles if arguments.words else tuple(sorted(state.bundles))
    )
    removed: list[str] = []
    kept: list[str] = []
    for name in names:
        known = state.bundles.get(name)
        if known is None:
            continue
        if os.path.exists(known.output) and known.stamp != stamp_of(known.output):
            kept.append(known.output)
            continue
        removed += [
            path for path in (known.output, lock_path(known.output)) if os.path.exists(path)
        ]
        if not arguments.dry_run:
            del state.bundles[name]
            _remove(
                known.output,
                lock_path(known.output),
                trace_path(loaded.folder, name),
                failed_trace_path(loaded.folder, name),
            )
            _remove_empty(os.path.dirname(known.output), loaded.folder)
    if not arguments.dry_run:
        no_op.forget_build(loaded.folder)
        if arguments.words or kept:
            write_workspace(loaded.folder, state, key)
        else:
            shutil.rmtree(state_folder(loaded.folder), ignore_errors=True)
    _tell(removed, kept, arguments)
    return 0


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
        console.print_json({"removed": removed, "kept": kept})
        return
    word = "would remove" if arguments.dry_run else "removed"
    for path in removed:
        console.print_lines(f"{word} {os.path.relpath(path)}")
    for path in kept:
        console.print_lines(f"kept {os.path.relpath(path)}: it is not as the last build left it")
    if not removed and not kept:
        console.print_lines("nothing to remove")
