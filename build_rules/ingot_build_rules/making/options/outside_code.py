"""The code of plug-ins, which lies outside of Ingot's own packages, and which part of it a module
can import.

In: the name of a module. Out: ``OutsideCode``: files with their digests. Not done here: the rules
of static imports (``engine.cache``), our own code (``own_code``).

The closure goes on through modules that Python finds where it found the plug-in's. Of other
packages that are installed the version counts, of the standard library that of Python.
"""

from __future__ import annotations

import functools
import importlib.machinery
import os
import sys
from collections.abc import Iterator

from ingot_build_rules.engine.cache.file_facts import FileFacts
from ingot_build_rules.engine.cache.source_files import SourceFile, source_file, source_files
from ingot_compiler.ir.errors import UserError
from ingot_runtime.lazy_dataclass import dataclass

OWN = ("ingot", "ingot_artifacts", "ingot_build_rules", "ingot_compiler", "ingot_runtime",
       "ingot_runtime_devices")  # fmt: skip


@dataclass(frozen=True, slots=True)
class OutsideCode:
    """``files``: (path on this machine, what it is) of every file of the packages and modules that
    are reached; ``distributions``: top module -> distribution of what else is."""

    files: tuple[tuple[str, SourceFile], ...]
    distributions: tuple[tuple[str, str], ...]


def outside_code(module: str) -> OutsideCode:
    """Return the code of a module as it was when this process first asked for it.

    Raises:
        UserError: it has changed since: what is in memory is not what is on the disk.
    """
    top = module.partition(".")[0]
    known, now = _first(top), _read(top)
    if known != now:
        where = min((path for path, _ in set(now.files) ^ set(known.files)), default=top)
        why = "this process has imported what it was before"
        do = "start a new process"
        raise UserError(f"module {top} of a plug-in has changed", where, why, do)
    return known


@functools.cache
def _first(top: str) -> OutsideCode:
    return _read(top)


def _read(top: str) -> OutsideCode:
    files: dict[str, tuple[tuple[str, SourceFile], ...]] = {}
    distributions: dict[str, str] = {}
    waiting = [top]
    while waiting:
        name = waiting.pop()
        if not name or name in files or name in distributions or name in OWN:
            continue
        found = distribution_of(name) if name != top else ""
        if found:
            distributions[name] = found
            continue
        files[name] = tuple(_files_of(name))
        waiting += sorted(
            {reference.lstrip("~").partition(".")[0].rstrip("^/*") for _, file in files[name]
             for reference in file.references} - sys.stdlib_module_names
        )  # fmt: skip
    own = (pair for _, pairs in sorted(files.items()) for pair in pairs)
    return OutsideCode(tuple(own), tuple(sorted(distributions.items())))


def _files_of(top: str) -> Iterator[tuple[str, SourceFile]]:
    """The files of a package, or of a module in one file; none of what Python does not find."""
    spec = importlib.machinery.PathFinder.find_spec(top)
    if spec is None:
        return
    if spec.submodule_search_locations:
        for root in sorted(spec.submodule_search_locations):
            for file in source_files(top, root, FileFacts(None, "", saves=False)):
                yield os.path.join(root, file.path.partition("/")[2]), file
    elif spec.origin is not None and spec.origin.endswith(".py"):
        yield spec.origin, source_file(top, spec.origin)


@functools.cache
def _distributions() -> dict[str, list[str]]:
    from importlib.metadata import packages_distributions  # slow to load; few builds ask

    return dict(packages_distributions())


def distribution_of(top: str) -> str:
    """The distribution that a top module comes from; "" where it was not installed as one."""
    return next(iter(sorted(_distributions().get(top, ()))), "")
