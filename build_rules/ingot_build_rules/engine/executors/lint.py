"""An executor that fails actions which read files that their keys do not know of.

In: actions, run in this process under an audit hook. Out: their outcomes, or
``UndeclaredReadError``. Not done here: what the programs that a rule calls read, and what an
earlier action left in memory.

A rule may read what its inputs name, what it notes, what it has made itself, the cache, and code:
of Python, of installed packages, of the folders that it is told to trust.
"""

from __future__ import annotations

import functools
import importlib.machinery
import os
import stat
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any, cast

from ingot_build_rules.engine.actions.errors import UndeclaredReadError
from ingot_build_rules.engine.actions.leaves import leaves
from ingot_build_rules.engine.actions.perform import Outcome, perform
from ingot_build_rules.engine.actions.rule import AnyRule, Rulebook
from ingot_build_rules.engine.actions.values import Values
from ingot_build_rules.engine.cache.file_digests import DiskFiles, WatchedFiles
from ingot_build_rules.engine.executors.executor import InlineExecutor
from ingot_build_rules.engine.executors.registry import Site
from ingot_runtime.lazy_dataclass import dataclass

_CODE = tuple(importlib.machinery.all_suffixes())
_PYTHON = ("stdlib", "platstdlib", "purelib", "platlib")


@dataclass(slots=True)
class _Watch:
    """Regular files that were there and were opened for reading; files and folders that were
    made."""

    read: dict[str, None] = field(default_factory=dict[str, None])
    made: set[str] = field(default_factory=set[str])

    def saw(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            path = _real(cast("str", arguments[0]))
            if not _is_file(path):
                if arguments[2] & os.O_CREAT:
                    self.made.add(path)
            elif arguments[2] & os.O_ACCMODE != os.O_WRONLY:
                self.read[path] = None
        elif event == "os.mkdir":
            self.made.add(_real(arguments[0]))
        elif event == "os.rename" and _real(arguments[0]) in self.made:
            self.made.add(_real(arguments[1]))


def open_executor(site: Site) -> LintExecutor:
    """Make one that trusts our own code, and the folders of the cache's layers."""
    folders = [folder for layer in site.layers for folder in layer.folders]
    return LintExecutor(site.rulebook, site.values, [*site.code, *folders])


class LintExecutor(InlineExecutor):
    """Runs each action where it is submitted, and looks on; ``trusted``: folders of code and of
    what belongs to it."""

    def __init__(self, rulebook: Rulebook, values: Values, trusted: Sequence[str]) -> None:
        """Run the rules of a rulebook on values of this process."""
        super().__init__(rulebook, values)
        installed = [sysconfig.get_path(name) for name in _PYTHON]
        self._trusted = tuple(_real(folder) + os.sep for folder in (*installed, *trusted))
        self._code = tuple(_real(folder) + os.sep for folder in sys.path)

    def run(self, rule: AnyRule, inputs: object) -> Outcome:
        """Run an action; what it read decides about its outcome."""
        watch = _Watch()
        _watches().append(watch)
        try:
            outcome = perform(rule, inputs, self._values, self._rulebook)
        finally:
            _watches().remove(watch)
        if outcome.error is None and not outcome.lost:
            known = {_real(leaf) for leaf in leaves(inputs) if isinstance(leaf, str)} | {
                _real(path) for path in _noted(rule, inputs, outcome)
            }
            wrong = [
                path for path in watch.read if path not in known and not self._may_read(path, watch)
            ]
            if wrong:
                outcome.error = _error(rule, wrong)
        return outcome

    def _may_read(self, path: str, watch: _Watch) -> bool:
        if path.startswith(self._trusted) or (path.endswith(_CODE) and path.startswith(self._code)):
            return True
        return path in watch.made or any(path.startswith(folder + os.sep) for folder in watch.made)


@functools.cache
def _watches() -> list[_Watch]:
    """Return the list of observers that are active now. Python cannot remove an audit hook, so one
    hook stays installed for the life of the process."""
    watches: list[_Watch] = []

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        for watch in watches:
            watch.saw(event, arguments)

    sys.addaudithook(hook)
    return watches


def _real(path: str | bytes | os.PathLike[Any]) -> str:
    with suppress(ValueError):
        return os.path.realpath(os.fsdecode(path))
    return ""


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _noted(rule: AnyRule, inputs: object, outcome: Outcome) -> Iterator[str]:
    """Yield the paths behind what an action noted."""
    files = WatchedFiles(DiskFiles(None))
    if rule.resolve is not None:
        for name in outcome.reads:
            rule.resolve(files, inputs, name)
    yield from files.paths


def _error(rule: AnyRule, paths: Sequence[str]) -> UndeclaredReadError:
    return UndeclaredReadError(
        "an action read a file that its key does not know of",
        f"rule {rule.name}: {', '.join(sorted(paths))}",
        "expected files that its inputs name or that it notes, got others",
        "note it, or make its digest an ingredient; else a change of it goes unseen",
    )
