"""Expands globs into models: whatever stands for many files is repeated for each.

In: a project, a function that lists a folder. Out: a project without globs, and what each glob
found. Not done here: the file system (``files``); whether a model without wildcards exists (the
build says so).

``[model.M] source = "models/*.onnx"`` stands for the models ``M/STEM``, a bundle B of M for the
bundles ``B/STEM``, an export or a test T of B for ``T/STEM``; ``{stem}`` in their paths is
replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ingot_build_rules.making.project.lines import Path
from ingot_build_rules.making.project.model import (
    FILE_NAME,
    STEM,
    BundleSpec,
    ExportSpec,
    ModelSpec,
    ProjectModel,
    TestSpec,
)
from ingot_build_rules.making.project.names import NAME_RULE, is_glob, is_plain
from ingot_build_rules.making.project.outputs import report_outputs
from ingot_build_rules.making.project.problems import Findings, Locate, Place, did_you_mean, one_of
from ingot_build_rules.making.project.wildcards import Glob, ListFolder, Match, find_files
from ingot_runtime.lazy_dataclass import dataclass

Spec = TypeVar("Spec", BundleSpec, ExportSpec, TestSpec)
AnySpec = TypeVar("AnySpec", ModelSpec, BundleSpec, ExportSpec, TestSpec)
Stems = Mapping[str, tuple[str, ...]]
"""Name that stands for many -> the stems of what it stands for."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """``globs`` are inputs of the build: while their folders stay as they are, ``project`` does
    too."""

    project: ProjectModel
    globs: tuple[Glob, ...]


def expand(project: ProjectModel, list_folder: ListFolder, path: str = FILE_NAME) -> Expansion:
    """Replace each glob by what it finds; ``path`` names the project file in messages.

    Raises:
        UserError: a glob that finds nothing, or names that cannot be used; a reference to what no
            glob found.
    """
    findings = Findings(path, _locator(project, path))
    globs = {
        spec.name: find_files(spec.source, list_folder)
        for spec in project.models
        if is_glob(spec.source)
    }
    for name, glob in globs.items():
        _check_glob(name, glob, findings)
    findings.raise_all()
    expanded = _expanded(project, globs, findings)
    report_outputs(expanded, findings)
    findings.raise_all()
    return Expansion(expanded, tuple(globs.values()))


def _expanded(project: ProjectModel, globs: Mapping[str, Glob], findings: Findings) -> ProjectModel:
    stems: Stems = {
        name: tuple(match.stem for match in glob.matches) for name, glob in globs.items()
    }
    models = [model for spec in project.models for model in _models(spec, globs.get(spec.name))]
    bundles, bundle_stems = _repeat(project.bundles, lambda spec: spec.model, stems, _bundle)
    tests, _ = _repeat(project.tests, lambda spec: spec.bundle, bundle_stems, _test)
    exports, _ = _repeat(project.exports, lambda spec: spec.bundle, bundle_stems, _export)
    models_of = [(spec.name, spec.model) for spec in bundles]
    bundles_of = [(spec.name, spec.bundle) for spec in tests]
    _check_references("bundle", "model", models_of, models, findings)
    _check_references("test", "bundle", bundles_of, bundles, findings)
    exported = [(spec.name, spec.bundle) for spec in exports]
    _check_references("export", "bundle", exported, bundles, findings)
    return replace(
        project,
        models=_sorted(models),
        bundles=_sorted(bundles),
        exports=_sorted(exports),
        tests=_sorted(tests),
    )


def _models(spec: ModelSpec, glob: Glob | None) -> list[ModelSpec]:
    if glob is None:
        return [spec]
    return [
        replace(spec, name=f"{spec.name}/{match.stem}", source=match.path) for match in glob.matches
    ]


def _bundle(spec: BundleSpec, stem: str) -> BundleSpec:
    output = spec.output.replace(STEM, stem)
    return replace(spec, name=f"{spec.name}/{stem}", model=f"{spec.model}/{stem}", output=output)


def _export(spec: ExportSpec, stem: str) -> ExportSpec:
    output = spec.output.replace(STEM, stem)
    return replace(spec, name=f"{spec.name}/{stem}", bundle=f"{spec.bundle}/{stem}", output=output)


def _test(spec: TestSpec, stem: str) -> TestSpec:
    inputs, outputs = spec.inputs.replace(STEM, stem), spec.outputs.replace(STEM, stem)
    return replace(
        spec,
        name=f"{spec.name}/{stem}",
        bundle=f"{spec.bundle}/{stem}",
        inputs=inputs,
        outputs=outputs,
    )


def _repeat(
    specs: Sequence[Spec],
    of: Callable[[Spec], str],
    stems: Stems,
    member: Callable[[Spec, str], Spec],
) -> tuple[list[Spec], Stems]:
    """Repeat what refers to many, once for each; return all, and the stems of those that stood for
    many."""
    repeated: list[Spec] = []
    for spec in specs:
        many = stems.get(of(spec))
        repeated += [spec] if many is None else [member(spec, stem) for stem in many]
    return repeated, {spec.name: stems[of(spec)] for spec in specs if of(spec) in stems}


def _sorted(specs: Sequence[AnySpec]) -> tuple[AnySpec, ...]:
    return tuple(sorted(specs, key=lambda spec: spec.name))


def _check_glob(name: str, glob: Glob, findings: Findings) -> None:
    at = ("model", name, "source")
    if not glob.matches:
        what = f"nothing matches {glob.pattern!r}"
        why = f"expected files in {', '.join(glob.folders)}, got none that match"
        findings.add(at, what, why, "check the path, or remove the model")
    seen: dict[str, Match] = {}
    for match in glob.matches:
        if not all(map(is_plain, match.stem.split("/"))):
            what = f"{match.path!r} cannot be a model's name"
            why = f"its name would be {name}/{match.stem}; expected {NAME_RULE} in each part"
            findings.add(at, what, why, "rename the file, or narrow the glob")
        elif match.stem in seen:
            what = f"two files of {glob.pattern!r} have one name"
            why = f"{seen[match.stem].path!r} and {match.path!r} would both be {name}/{match.stem}"
            findings.add(at, what, why, "rename one, or narrow the glob")
        seen.setdefault(match.stem, match)


def _check_references(
    kind: str,
    of: str,
    referred: Sequence[tuple[str, str]],
    declared: Sequence[ModelSpec | BundleSpec],
    findings: Findings,
) -> None:
    """``referred``: what refers to another table, and the name that it gives of one that is
    ``declared``."""
    known = {spec.name for spec in declared}
    for name, target in referred:
        if target not in known:
            do = did_you_mean(target, known, "choose one of these")
            findings.add((kind, name, of), f"no {of} {target!r}", one_of(known), do)


def _locator(project: ProjectModel, path: str) -> Locate:
    """Find a table by its name, or by the name that it was repeated from; single keys are not known
    any more."""
    lines = {("model", spec.name): spec.line for spec in project.models}
    lines |= {("bundle", spec.name): spec.line for spec in project.bundles}
    lines |= {("export", spec.name): spec.line for spec in project.exports}
    lines |= {("test", spec.name): spec.line for spec in project.tests}

    def locate(at: Path) -> Place:
        line = lines[at[0], at[1].partition("/")[0]]
        return Place(line, f"{path}:{line}" if line else path)

    return locate
