"""What ``ingot tune PROJECT`` measures: each bundle that says where its tuning file lies.

In: the arguments. Out: ``Measurement``s. Not done here: measuring (``tune``).

The files need not be there yet: what they say now does not count.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from ingot_build_rules.making.options.option_rows import files_of
from ingot_compiler.ir.errors import UserError
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_build_rules.making.options.compile_options import CompileOptions
    from ingot_build_rules.making.project.model import BundleSpec
    from ingot_build_rules.tools.workspace.open_workspace import LoadedProject

_OPTIONS_OF_A_MODEL = ("output", "target", "precision")


@dataclass(frozen=True, slots=True)
class Measurement:
    """A model that is measured: ``bundle``: the bundle's name, "" outside of a project; ``output``:
    the tuning file; ``options``: of one target; ``kept``: files that are read, and that ``output``
    must not be."""

    bundle: str
    model: str
    output: str
    options: CompileOptions
    kept: tuple[str, ...]


def is_project(path: str) -> bool:
    """Whether a path is that of a project: its file, or a folder."""
    from ingot_build_rules.making.project.model import FILE_NAME

    return os.path.isdir(path) or os.path.basename(path) == FILE_NAME


def measurements(arguments: argparse.Namespace) -> list[Measurement]:
    """Return what is measured of a project, one for each tuning file.

    Raises:
        UserError: no bundle has one, two that differ have the same, an option that a project says
            itself, or a bundle that cannot run here. What reading the project raises.
    """
    from ingot_build_rules.tools.workspace.open_workspace import load_project

    _refuse_options(arguments)
    folder = arguments.model if os.path.isdir(arguments.model) else os.path.dirname(arguments.model)
    loaded = load_project(folder or ".")
    found: dict[str, Measurement] = {}
    for bundle in loaded.project.bundles:
        if bundle.options.tuning is not None:
            _add(found, _measurement(loaded, bundle, bundle.options.tuning))
    if not found:
        why = "no bundle says where its tuning file lies"
        do = 'write tuning = "NAME.tune" into a [bundle.NAME]'
        raise UserError("nothing to measure", loaded.path, why, do)
    return list(found.values())


def _refuse_options(arguments: argparse.Namespace) -> None:
    given = [name for name in _OPTIONS_OF_A_MODEL if getattr(arguments, name) is not None]
    if given:
        options = ", ".join(f"--{name}" for name in given)
        why = f"the bundles of a project say it themselves, got {options}"
        raise UserError("an option that is for a model", arguments.model, why, "leave it out")


def _measurement(loaded: LoadedProject, bundle: BundleSpec, tuning: str) -> Measurement:
    """The general version of the bundle's code, for the best of its targets that runs here."""
    from ingot_build_rules.making.project.compile_requests import compile_requests
    from ingot_compiler.ir.precision import SIZE

    without = replace(bundle, options=bundle.options._replace(tuning=None))
    project = replace(loaded.project, bundles=(without,))
    (request,) = compile_requests(project, [bundle.name], loaded.path)
    where = f"{loaded.path}, [bundle.{bundle.name}]"
    if request.options.choices.optimize == SIZE:
        why, do = "measured methods are for speed", "leave one of them out"
        raise UserError("size and measurements", where, why, do)
    target = _best_target(request.options.targets, where)
    values = request.options.choices._replace(strip=False)
    options = replace(
        request.options, targets=(target,), shapes=(), other_shapes="general", values=values
    )
    model, output = (os.path.join(loaded.folder, path) for path in (request.source, tuning))
    return Measurement(bundle.name, model, output, options, _kept(loaded))


def _kept(loaded: LoadedProject) -> tuple[str, ...]:
    """The project's file, and what its tables read."""
    project = loaded.project
    paths = {model.source for model in project.models}
    paths |= {path for test in project.tests for path in (test.inputs, test.outputs)}
    read = (bundle.options._replace(tuning=None) for bundle in project.bundles)  # which is written
    paths |= {path for options in read for path in files_of(options)}
    return loaded.path, *(os.path.join(loaded.folder, path) for path in sorted(paths))


def _best_target(targets: tuple[str, ...], where: str) -> str:
    from ingot_build_rules.making.options.host_target import resolve_target
    from ingot_compiler.targets.target import parse_target

    here = resolve_target("native")
    runnable = [
        target
        for target in map(parse_target, targets)
        if target.arch == here.arch and not target.missing_on(here.features)
    ]
    if not runnable:
        why = f"expected a target that runs on {here}, got {', '.join(targets)}"
        do = "measure on a machine that runs one of them"
        raise UserError("a bundle that cannot run here", where, why, do)
    return str(max(runnable, key=lambda target: target.rank))


def _add(measurements: dict[str, Measurement], one: Measurement) -> None:
    """Bundles of the same model and options share a file."""
    other = measurements.setdefault(os.path.normpath(one.output), one)
    if (other.model, other.options) != (one.model, one.options):
        why = f"bundles {other.bundle!r} and {one.bundle!r} differ in model, target or options"
        raise UserError("two bundles have one tuning file", one.output, why, "give each its own")
