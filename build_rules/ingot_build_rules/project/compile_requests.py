"""What each bundle of a project asks of the compiler.

In: an expanded project. Out: for each bundle the model file and ``CompileOptions``. Not done here:
compiling.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping, Sequence

from ingot_build_rules.compilation.host_target import resolve_target
from ingot_build_rules.compilation.op_options import read_ops
from ingot_build_rules.compilation.options import make_options
from ingot_build_rules.compilation.plugins import read_plugins
from ingot_build_rules.compilation.tuning_file import read_tuning
from ingot_build_rules.project.model import FILE_NAME, NATIVE, BundleSpec, ModelSpec, ProjectModel
from ingot_build_rules.rules.compile_options import CompileOptions
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
    if not any(NATIVE in (*bundle.targets, *texts.values()) for bundle in bundles):
        return texts
    native = str(resolve_target(NATIVE))
    resolved = {name: native if text == NATIVE else text for name, text in texts.items()}
    return resolved | {NATIVE: native}


def _request(
    bundle: BundleSpec, model: ModelSpec, texts: Mapping[str, str], path: str
) -> CompileRequest:
    targets = [texts.get(name, name) for name in bundle.targets]
    profiles = model.shapes if bundle.shapes is None else bundle.shapes
    shapes, devices = [dict(profile) for profile in profiles], dict(bundle.devices)
    other_shapes = bundle.other_shapes or model.other_shapes
    try:
        options = make_options(
            targets,
            shapes,
            devices,
            bundle.place,
            bundle.planner,
            other_shapes,
            plugins=read_plugins(bundle.plugins, posixpath.dirname(path)),
            named_targets=texts,
            ops=read_ops(bundle.ops, posixpath.dirname(path)),
            tuning=read_tuning(bundle.tuning, posixpath.dirname(path)),
            pools=bundle.pools,
            **bundle.choices._asdict(),
        )
    except (BuildError, UnsupportedError, UserError, PluginError) as error:
        file = f"{path}:{bundle.line}" if bundle.line else path
        where = f"{file}, [bundle.{bundle.name}]"
        raise type(error)(error.what, where, error.why, error.do) from None
    return CompileRequest(bundle, model.source, options)
