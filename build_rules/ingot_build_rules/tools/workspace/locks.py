"""Lock files of a project's bundles: written beside them, or with ``--frozen`` held against what is
there.

In: the result of a build. Out: ``NAME.lock.json``, or an error. Not done here: the file's form
(``stages.lock_file``).
"""

from __future__ import annotations

import os
from dataclasses import replace

from ingot_build_rules.making.options.plugins import plugin_files
from ingot_build_rules.making.project.compile_requests import CompileRequest
from ingot_build_rules.making.stages.lock_file import (
    CodeRecord,
    LockFile,
    lock_path,
    read_lock,
    relative_sources,
    write_lock,
)
from ingot_build_rules.tools.workspace.target_result import TargetResult
from ingot_compiler.ir.errors import UserError, VerificationError
from ingot_runtime.option_ref import OptionRef

FILES_LISTED_MAX = 100
"""Projects of more bundles list the digest of each rule's code alone: the list of its files is
longer than all the rest."""


def lock_bundle(
    folder: str, request: CompileRequest, result: TargetResult, code: CodeRecord
) -> None:
    """Write the lock file of a bundle.

    Raises:
        OutputError: no permission, no space.
    """
    write_lock(lock_path(result.path), _lock(folder, request, result, code))


def check_lock(folder: str, request: CompileRequest, result: TargetResult) -> None:
    """Compare a bundle and its sources with its lock file.

    Raises:
        VerificationError: no lock file, or the first thing that differs.
    """
    path = lock_path(result.path)
    try:
        locked = read_lock(path)
    except UserError as error:
        raise VerificationError(error.what, error.where, error.why, error.do) from error
    found = replace(_lock(folder, request, result, locked.code), toolchain=locked.toolchain)
    if found != locked:
        what, why = _difference(result.name, found, locked)
        do = (
            "build without ",
            OptionRef("frozen"),
            " to accept it, which writes the lock file anew",
        )
        raise VerificationError(what, path, why, do)


def _difference(name: str, lock: LockFile, locked: LockFile) -> tuple[str, str]:
    """What is not as it is locked, and why: a source, else options, else the bundle of this
    name."""
    for now, then in zip(lock.sources, locked.sources, strict=False):
        if now != then:
            why = f"expected {then[0]} {then[1][:16]}, got {now[0]} {now[1][:16]}"
            return "a source is not the one that is locked", why
    if lock.options != locked.options:
        others = [
            f"{option}: expected {locked.options.get(option)}, got {value}"
            for option, value in sorted(lock.options.items())
            if value != locked.options.get(option)
        ]
        return "options are not those that are locked", "; ".join(others)
    why = f"expected {locked.bundle[:16]}, got {lock.bundle[:16]}"
    return f"bundle {name!r} is not the one that is locked", why


def _lock(folder: str, request: CompileRequest, result: TargetResult, code: CodeRecord) -> LockFile:
    options = request.options.plain()
    sources = [pair for pair in result.sources if pair not in _installed(folder, request)]
    return LockFile(result.root, relative_sources(folder, sources), options, result.toolchain, code)


def _installed(folder: str, request: CompileRequest) -> set[tuple[str, str]]:
    """Files of plug-ins that are not the project's own: each machine has them in another place."""
    inside = os.path.join(os.path.realpath(folder), "")
    files = plugin_files(request.options.plugins)
    return {pair for pair in files if not os.path.realpath(pair[0]).startswith(inside)}
