"""Digests of code: one for a module, or one function of it, and everything that it can import.

In: folders of packages, distributions to tell apart, a file of what was found last time. Out: for a
module the sha256 over the sources of its static import closure, and the list behind it. Not done
here: reading files (``source_files``) and imports (``source_references``); code outside of the
given packages and distributions; the version of Python.

The closure of a module: itself, its packages' ``__init__``, what these refer to, and so on. It
depends on names and sources alone, not on where the packages are installed or when their files were
written. The closure of "module:function" leaves out what the module's other functions refer to,
where importing the module runs none of them: so functions of one subject stand in one file, and
each is reached alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

from ingot_build_rules.engine.cache.file_facts import FileFacts
from ingot_build_rules.engine.cache.installed import find_installed
from ingot_build_rules.engine.cache.source_files import SourceFile, source_files


class CodeDigests:
    """The code as it lies on the disk when this is made; later changes need a new one."""

    def __init__(
        self,
        package_roots: Mapping[str, str],
        cache_file: str | None,
        distributions: Mapping[str, str] | None = None,
        search_path: Sequence[str] = (),
        *,
        saves: bool = True,
        key: bytes = b"",
    ) -> None:
        """Look at every file of the packages.

        Args:
            package_roots: top package -> its folder.
            cache_file: saves reading what did not change; whatever is in it that is not sealed, the
                digests are right.
            distributions: top module -> the distribution that it comes from, for those that decide
                results.
            search_path: the folders that distributions are looked for in.
            saves: whether ``cache_file`` is brought up to date.
            key: seals ``cache_file``.

        Raises:
            OSError: a source file is not readable.
        """
        facts = FileFacts(cache_file, "code digests 2", saves=saves, key=key)
        self._files: dict[str, list[SourceFile]] = {}
        self._references: dict[str, Iterable[str]] = {}
        self._sorted: list[tuple[tuple[str, str], str]] = []
        for top, root in sorted(package_roots.items()):
            self._add(source_files(top, root, facts))
        self._distributions = dict(distributions or {})
        for name in self._distributions:
            self._references |= {name: (), f"{name}^": ()}
        self._installed = find_installed(self._distributions.values(), search_path, facts)
        facts.save()
        self._closures: dict[str, frozenset[str]] = {}

    def include(
        self,
        files: Iterable[SourceFile],
        distributions: Mapping[str, str],
        search_path: Sequence[str],
    ) -> None:
        """Know code from outside as well, which none of the packages imports: its ``files``, and
        the distributions that it imports."""
        self._add(files)
        self._distributions |= distributions
        for name in distributions:
            self._references |= {name: (), f"{name}^": ()}
        facts = FileFacts(None, "", saves=False)
        new = {name for name in distributions.values() if name not in self._installed}
        self._installed |= find_installed(new, search_path, facts)

    def knows(self, module: str) -> bool:
        """Whether it has the code of a module, or of a "module:function"."""
        return module.partition(":")[0] in self._files

    def digest(self, module: str) -> str:
        """Return 64 hex digits that name the code that ``module`` can run.

        Raises:
            LookupError: no such module.
        """
        state = hashlib.sha256()
        for name, digest in (*self.files_of(module), *self.distributions_of(module)):
            state.update(f"{name}\n{digest}\n".encode("utf-8", "surrogateescape"))
        return state.hexdigest()

    def files_of(self, module: str, others: Collection[str] = ()) -> tuple[tuple[str, str], ...]:
        """Return (path that starts with the top package, sha256) of each file in the closure of a
        module, or "module:function", and of the files at ``others``, sorted."""
        closure = self._closure(module)
        return tuple(
            pair for pair, name in self._in_order() if name in closure or pair[0] in others
        )

    def distributions_of(self, module: str) -> tuple[tuple[str, str], ...]:
        """Return ("NAME VERSION", sha256 of its files' digests) of each distribution in the
        closure, sorted."""
        names = {
            self._distributions[top] for top in self._closure(module) & self._distributions.keys()
        }
        found = [self._installed[name] for name in sorted(names)]
        return tuple((f"{item.name} {item.version}", item.digest) for item in found)

    def records(self) -> tuple[str, ...]:
        """Return the path of the list of files of each distribution that is installed and has one,
        sorted."""
        return tuple(sorted(item.record for item in self._installed.values() if item.digest))

    def _in_order(self) -> list[tuple[tuple[str, str], str]]:
        """Every file's path and digest, and its module, sorted: once for all closures."""
        if not self._sorted:
            files = (file for files in self._files.values() for file in files)
            self._sorted = sorted(((file.path, file.digest), file.module) for file in files)
        return self._sorted

    def _add(self, files: Iterable[SourceFile]) -> None:
        """Note what each name that a reference can have leads to: what functions refer to not from
        ``a^``, and from ``a:f`` that of ``f`` alone."""
        self._sorted = []
        below: dict[str, list[str]] = {}
        for file in files:
            by_function: dict[str, list[str]] = {}
            for name in file.references:
                function, _, found = name.rpartition("~")
                by_function.setdefault(function, []).append(found)
            self._references[f"{file.module}^"] = by_function.get("", ())
            self._references[file.module] = [*chain(*by_function.values())]
            for function, names in by_function.items():
                self._references[f"{file.module}:{function}"] = [f"{file.module}^", *names]
            self._files.setdefault(file.module, []).append(file)
            package = "" if file.module.endswith("/") else file.module.rpartition(".")[0]
            while package:
                below.setdefault(f"{package}.*", []).append(file.module)
                package = package.rpartition(".")[0]
        self._references |= below

    def _closure(self, module: str) -> frozenset[str]:
        """Return every name that ``module`` leads to, as in ``source_references``; ``a^`` as
        ``a``."""
        if module not in self._closures:
            start = module if module in self._references else module.partition(":")[0]
            if start.partition(":")[0] not in self._files:
                raise LookupError(f"no module {module!r} in the packages")
            reached: set[str] = set()
            waiting = {start}
            while waiting:
                reached |= waiting
                waiting = {
                    name for known in waiting for name in self._references[known]
                } & self._references.keys()
                waiting -= reached
            self._closures[module] = frozenset(name.removesuffix("^") for name in reached)
        return self._closures[module]
