"""What each bundle of a project asks of the compiler.

In: an expanded project. Out: for each bundle the model file and ``CompileOptions``. Not done here:
compiling.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ingot_build_rules.compilation.options import make_options, resolve_target
from ingot_build_rules.project.model import FILE_NAME, NATIVE, BundleSpec, ProjectModel
from ingot_build_rules.rules.compile_options import CompileOptions
from ingot_compiler.ir.errors import UnsupportedError


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
    texts = {spec.name: spec.text for spec in project.targets}
    bundles = [bundle for bundle in project.bundles if bundle.name in names]
    if any(NATIVE in (*bundle.targets, *texts.values()) for bundle in bundles):
        native = str(resolve_target(NATIVE))
        texts = {name: native if text == NATIVE else text for name, text in texts.items()} | {
            NATIVE: native
        }
    models = {spec.name: spec for spec in project.models}
    requests: list[CompileRequest] = []
    for bundle in bundles:
        model = models[bundle.model]
        targets = [texts.get(name, name) for name in bundle.targets]
        try:
            options = make_options(
                targets, dict(model.shapes), dict(bundle.devices), bundle.place, bundle.planner
            )
        except UnsupportedError as error:
            where = f"{path}:{bundle.line}" if bundle.line else path
            raise UnsupportedError(
                error.what, f"{where}, [bundle.{bundle.name}]", error.why, error.do
            ) from None
        requests.append(CompileRequest(bundle, model.source, options))
    return tuple(requests)
