"""The tree as the tidy tests see it: packages, files, syntax trees.

In: the working tree. Out: paths and parsed modules. Not done here: rules (one test file per kind of
rule).
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "ingot": ROOT / "build_rules" / "ingot",
    "ingot_build_rules": ROOT / "build_rules" / "ingot_build_rules",
    "ingot_compiler": ROOT / "compiler" / "ingot_compiler",
    "ingot_artifacts": ROOT / "artifacts" / "ingot_artifacts",
    "ingot_runtime": ROOT / "runtime" / "ingot_runtime",
    "ingot_runtime_devices": ROOT / "runtime" / "ingot_runtime_devices",
}


@dataclass(frozen=True, slots=True)
class Module:
    """One file of a package: its dotted name, path from the root, and text."""

    name: str
    path: str
    text: str

    @property
    def tree(self) -> ast.Module:
        """The parsed text."""
        return _parse(self.text)

    def imports(self) -> tuple[tuple[int, str], ...]:
        """Return (line, dotted name) of every import, relative ones resolved, at any depth."""
        return _imports(self)


@functools.cache
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


@functools.cache
def _imports(module: Module) -> tuple[tuple[int, str], ...]:
    package = (
        module.name.split(".")
        if module.path.endswith("__init__.py")
        else module.name.split(".")[:-1]
    )
    found: list[tuple[int, str]] = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found += ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            found += ((node.lineno, f"{stem}.{alias.name}") for alias in node.names)
    return tuple(found)


@functools.cache
def modules(package: str = "") -> tuple[Module, ...]:
    """Return the modules of one package (dotted prefix), or of all, sorted by name."""
    found: list[Module] = []
    for name, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = [name, *path.relative_to(folder).with_suffix("").parts]
            dotted = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            if not package or dotted == package or dotted.startswith(package + "."):
                found.append(
                    Module(dotted, str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
                )
    return tuple(found)


def is_public(module: Module) -> bool:
    """Whether no part of the module's name starts with an underscore (``__main__`` counts as
    public)."""
    return all(not part.startswith("_") or part == "__main__" for part in module.name.split("."))
