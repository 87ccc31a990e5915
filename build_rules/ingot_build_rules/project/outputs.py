"""Two bundles never write one file, and none writes over a file that the project reads.

In: a project. Out: problems. Not done here: whether the place can be written
(``compilation.output_file``).
"""

from __future__ import annotations

import posixpath

from ingot_build_rules.project.model import FILE_NAME, ProjectModel
from ingot_build_rules.project.problems import Findings


def report_outputs(project: ProjectModel, findings: Findings) -> None:
    """Note every output that is taken."""
    read = {posixpath.normpath(spec.source): f"[model.{spec.name}]" for spec in project.models}
    for test in project.tests:
        for path in (test.inputs, test.outputs):
            read[posixpath.normpath(path)] = f"[test.{test.name}]"
    written: dict[str, str] = {}
    for bundle in project.bundles:
        path = posixpath.normpath(bundle.output)
        at = ("bundle", bundle.name, "output")
        if path == FILE_NAME or path.split("/")[0] == ".ingot":
            findings.add(
                at,
                f"the output {bundle.output!r} is the project's own",
                "writing would destroy it",
                "choose another output",
            )
        elif path in read:
            why = f"{read[path]} reads it; writing would destroy it"
            findings.add(
                at, f"the output {bundle.output!r} is an input", why, "choose another output"
            )
        elif path in written:
            why = f"[bundle.{written[path]}] and [bundle.{bundle.name}] write it"
            findings.add(
                at,
                f"two bundles have the output {bundle.output!r}",
                why,
                "choose another output for one of them",
            )
        written.setdefault(path, bundle.name)
