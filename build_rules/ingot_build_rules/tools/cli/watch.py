"""Verb ``watch``: builds, and builds again whenever a file that it looked at changes.

In: the arguments of ``build``. Out: builds, until Ctrl-C. Not done here: a build (``build``). Files
are looked at ten times a second: no service of the system that could run out is needed, and folders
of any kind work.
"""

from __future__ import annotations

import argparse
import glob
import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ingot_build_rules.engine.cache.file_digests import stamp_of
from ingot_build_rules.engine.cache.unchanged import Stamp
from ingot_build_rules.tools.cli import build
from ingot_build_rules.tools.cli.shell import console
from ingot_build_rules.tools.cli.shell.failure import FailedCommand, print_failure
from ingot_build_rules.tools.workspace.user_key import known_key
from ingot_runtime.ingot_error import IngotError

if TYPE_CHECKING:
    from ingot_build_rules.tools.workspace.open_workspace import LoadedProject

_POLL_SECONDS = 0.1
Stamps = dict[str, Stamp | None]


def run(arguments: argparse.Namespace) -> int:
    """Build for ever."""
    from ingot_build_rules.tools.workspace.project_files import find_project

    find_project(arguments.folder)  # without one there is nothing to wait for
    code = _code_stamps()
    exit_code, seen = _attempt(arguments)
    while True:
        time.sleep(_POLL_SECONDS)
        changed = _changed(seen, _look(arguments, seen))
        if not changed:
            continue
        if code != _code_stamps():
            _tell("Ingot itself changed: starting again")
            # This very command.
            os.execv(sys.executable, [sys.executable, "-m", "ingot", *sys.argv[1:]])  # noqa: S606
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        _tell(f"{os.path.relpath(changed[0])}{more} changed")
        exit_code, seen = _attempt(arguments)
        if arguments.once:
            return exit_code


def _tell(text: str) -> None:
    console.print_lines(text, file=sys.stderr, flush=True)


def _changed(before: Stamps, now: Stamps) -> list[str]:
    """The paths that do not look as before, sorted."""
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))


def _code_stamps() -> Stamps:
    """What our own code looks like: this process runs what it was when it started."""
    from ingot_build_rules.making.stages.own_code import PACKAGE_FOLDERS

    return {
        path: stamp_of(path)
        for folder in sorted(PACKAGE_FOLDERS.values())
        for path in sorted(glob.glob(os.path.join(folder, "**", "*.py"), recursive=True))
    }


def _attempt(arguments: argparse.Namespace) -> tuple[int, Stamps]:
    """Build; return the exit code, and what files looked like before: what changes while it runs is
    built next.

    An error is told, and the next change may mend it.
    """
    before = _look(arguments, {})
    try:
        code = build.run(arguments)
    except (IngotError, FailedCommand) as error:
        code = print_failure(error, "watch", as_json=arguments.json)
    sys.stdout.flush()
    return code, _look(arguments, before) | before


def _look(arguments: argparse.Namespace, before: Stamps) -> Stamps:
    """What every file that decides the build looks like: the project's, and what its bundles and
    tests read.

    While the project file has a mistake, all but that is as ``before``.
    """
    from ingot_build_rules.tools.workspace.open_workspace import load_project
    from ingot_build_rules.tools.workspace.project_files import find_project

    try:
        loaded = load_project(arguments.folder, arguments.config)
    except IngotError:
        with suppress(IngotError):
            path = find_project(arguments.folder)
            return before | {os.path.abspath(path): stamp_of(path)}
        return before
    return {path: stamp_of(path) for path in sorted(_read_by(loaded))}


def _read_by(loaded: LoadedProject) -> set[str]:
    """The files that a build of the project reads."""
    from ingot_build_rules.tools.workspace.state import read_workspace

    known = read_workspace(loaded.folder, known_key()).bundles.values()
    named = [spec.source for spec in loaded.project.models]
    named += [path for test in loaded.project.tests for path in (test.inputs, test.outputs)]
    return {
        *loaded.watched(),
        *(os.path.join(loaded.folder, path) for path in named),
        *(path for bundle in known for path, _ in bundle.sources),
    }
