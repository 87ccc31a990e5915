"""The compilations that the bundles of a project need.

In: an expanded project. Out: for each bundle the model file and ``CompileOptions``. Not done here:
compiling.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping, Sequence

from ingot_build_rules.making.options.compile_options import CompileOptions
from ingot_build_rules.making.options.host_target import resolve_target
from ingot_build_rules.making.options.option_rows import NATIVE
from ingot_build_rules.making.options.options import read_options
from ingot_build_rules.making.project.model import FILE_NAME, BundleSpec, ModelSpec, ProjectModel
from ingot_compiler.ir.errors import BuildError, PluginError, UnsupportedError, UserError
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """One bundle: ``source`` is the model's path, relative to the project's folder."""

    bundle: BundleSpec
    source: str
    options: CompileOptions


def compile_requests(
    project: ProjectModel, names: Collection[str], path: str = FILE_NAME
) -> tuple[CompileRequest, ...]:
    """Return the request of each bundle in ``names``, in their order in the project; ``native`` is
    found once.

    Raises:
        UnsupportedError: devices that have no code generation yet.
    """
    bundles = [bundle for bundle in project.bundles if bundle.name in names]
    texts = _target_texts(project, bundles)
    models = {spec.name: spec for spec in project.models}
    return tuple(_request(bundle, models[bundle.model], texts, path) for bundle in bundles)


def _target_texts(project: ProjectModel, bundles: Sequence[BundleSpec]) -> dict[str, str]:
    """The text of each target that the project names; what is native is looked up if a bundle asks
    for it."""
    texts = {spec.name: spec.text for spec in project.targets}
    if not any(NATIVE in (*bundle.options.targets, *texts.values()) for bundle in bundles):
        return texts
    native = str(resolve_target(NATIVE))
    resolved = {name: native if text == NATIVE else text for name, text in texts.items()}
    return resolved | {NATIVE: native}


def _request(
    bundle: BundleSpec, model: ModelSpec, texts: Mapping[str, str], path: str
) -> CompileRequest:
    given = bundle.options
    resolved = given._replace(
        targets=[texts.get(name, name) for name in map(str, given.targets)],
        shapes=model.shapes if given.shapes is None else given.shapes,
        other_shapes=given.other_shapes or model.other_shapes,
    )
    try:
        options = read_options(resolved, posixpath.dirname(path), texts)
    except (BuildError, UnsupportedError, UserError, PluginError) as error:
        file = f"{path}:{bundle.line}" if bundle.line else path
        where = f"{file}, [bundle.{bundle.name}]"
        raise type(error)(error.what, where, error.why, error.do) from None
    return CompileRequest(bundle, model.source, options)
