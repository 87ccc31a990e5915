"""Checks that no two bundles write one file, and that none overwrites a file that the project
reads.

In: a project. Out: problems. Not done here: whether the place can be written
(``stages.output_file``).
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from ingot_build_rules.making.options.export_rows import EXPORT_ROWS
from ingot_build_rules.making.project.model import FILE_NAME, ExportSpec, ProjectModel
from ingot_build_rules.making.project.problems import Findings


def report_outputs(project: ProjectModel, findings: Findings) -> None:
    """Note every output that is taken."""
    readers = _readers(project)
    writers: dict[str, str] = {}
    for kind, specs in (("bundle", project.bundles), ("export", _files(project))):
        for spec in specs:
            path, own = posixpath.normpath(spec.output), f"[{kind}.{spec.name}]"
            clash = _clash(spec.output, own, readers, writers)
            if clash is not None:
                findings.add((kind, spec.name, "output"), *clash)
            writers.setdefault(path, own)


def _files(project: ProjectModel) -> tuple[ExportSpec, ...]:
    """Exports that are a file: in a folder several may lie."""
    return tuple(spec for spec in project.exports if not EXPORT_ROWS[spec.kind].in_folder)


def _readers(project: ProjectModel) -> dict[str, str]:
    """Each file that the project reads, and the header of the table that names it."""
    readers = {posixpath.normpath(spec.source): f"[model.{spec.name}]" for spec in project.models}
    for test in project.tests:
        for path in (test.inputs, test.outputs):
            readers[posixpath.normpath(path)] = f"[test.{test.name}]"
    return readers


def _clash(
    given: str, own: str, readers: Mapping[str, str], writers: Mapping[str, str]
) -> tuple[str, str, str] | None:
    """What is wrong with an output, why, and what to do; None where it is free; ``own``: the
    table."""
    path, output, do = posixpath.normpath(given), f"the output {given!r}", "choose another output"
    if path == FILE_NAME or path.partition("/")[0] == ".ingot":
        return f"{output} is the project's own", "writing would destroy it", do
    if path in readers:
        return f"{output} is an input", f"{readers[path]} reads it; writing would destroy it", do
    if path in writers:
        why = f"{writers[path]} and {own} write it"
        both = own.startswith("[bundle.") and writers[path].startswith("[bundle.")
        what = f"two bundles have {output}" if both else f"two tables have {output}"
        return what, why, f"{do} for one of them"
    return None
