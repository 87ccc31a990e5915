"""The files of Python packages: what each is called, what it refers to, its digest.

In: folders of packages. Out: ``SourceFile`` of every file. Not done here: what the references lead
to (``code_digest``).
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterator

from ingot_build_rules.engine.cache.file_facts import Fact, FileFacts
from ingot_build_rules.engine.cache.source_references import references
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file; ``path`` starts with the name of its top package, so that it is the same wherever
    that is installed.

    ``module``: the dotted name of a Python file; of another file the package that it lies in, and a
    slash.
    """

    path: str
    module: str
    digest: str
    references: tuple[str, ...]


def source_files(top: str, root: str, facts: FileFacts) -> Iterator[SourceFile]:
    """Yield every file of the package ``top`` in the folder ``root``.

    Raises:
        OSError: a file is not readable.
    """
    start = len(os.path.join(root, ""))
    for module, entry in _walk(top, os.path.join(root, "")):
        is_package = entry.name == "__init__.py"
        read = functools.partial(_read, module, is_package=is_package)
        digest, found = facts.fact(entry.path, entry.stat(), read)
        yield SourceFile(f"{top}/{entry.path[start:]}", module, digest, found)


def source_file(module: str, path: str) -> SourceFile:
    """Return a module that is one file and in no package.

    Raises:
        OSError: it is not readable.
    """
    with open(path, "rb") as file:
        digest, found = _read(module, file.read(), is_package=False)
    return SourceFile(os.path.basename(path), module, digest, found)


# A process that opens several caches asks for the same sources in each, and parsing takes most of a
# second.
@functools.cache
def _read(module: str, content: bytes, *, is_package: bool) -> Fact:
    found = () if module.endswith("/") else references(module, content, is_package=is_package)
    return hashlib.sha256(content).hexdigest(), found


def _walk(package: str, folder: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the files of a package; of a package and a module with the same name, the package comes
    last and wins."""
    with os.scandir(folder) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name == "__init__.py":
            yield package, entry
        elif entry.name.endswith(".py"):
            yield f"{package}.{entry.name[:-3]}", entry
        elif entry.is_file():
            yield f"{package}/", entry
    for entry in entries:
        if entry.name.isidentifier() and entry.name != "__pycache__" and entry.is_dir():
            yield from _walk(f"{package}.{entry.name}", entry.path)
