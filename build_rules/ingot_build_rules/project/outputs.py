"""Two bundles never write one file, and none writes over a file that the project reads.

In: a project. Out: problems. Not done here: whether the place can be written
(``compilation.output_file``).
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from ingot_build_rules.project.model import FILE_NAME, BundleSpec, ProjectModel
from ingot_build_rules.project.problems import Findings


def report_outputs(project: ProjectModel, findings: Findings) -> None:
    """Note every output that is taken."""
    readers = _readers(project)
    writers: dict[str, str] = {}
    for bundle in project.bundles:
        path = posixpath.normpath(bundle.output)
        clash = _clash(bundle, path, readers, writers)
        if clash is not None:
            findings.add(("bundle", bundle.name, "output"), *clash)
        writers.setdefault(path, bundle.name)


def _readers(project: ProjectModel) -> dict[str, str]:
    """Each file that the project reads, and the header of the table that names it."""
    readers = {posixpath.normpath(spec.source): f"[model.{spec.name}]" for spec in project.models}
    for test in project.tests:
        for path in (test.inputs, test.outputs):
            readers[posixpath.normpath(path)] = f"[test.{test.name}]"
    return readers


def _clash(
    bundle: BundleSpec, path: str, readers: Mapping[str, str], writers: Mapping[str, str]
) -> tuple[str, str, str] | None:
    """What is wrong with an output, why, and what to do; None where its ``path`` is free."""
    output, do = f"the output {bundle.output!r}", "choose another output"
    if path == FILE_NAME or path.partition("/")[0] == ".ingot":
        return f"{output} is the project's own", "writing would destroy it", do
    if path in readers:
        return f"{output} is an input", f"{readers[path]} reads it; writing would destroy it", do
    if path in writers:
        why = f"[bundle.{writers[path]}] and [bundle.{bundle.name}] write it"
        return f"two bundles have {output}", why, f"{do} for one of them"
    return None
