"""The project that a command is about: its file found, read and expanded.

In: a folder, overrides. Out: ``LoadedProject``. Not done here: building it.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence

from ingot_build_rules.engine.cache.file_digests import stamp_of
from ingot_build_rules.engine.cache.unchanged import Stamp
from ingot_build_rules.making.project.config import split_config
from ingot_build_rules.making.project.model import ProjectModel
from ingot_build_rules.making.project.selection import Selection, select
from ingot_build_rules.making.project.wildcards import Glob
from ingot_build_rules.tools.workspace.declared_project import DeclaredProject
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class LoadedProject:
    """``folder``: what all paths are relative to; ``path``: the project file; ``globs``: what
    patterns have found."""

    folder: str
    path: str
    project: ProjectModel
    globs: tuple[Glob, ...]

    def stamps(self) -> dict[str, Stamp]:
        """What they look like; a file that has gone meanwhile is left out, for it is looked at
        again anyway."""
        found = {path: stamp_of(path) for path in self.watched()}
        return {path: stamp for path, stamp in found.items() if stamp is not None}

    def watched(self) -> list[str]:
        """The file and the folders that decide what the project is."""
        folders = sorted(
            {os.path.join(self.folder, folder) for glob in self.globs for folder in glob.folders}
        )
        return [self.path, *(folder for folder in folders if os.path.isdir(folder))]

    def select(self, words: Sequence[str]) -> Selection:
        """Return what words mean; an output file may be written as a path from the current folder
        too.

        Raises:
            UserError: every word that means nothing.
        """
        outputs = {posixpath.normpath(bundle.output) for bundle in self.project.bundles}
        return select(self.project, [self._known(word, outputs) for word in words])

    def _known(self, word: str, outputs: set[str]) -> str:
        path = os.path.relpath(os.path.abspath(word), self.folder).replace(os.sep, "/")
        return path if path in outputs and posixpath.normpath(word) not in outputs else word


def load_project(folder: str, config: Sequence[str] = ()) -> LoadedProject:
    """Read the project in ``folder`` or above it; ``config``: texts of ``--config k=v``.

    Raises:
        UserError: none there, or everything that is wrong with it.
    """
    return loaded_project(DeclaredProject.load(folder, split_config(config)))


def loaded_project(declared: DeclaredProject) -> LoadedProject:
    """Expand a project that was declared in Python or read from a file.

    Raises:
        UserError: everything that is wrong with it.
    """
    expansion = declared.expand()
    root = os.path.abspath(declared.folder or ".")
    return LoadedProject(
        root,
        os.path.join(root, os.path.basename(declared.path)),
        expansion.project,
        expansion.globs,
    )
