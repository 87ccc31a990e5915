"""``NAME.lock.json`` beside a bundle: from which files, by which code it was made.

In: digests. Out: JSON, the same bytes for the same content on every machine; and the values again. Not done here:
what the bundle itself records (rule ``bundle``), comparing (``blame``).

The bundle knows content alone; this file knows where it came from. Paths are relative to the
project's folder, with ``/``; there is no time and no absolute path in it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING

from ingot_artifacts.store.atomic import atomic_file
from ingot_build_rules.making.options.plain_values import as_list, as_table, as_text, as_texts
from ingot_compiler.ir.errors import UserError
from ingot_runtime.format.file import open_without_waiting
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_build_rules.engine.cache.code_digest import CodeDigests

_FORMAT = 1
_ENDING = ".ingot"
_AGAIN = "build the bundle again, which writes it anew, or delete it"
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CodeRecord:
    """Code that makes bundles: ``rules``: (name, digest of our code in it); ``files``: (path,
    sha256); ``libraries``: (name, version), as their files differ from machine to machine. All
    sorted."""

    rules: Pairs
    files: Pairs
    libraries: Pairs


@dataclass(frozen=True, slots=True)
class LockFile:
    """``bundle``: its root digest. ``sources``: (path, sha256), the model's file first.
    ``options``: ``CompileOptions.plain``."""

    bundle: str
    sources: Pairs
    options: Mapping[str, object]
    toolchain: Pairs
    code: CodeRecord = field(default=CodeRecord((), (), ()))


def record_code(digests: CodeDigests) -> CodeRecord:
    """Return the code of every rule that makes bundles, and of what these load by name."""
    from ingot_build_rules.making.rules.registry import BUNDLE_RULES, RULEBOOK

    code_of = {rule.name: RULEBOOK.code_of(rule) for rule in BUNDLE_RULES}
    places = {where for found in code_of.values() for where in found}
    files_of = {where: digests.files_of(where) for where in places}
    installed = {name for where in places for name, _ in digests.distributions_of(where)}
    return CodeRecord(
        tuple(
            (name, _digest(pair for where in found for pair in files_of[where]))
            for name, found in sorted(code_of.items())
        ),
        tuple(sorted({pair for found in files_of.values() for pair in found})),
        tuple(
            (name, version)
            for name, _, version in sorted(each.partition(" ") for each in installed)
        ),
    )


def _digest(files: Iterable[tuple[str, str]]) -> str:
    listed = "".join(f"{path}\n{digest}\n" for path, digest in files)
    return hashlib.sha256(listed.encode()).hexdigest()


def lock_path(bundle: str) -> str:
    """Where the lock file of a bundle is: ``dist/a.lock.json`` for ``dist/a.ingot``."""
    return f"{bundle.removesuffix(_ENDING)}.lock.json"


def relative_sources(folder: str, sources: Sequence[tuple[str, str]]) -> Pairs:
    """Return (path, digest) pairs, the first in its place and the others sorted, with paths from
    ``folder`` on."""
    found = [
        (os.path.relpath(path, folder).replace(os.sep, "/"), digest) for path, digest in sources
    ]
    return (*found[:1], *sorted(found[1:]))


def write_lock(path: str, lock: LockFile) -> None:
    """Make ``path`` the lock file; one that has this content keeps its times. Its name lasts after
    ``sync_folders``.

    Raises:
        OutputError: no folder, no permission, no space.
    """
    content = lock_text(lock).encode("ascii")
    with suppress(OSError), open(path, "rb") as file:
        if file.read() == content:
            return
    with atomic_file(path, lasting=True) as file:
        file.write(content)


def lock_text(lock: LockFile) -> str:
    """Return the file's text: sorted keys, one entry a line."""
    plain = {
        "format": _FORMAT,
        "bundle": lock.bundle,
        "sources": _entries(lock.sources),
        "options": lock.options,
        "toolchain": dict(lock.toolchain),
        "rules": dict(lock.code.rules),
        "code": _entries(lock.code.files),
        "libraries": dict(lock.code.libraries),
    }
    return json.dumps(plain, sort_keys=True, indent=1) + "\n"


def read_lock(path: str) -> LockFile:
    """Read a lock file; keys that this version does not know are left alone, those of code may be
    missing.

    Raises:
        UserError: not there, not readable, not a lock file, or of another version.
    """
    try:
        with open(path, encoding="utf-8", opener=open_without_waiting) as file:
            plain = as_table(json.load(file))
        _check_format(plain, path)
        return _lock(plain)
    except OSError as error:
        what, why = "cannot read the lock file", error.strerror or str(error)
        raise UserError(what, path, why, "check the path, or build the bundle again") from None
    except KeyError as error:
        raise UserError("not a lock file", path, f"no key {error}", _AGAIN) from None
    except (ValueError, TypeError, RecursionError) as error:
        raise UserError("not a lock file", path, str(error).splitlines()[0], _AGAIN) from None


def _check_format(plain: dict[str, object], path: str) -> None:
    if plain.get("format") not in (None, _FORMAT):
        why = f"expected format {_FORMAT}, got {plain['format']!r}"
        do = "use the version of Ingot that wrote it"
        raise UserError("a lock file of another version", path, why, do)


def _lock(values: dict[str, object]) -> LockFile:
    code = CodeRecord(
        _pairs(values.get("rules", {})),
        _read_entries(values.get("code", [])),
        _pairs(values.get("libraries", {})),
    )
    return LockFile(
        as_text(values["bundle"]),
        _read_entries(values["sources"]),
        as_table(values["options"]),
        _pairs(values["toolchain"]),
        code,
    )


def _entries(pairs: Pairs) -> list[dict[str, str]]:
    return [{"path": path, "sha256": digest} for path, digest in pairs]


def _read_entries(entries: object) -> Pairs:
    tables = map(as_texts, as_list(entries))
    return tuple((table["path"], table["sha256"]) for table in tables)


def _pairs(table: object) -> Pairs:
    return tuple(sorted(as_texts(table).items()))
