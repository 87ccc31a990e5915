"""A small correct project, and how its mistakes are shown.

In: texts. Out: projects, messages. Not done here: assertions on them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ingot_build_rules.making.project.model import ProjectModel
from ingot_build_rules.making.project.parse import parse_project
from ingot_build_rules.making.project.wildcards import FolderEntry, ListFolder

SMALL = """\
[model.a]
source = "models/a.onnx"

[bundle.a]
model = "a"
"""
GLOB = """\
[model.vision]
source = "models/*.onnx"

[bundle.vision]
model = "vision"
"""


def parse(text: str, **config: str) -> ProjectModel:
    """Parse a project file; ``config`` by path with ``__`` for dots."""
    return parse_project(
        text, "ingot.toml", {path.replace("__", "."): value for path, value in config.items()}
    )


def lister(files: Iterable[str], links: Collection[str] = ()) -> ListFolder:
    """Return a lister of a made-up tree: ``files`` by path, ``links`` are folders in it that are
    links."""
    tree: dict[str, dict[str, bool]] = {}
    for file in files:
        path, is_folder = file, False
        while path not in (".", "/"):
            folder, _, name = path.rpartition("/")
            folder = folder or ("/" if path.startswith("/") else ".")
            tree.setdefault(folder, {})[name] = is_folder
            path, is_folder = folder, True

    def list_folder(folder: str) -> list[FolderEntry]:
        entries = reversed(tree.get(folder, {}).items())  # no order that anyone may rely on
        return [
            FolderEntry(name, is_folder, f"{folder}/{name}" in links) for name, is_folder in entries
        ]

    return list_folder
