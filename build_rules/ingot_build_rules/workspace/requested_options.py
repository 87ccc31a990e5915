"""What a project asks for today of a bundle that was built before.

In: the project's folder, a bundle's path. Out: ``RequestedOptions``. Not done here: building.
"""

from __future__ import annotations

import os

from ingot_build_rules.project.compile_requests import compile_requests
from ingot_build_rules.project.model import FILE_NAME, NATIVE, BundleSpec, ProjectModel
from ingot_build_rules.reproduce.reproduce import RequestedOptions
from ingot_build_rules.workspace.open_workspace import load_project


def requested_options(folder: str, bundle: str) -> RequestedOptions | None:
    """Return the options of the one bundle that has this output, or else an output of this name;
    None where there is none.

    Raises:
        UserError: everything that is wrong with ``ingot.toml``.
    """
    if not os.path.isfile(os.path.join(folder, FILE_NAME)):
        return None
    loaded = load_project(folder)
    path, name = os.path.realpath(bundle), os.path.basename(bundle)
    outputs = {
        spec.name: os.path.join(loaded.folder, spec.output) for spec in loaded.project.bundles
    }
    same = [spec for spec in loaded.project.bundles if os.path.realpath(outputs[spec.name]) == path]
    same = same or [
        spec for spec in loaded.project.bundles if os.path.basename(spec.output) == name
    ]
    if len(same) != 1:
        return None
    (request,) = compile_requests(loaded.project, [same[0].name], loaded.path)
    return RequestedOptions(
        f"[bundle.{same[0].name}] of {FILE_NAME}",
        request.options,
        _is_native(loaded.project, same[0]),
    )


def _is_native(project: ProjectModel, bundle: BundleSpec) -> bool:
    texts = {spec.name: spec.text for spec in project.targets}
    return any(NATIVE in (name, texts.get(name)) for name in bundle.targets)
