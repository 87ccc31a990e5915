"""A project as its user declares it: read from ``ingot.toml``, put together by calls, or both.

In: paths, declarations. Out: the same frozen data that the file gives (``project.model.Project``).
Not done here: building (``run_build``, ``api.project``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self, Unpack

from ingot_build_rules.making.options.export_rows import FIELD_ROWS, ExportKeywords
from ingot_build_rules.making.options.option_rows import (
    ROWS,
    BundleKeywords,
    Shapes,
    key,
    require_keywords,
)
from ingot_build_rules.making.project.config import override
from ingot_build_rules.making.project.expand import Expansion, expand
from ingot_build_rules.making.project.model import FILE_NAME, ProjectModel
from ingot_build_rules.making.project.problems import Findings
from ingot_build_rules.making.project.read import read_tree
from ingot_build_rules.making.project.toml_text import Places, Tree, locator, read_toml
from ingot_build_rules.tools.workspace.project_files import (
    find_project,
    folder_lister,
    read_project_file,
)
from ingot_compiler.ir.errors import UserError
from ingot_runtime.printable import printable

PathText = str | os.PathLike[str]
_IN_PYTHON = "ingot.Project"


class DeclaredProject:
    """Models, targets, bundles and tests; arguments and defaults are those of the file's keys.

    Paths are relative to ``folder``. Mistakes are reported by ``freeze``, all at once; a name
    declared twice at once.
    """

    def __init__(
        self,
        folder: PathText = ".",
        *,
        name: str | None = None,
        cache: PathText | None = None,
        default_targets: Sequence[str] | None = None,
    ) -> None:
        """Begin an empty project in ``folder``."""
        self.folder = os.fspath(folder)
        self.path = _IN_PYTHON
        self._places: Places = {}
        self._tree: dict[str, Any] = {}
        settings = _given({"name": name, "cache": cache, "default-targets": default_targets})
        if settings:
            self._tree["project"] = settings

    def __repr__(self) -> str:
        tables = ((kind, ", ".join(self._tree.get(kind, {}))) for kind in ("bundle", "test"))
        listed = "; ".join(f"{kind}s {names}" for kind, names in tables if names) or "empty"
        where = self.folder if self.path == _IN_PYTHON else self.path
        return printable(f"<ingot.Project {where}: {listed}>")

    @classmethod
    def load(cls, path: PathText = ".", config: Mapping[str, str] | None = None) -> Self:
        """Read a project file: ``path`` is the file, or a folder in or below the project's;
        ``config`` as ``--config``.

        Raises:
            UserError: no file, not TOML, or everything that is wrong with it. UnsupportedError:
                plugins.
        """
        given = os.fspath(path)
        file = find_project(given) if os.path.isdir(given) else given
        tree, places = read_toml(read_project_file(file), file)
        tree, places, problems = override(tree, places, config or {})
        read_tree(tree, Findings(file, locator(places, file), problems))
        project = cls(os.path.dirname(file) or ".")
        project.path, project._places, project._tree = file, places, dict(tree)
        return project

    def target(
        self,
        name: str,
        target: str | None = None,
        *,
        level: str | None = None,
        cpu: str | None = None,
        features: Sequence[str] | None = None,
    ) -> None:
        """Name a target: a text, ``ARCH[:cpu][+feature|-feature]...``, or its attributes."""
        attributes = {"level": level, "cpu": cpu, "features": features}
        self._declare("target", name, _given({"target": target, **attributes}))

    def model(
        self,
        name: str,
        source: PathText,
        *,
        shape: Shapes | None = None,
        other_shapes: str | None = None,
    ) -> None:
        """Declare a model file, or many by a glob."""
        shapes = {"shape": shape, "other-shapes": other_shapes}
        self._declare("model", name, _given({"source": source, **shapes}))

    def bundle(
        self,
        name: str,
        model: str,
        *,
        output: PathText | None = None,
        **options: Unpack[BundleKeywords],
    ) -> None:
        """Declare a bundle of one model; ``shape`` takes the place of the model's."""
        fields = {key(field).replace("-", "_"): key(field) for field in ROWS}
        require_keywords("bundle", options, fields)
        said = {fields[name]: value for name, value in options.items()}
        self._declare("bundle", name, _given({"model": model, "output": output, **said}))

    def export(
        self,
        name: str,
        bundle: str,
        kind: str,
        output: PathText,
        **fields: Unpack[ExportKeywords],
    ) -> None:
        """Declare what a bundle is exported as: ``kind`` as an option of ``ingot export``, the rest
        as its other options; ``model_name`` is ``--name``. A release has ``selftest`` calls, and is
        signed with the private keys of ``sign``."""
        require_keywords("export", fields, ExportKeywords.__annotations__)
        values: Tree = {"bundle": bundle, "kind": kind, "output": output}
        keys = {field: row.key for field, row in FIELD_ROWS.items()}
        said = {keys.get(field, field): value for field, value in fields.items()}
        self._declare("export", name, _given({**values, **said}))

    def test(
        self,
        name: str,
        bundle: str,
        inputs: PathText,
        outputs: PathText,
        *,
        tolerance: float | None = None,
        absolute_tolerance: float | None = None,
        threads: int | None = None,
        executor: str | None = None,
    ) -> None:
        """Declare a run of a bundle on given inputs with expected outputs."""
        values = {"bundle": bundle, "inputs": inputs, "outputs": outputs, "tolerance": tolerance}
        more = {"absolute-tolerance": absolute_tolerance, "threads": threads, "executor": executor}
        self._declare("test", name, _given({**values, **more}))

    def freeze(self) -> ProjectModel:
        """Return the data as declared, globs as they are written.

        Raises:
            UserError: everything that is wrong with it.
        """
        if self.path == _IN_PYTHON and "bundle" not in self._tree:
            raise self._without_bundles()
        return read_tree(self._tree, Findings(self.path, locator(self._places, self.path)))

    def expand(self) -> Expansion:
        """Return the data with every glob replaced by what it finds now.

        Raises:
            UserError: as ``freeze``; a glob that finds nothing.
        """
        return expand(self.freeze(), folder_lister(self.folder), self.path)

    def _without_bundles(self) -> UserError:
        """Most likely, a file was to be read."""
        do = "declare one: project.model('a', source='a.onnx'); project.bundle('a', model='a')"
        if os.path.exists(os.path.join(self.folder, FILE_NAME)):
            do = f"read the {FILE_NAME} there: ingot.Project.load({self.folder!r})"
        why = "expected at least one bundle, got none"
        return UserError("the project is empty", _IN_PYTHON, why, do)

    def _declare(self, kind: str, name: str, values: Tree) -> None:
        tables = self._tree.get(kind, {})
        if name in tables:
            raise UserError(
                f"{kind} {name!r} is declared twice",
                self.path,
                "expected one",
                "choose another name",
            )
        self._tree[kind] = {**tables, name: values}


def _given(values: Tree) -> Tree:
    """Leave out what the caller left out."""
    return {key: value for key, value in values.items() if value is not None}
