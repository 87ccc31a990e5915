"""Which version of a distribution is installed, to the byte, and wherever it lies.

In: names of distributions, the folders that Python searches. Out: version and digest of each. Not
done here: reading the distribution's files: its installer wrote their digests into ``RECORD``.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from ingot_build_rules.engine.cache.file_facts import FileFacts
from ingot_runtime.lazy_dataclass import dataclass

_ENDING = ".dist-info"


@dataclass(frozen=True, slots=True)
class Installed:
    """Version and sha256 over the digests of the installed files; both are empty for what is not
    installed. ``record``: the list of the files, which changes when it is installed again."""

    name: str
    version: str
    digest: str
    record: str = field(default="", compare=False)


def installed_versions(names: Iterable[str], search_path: Sequence[str]) -> dict[str, str]:
    """Return name -> version as its folder of notes is called, sorted; "" for what is not
    installed.

    The standard library's way loads a parser of mails for it.
    """
    found = {
        stem: version for folder in reversed(search_path) for stem, version, _ in _entries(folder)
    }
    return {name: found.get(_normal(name)) or _other_version(name) for name in sorted(names)}


def _other_version(name: str) -> str:
    """The version of a package that was installed in another way, as system packages are."""
    import importlib.metadata

    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def find_installed(
    names: Iterable[str], search_path: Sequence[str], facts: FileFacts
) -> dict[str, Installed]:
    """Find each distribution in the first folder that has it, as Python does."""
    wanted = {_normal(name): name for name in names}
    found: dict[str, Installed] = {name: Installed(name, "", "") for name in wanted.values()}
    for folder in reversed(search_path):
        for stem, version, entry in _entries(folder):
            if stem in wanted:
                record = os.path.join(folder, entry, "RECORD")
                found[wanted[stem]] = Installed(
                    wanted[stem], version, _digest(record, facts), record
                )
    return found


def _entries(folder: str) -> Iterator[tuple[str, str, str]]:
    """Yield (normal name, version, folder of its notes) of each distribution in a folder."""
    try:
        entries = sorted(os.listdir(folder or "."))
    except OSError:  # a zip file, or a folder that is not there: nothing is imported from it
        return
    for entry in entries:
        stem, dash, version = entry.removesuffix(_ENDING).rpartition("-")
        if dash and entry.endswith(_ENDING):
            yield _normal(stem), version, entry


def _digest(record: str, facts: FileFacts) -> str:
    """Digest what is listed; without a list, as system packages come, the version must do."""
    try:
        return facts.fact(record, os.stat(record), lambda content: (record_digest(content), ()))[0]
    except OSError:
        return ""


def record_digest(record: bytes) -> str:
    """Digest the installed files as ``RECORD`` lists them.

    Left out is what differs between two installations of the same files: scripts outside of the
    folder (their first line has a path), compiled files (no digest) and what installers note about
    themselves.
    """
    rows = csv.reader(record.decode("utf-8", "surrogateescape").splitlines())
    kept = sorted(
        f"{row[0]}\n{row[1]}\n"
        for row in rows
        if len(row) >= 2
        and row[1]
        and not row[0].startswith(("../", "/"))
        and _ENDING + "/" not in row[0]
    )
    return hashlib.sha256("".join(kept).encode("utf-8", "surrogateescape")).hexdigest()


def _normal(name: str) -> str:
    """Spell a name as folders of installed distributions do (PEP 503, with underscores)."""
    normal = name.lower().replace("-", "_").replace(".", "_")
    while "__" in normal:
        normal = normal.replace("__", "_")
    return normal
