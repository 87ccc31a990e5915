"""What a project asks for today of a bundle that was built before.

In: the project's folder, a bundle's path. Out: ``RequestedOptions``. Not done here: building.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from ingot_build_rules.making.options.option_rows import NATIVE
from ingot_build_rules.making.project.compile_requests import compile_requests
from ingot_build_rules.making.project.model import FILE_NAME, BundleSpec, ProjectModel
from ingot_build_rules.tools.reproduce.reproduce import RequestedOptions
from ingot_build_rules.tools.workspace.open_workspace import LoadedProject, load_project
from ingot_compiler.ir.errors import UserError
from ingot_runtime.option_ref import OptionRef


def requested_options(
    folder: str, bundle: str, plugins: Collection[str] = ()
) -> RequestedOptions | None:
    """Return the options of the one bundle that has this output, or else an output of this name;
    None where there is none. ``plugins``: where those are that may be imported.

    Raises:
        UserError: everything that is wrong with ``ingot.toml``; it names another plug-in.
    """
    if not os.path.isfile(os.path.join(folder, FILE_NAME)):
        return None
    loaded = load_project(folder)
    spec = _with_output(loaded, bundle)
    if spec is None:
        return None
    others = [text for text in spec.options.plugins if text.partition(",")[0] not in plugins]
    if others:
        what = f"it names plug-in {others[0]}, and the command does not"
        raise UserError(what, FILE_NAME, do=OptionRef("plugin", others[0]))
    (request,) = compile_requests(loaded.project, [spec.name], loaded.path)
    where = f"[bundle.{spec.name}] of {FILE_NAME}"
    return RequestedOptions(where, request.options, _is_native(loaded.project, spec))


def _with_output(loaded: LoadedProject, bundle: str) -> BundleSpec | None:
    """The one bundle that is written to a path, or else to another path of this name."""
    path, name = os.path.realpath(bundle), os.path.basename(bundle)
    outputs = [(os.path.join(loaded.folder, spec.output), spec) for spec in loaded.project.bundles]
    same = [spec for output, spec in outputs if os.path.realpath(output) == path]
    same = same or [spec for output, spec in outputs if os.path.basename(output) == name]
    return same[0] if len(same) == 1 else None


def _is_native(project: ProjectModel, bundle: BundleSpec) -> bool:
    texts = {spec.name: spec.text for spec in project.targets}
    return any(NATIVE in (name, texts.get(name)) for name in map(str, bundle.options.targets))
