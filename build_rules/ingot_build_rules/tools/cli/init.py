"""Verb ``init``: a project from the models in a folder.

In: a folder. Out: ``ingot.toml`` in it, and what was found and left out. Not done here: looking for
models (``found_models``), the text of the project (``project_draft``).
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from ingot_build_rules.tools.cli.shell import console
from ingot_compiler.ir.errors import UserError

if TYPE_CHECKING:
    from ingot_build_rules.tools.cli.building.found_models import FoundModels

_WHERE = "command ingot init"
_TOLD_MAX = 5


def run(arguments: argparse.Namespace) -> int:
    """Write the project, and say what is in it."""
    from ingot_build_rules.making.project.model import FILE_NAME
    from ingot_build_rules.making.stages.output_file import write_text
    from ingot_build_rules.tools.cli.building.found_models import find_models
    from ingot_build_rules.tools.cli.building.project_draft import draft_project, portable_targets
    from ingot_runtime.loader.cpu import machine_architecture

    folder: str = arguments.folder or "."
    path = os.path.normpath(os.path.join(folder, FILE_NAME))
    _check_place(folder, path, replaces=arguments.force or arguments.dry_run)
    found = find_models(folder)
    if not found.models:
        raise _no_models(folder, found)
    targets = portable_targets(machine_architecture())
    text = draft_project(found.models, targets)
    if arguments.dry_run and not arguments.json:
        console.print_listing(text.removesuffix("\n"))
        return 0
    if not arguments.dry_run:
        write_text(path, text)
    values = {"output": path, "targets": targets, **found.plain()}
    console.print_report(values, _lines(path, folder, targets, found), as_json=arguments.json)
    return 0


def _lines(path: str, folder: str, targets: dict[str, str], models: FoundModels) -> list[str]:
    rows = [
        (f"  {model.name}", model.path, console.format_bytes(model.size_bytes), model.inputs_text())
        for model in models.models
    ]
    left = [f"  {name}: {reason}" for name, reason in models.left_out]
    name, target = next(iter(targets.items()))
    where = "" if os.path.abspath(folder) == os.getcwd() else f" -C {folder}"
    count = "1 bundle" if len(models.models) == 1 else f"{len(models.models)} bundles"
    return [
        "found:",
        *console.format_table(rows, (2,)),
        *(["left out:", *left] if left else []),
        f"{path}: {count} for the target {name!r}, {target}",
        f"next: ingot build{where}",
    ]


def _check_place(folder: str, path: str, *, replaces: bool) -> None:
    if not os.path.isdir(folder):
        why = "expected the folder that the models are in"
        raise UserError("no such folder", folder, why, "check the path")
    if os.path.lexists(path) and not replaces:
        why = "init writes a new project, and would replace this one"
        do = "edit it (docs/project-file.md), or replace it with --force"
        raise UserError("there is a project already", path, why, do)


def _no_models(folder: str, models: FoundModels) -> UserError:
    listed = [f"{name} ({reason})" for name, reason in models.left_out[:_TOLD_MAX]]
    more = ["..."] if len(models.left_out) > _TOLD_MAX else []
    left = f"; left out: {'; '.join([*listed, *more])}" if listed else ""
    why = f"expected .onnx files in this folder or below it, got none{left}"
    do = "export a model to ONNX, or name another folder: ingot init FOLDER"
    return UserError("no models found", folder, why, do)
