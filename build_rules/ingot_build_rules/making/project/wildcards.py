"""Wildcards in the path of a model: ``*``, ``?`` and ``[...]`` inside one part, ``**`` for any
number of folders.

In: a pattern, a function that lists a folder. Out: the files that match, and every folder that was
looked into. Not done here: the file system (``files``).

As in a shell, a wildcard does not match a name that begins with a dot, and case counts. ``**`` does
not follow links to folders: they may lead in circles.
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Callable, Iterator, Sequence

from ingot_build_rules.making.project.names import is_glob
from ingot_runtime.lazy_dataclass import dataclass

DEEP = "**"
Names = tuple[str, ...]
"""Names of files and folders that the parts with wildcards of a pattern matched."""


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """One name in a folder; ``is_folder`` also for a link to one."""

    name: str
    is_folder: bool
    is_link: bool = False


ListFolder = Callable[[str], Sequence[FolderEntry]]
"""Folder, relative to the project's (``.`` is itself) or absolute -> its entries; none where there
is no such folder."""


@dataclass(frozen=True, slots=True)
class Match:
    """A file, and what the wildcards stand for in it: the parts with wildcards, without the file's
    ending."""

    path: str
    stem: str


@dataclass(frozen=True, slots=True)
class Glob:
    """What a pattern found. It finds the same as long as no entry of one of ``folders`` comes,
    goes, or changes kind.

    Both lists are sorted; ``folders`` may not all exist.
    """

    pattern: str
    folders: tuple[str, ...]
    matches: tuple[Match, ...]


def find_files(pattern: str, list_folder: ListFolder) -> Glob:
    """Find the files that match ``pattern``."""
    parts = posixpath.normpath(pattern).split("/")
    fixed = next(index for index, part in enumerate(parts) if is_glob(part))
    start = "/".join(parts[:fixed]) or ("/" if pattern.startswith("/") else ".")
    wild = [*parts[fixed:], "*"] if parts[-1] == DEEP else parts[fixed:]
    search = _Search(list_folder)
    found = {path: _stem(names, wild[-1]) for path, names in search.find(start, wild, ())}
    matches = tuple(Match(path, stem) for path, stem in sorted(found.items()))
    return Glob(pattern, tuple(sorted(search.listed)), matches)


def _stem(names: Names, last: str) -> str:
    """Join what wildcards matched; the ending goes if the file's own name had one."""
    return "/".join([*names[:-1], posixpath.splitext(names[-1])[0]] if is_glob(last) else names)


class _Search:
    """One search; each folder is listed once."""

    def __init__(self, list_folder: ListFolder) -> None:
        self.listed: dict[str, list[FolderEntry]] = {}
        self._list_folder = list_folder

    def find(self, folder: str, parts: Sequence[str], names: Names) -> Iterator[tuple[str, Names]]:
        """Yield (path, names that wildcards matched) of the files below ``folder`` that match
        ``parts``."""
        part, rest = parts[0], parts[1:]
        if part == DEEP:
            yield from self.find(folder, rest, names)
        for entry in self._entries(folder):
            path = entry.name if folder == "." else posixpath.join(folder, entry.name)
            if part == DEEP:
                if entry.is_folder and not entry.is_link and not entry.name.startswith("."):
                    yield from self.find(path, parts, (*names, entry.name))
            elif _fits(entry.name, part) and entry.is_folder == bool(rest):
                found = (*names, entry.name) if is_glob(part) else names
                if rest:
                    yield from self.find(path, rest, found)
                else:
                    yield path, found

    def _entries(self, folder: str) -> list[FolderEntry]:
        if folder not in self.listed:
            self.listed[folder] = sorted(self._list_folder(folder), key=lambda entry: entry.name)
        return self.listed[folder]


def _fits(name: str, part: str) -> bool:
    if not is_glob(part):
        return name == part
    return fnmatch.fnmatchcase(name, part) and name.startswith(".") == part.startswith(".")
