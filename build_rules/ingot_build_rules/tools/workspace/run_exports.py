"""Writes what the bundles of a project, or their models, are exported as, but what is there
already.

In: an open workspace that has built the bundles, what was asked of the compiler for each. Out: a
result for each export. Not done here: what is written (``export.export_kinds``).

An export is up to date when the bundle, what was asked for, all code and tools, and the files are
as the last build left them. A file whose bytes are what they were is left alone.
"""

from __future__ import annotations

import filecmp
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ingot_artifacts.store.atomic import output_error, sync_folders
from ingot_build_rules.engine.actions.content import digest
from ingot_build_rules.making.options.export_rows import EXPORT_ROWS, FIELD_ROWS, misfits
from ingot_build_rules.making.project.model import ExportSpec
from ingot_build_rules.tools.workspace.build_project import Workspace
from ingot_build_rules.tools.workspace.state import ExportState
from ingot_build_rules.tools.workspace.target_result import TargetResult
from ingot_compiler.ir.errors import UserError
from ingot_runtime.ingot_error import IngotError

if TYPE_CHECKING:
    from ingot_build_rules.making.project.compile_requests import CompileRequest
    from ingot_build_rules.tools.export.export_kinds import ExportChoices


def run_exports(
    workspace: Workspace, requests: Sequence[CompileRequest], specs: Sequence[ExportSpec]
) -> list[TargetResult]:
    """Bring exports up to date; each has a result, failures too."""
    by_bundle = {request.bundle.name: request for request in requests}
    results = [TargetResult(f"export.{spec.name}", "skipped", "") for spec in specs]
    for spec, result in zip(specs, results, strict=True):
        try:
            _run(workspace, by_bundle[spec.bundle], spec, result)
        except IngotError as error:
            result.status, result.error = "failed", error
            workspace.state.exports.pop(spec.name, None)
        workspace.notify(result.name, result.status, "")
    return results


def _run(
    workspace: Workspace, request: CompileRequest, spec: ExportSpec, result: TargetResult
) -> None:
    bundle = workspace.results[spec.bundle]
    if bundle.status == "would-build":
        result.status = "would-build"
    if not bundle.is_good:
        return
    keys = [os.path.join(workspace.folder, path) for path in spec.fields.sign]
    signers = [workspace.build.files.digest(path) for path in keys if os.path.isfile(path)]
    key = digest(repr((replace(spec, line=0), bundle.root, workspace.code, signers)))
    known = workspace.state.exports.get(spec.name)
    if known and known.key == key and _is_there(workspace, known) and not workspace.thorough:
        result.status, result.sources = "unchanged", known.files
    elif workspace.dry:
        result.status = "would-build"
    else:
        files, is_new = _write(workspace, request, spec, bundle.path)
        result.sources = tuple((path, workspace.build.files.digest(path)) for path in files)
        result.status = "built" if is_new else "unchanged"
        workspace.state.exports[spec.name] = ExportState(key, result.sources)


def _is_there(workspace: Workspace, known: ExportState) -> bool:
    digests = workspace.build.files
    return all(digests.digest(path) == content for path, content in known.files)


def _write(
    workspace: Workspace, request: CompileRequest, spec: ExportSpec, bundle: str
) -> tuple[list[str], bool]:
    """Write the files beside their places, then move those that are other ones; return the paths,
    and whether any was."""
    from ingot_build_rules.tools.check.verify_bundle import verify_whole_bundle
    from ingot_build_rules.tools.export.export_kinds import (
        WRITERS,  # a build without exports needs none
    )

    kind, output = EXPORT_ROWS[spec.kind], os.path.join(workspace.folder, spec.output)
    given = os.path.join(workspace.folder, request.source) if kind.of_model else bundle
    if not kind.of_model:
        verify_whole_bundle(bundle)
    folder = output if kind.in_folder else os.path.dirname(output)
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".ingot-export-", dir=folder) as made:
            target = made if kind.in_folder else os.path.join(made, os.path.basename(output))
            choices = _choices(workspace, request, spec)
            WRITERS[spec.kind](workspace.build, given, target, choices)
            moved = [_move(made, folder, name) for name in sorted(os.listdir(made))]
    except OSError as error:
        raise output_error(spec.output, folder, error) from error
    sync_folders([folder])
    return [path for path, _ in moved], any(is_new for _, is_new in moved)


def _move(made: str, folder: str, name: str) -> tuple[str, bool]:
    new, path = os.path.join(made, name), os.path.join(folder, name)
    is_new = not (os.path.isfile(path) and filecmp.cmp(new, path, shallow=False))
    if is_new:
        os.replace(new, path)
    return path, is_new


def _choices(workspace: Workspace, request: CompileRequest, spec: ExportSpec) -> ExportChoices:
    from ingot_build_rules.tools.export.export_kinds import choices_of
    from ingot_build_rules.tools.export.release import ReleaseChoices

    fields, folder, where = spec.fields, workspace.folder, f"[export.{spec.name}]"
    for field in misfits(spec.kind, fields)[:1]:
        what, why = (
            f"key {FIELD_ROWS[field].key!r} does not fit",
            f"it says nothing of kind {spec.kind!r}",
        )
        raise UserError(what, where, why, "leave it out")
    release = ReleaseChoices(
        os.path.join(folder, request.source),
        request.options,
        fields.selftest,
        tuple(os.path.join(folder, path) for path in fields.sign),
        fields.expires,
        fields.number or None,
    )
    return choices_of(spec.kind, fields, where, release)
