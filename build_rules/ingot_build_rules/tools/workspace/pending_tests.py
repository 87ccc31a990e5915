"""What has changed since a test passed, as far as files tell: nothing is run to find out.

In: a project, what its workspace remembers, the trace of the test. Out: lines of text, none when
the test need not run. Not done here: whether its bundle is up to date (``pending``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ingot_build_rules.engine.actions.key import Ingredient
from ingot_build_rules.engine.events.explain import changed_files
from ingot_build_rules.engine.events.trace_file import TargetTrace
from ingot_build_rules.making.project.compile_requests import compile_requests
from ingot_build_rules.making.project.model import TestSpec
from ingot_build_rules.making.rules.run_test import RUN_TEST, RunTestInputs
from ingot_build_rules.tools.workspace.code_tables import read_code
from ingot_build_rules.tools.workspace.difference_text import short
from ingot_build_rules.tools.workspace.open_workspace import LoadedProject
from ingot_build_rules.tools.workspace.present import Present
from ingot_build_rules.tools.workspace.run_tests import code_that_runs, files_of, inputs_of
from ingot_build_rules.tools.workspace.state import BundleState, WorkspaceState


def pending_of_test(
    loaded: LoadedProject,
    state: WorkspaceState,
    spec: TestSpec,
    trace: TargetTrace | None,
    present: Present,
) -> list[str]:
    """Return what makes the next build run a test again while its bundle stays what it is."""
    bundle, passed = state.bundles.get(spec.bundle), state.tests.get(spec.name)
    if bundle is None or passed is None or trace is None or not trace.actions:
        return ["it did not pass"]
    now = present.keys.key(RUN_TEST, _inputs(loaded, spec, bundle, present))
    if passed.key == now.digest.hex():
        return []
    before = {item.name: item for item in trace.actions[0].ingredients}
    changed = [item for item in now.ingredients if before.get(item.name) != item]
    code = [item for item in changed if item.name == "code"]
    return [
        *(_change(before.get(item.name), item, spec) for item in changed if item.name != "code"),
        *(_code_changes(loaded, trace, present) if code else ()),
    ]


def _inputs(
    loaded: LoadedProject, spec: TestSpec, bundle: BundleState, present: Present
) -> RunTestInputs:
    (request,) = compile_requests(loaded.project, (spec.bundle,), loaded.path)
    files = [(path, present.files.digest(path)) for path in files_of(spec, loaded.folder)]
    code = code_that_runs(request.options.targets)
    return inputs_of(spec, bundle.output, bundle.root, files, code)


def _change(old: Ingredient | None, new: Ingredient, spec: TestSpec) -> str:
    """One ingredient: files by their names, short values as they are, all else by digests."""
    was = old or Ingredient(new.name, "")
    if new.name in ("inputs", "outputs"):
        name = f"file {spec.inputs if new.name == 'inputs' else spec.outputs}"
        return f"{name} changed {short(was.text)} -> {short(new.text)}"
    if new.name == "bundle":
        return f"bundle {spec.bundle} changed {short(was.text)} -> {short(new.text)}"
    before, after = (was.text, new.text) if new.text else (short(was.digest), short(new.digest))
    return f"{new.name} changed {before} -> {after}"


def _code_changes(loaded: LoadedProject, trace: TargetTrace, present: Present) -> Iterator[str]:
    """The files of the loader, and of what runs it, that are other ones."""
    before = read_code(loaded.folder, trace.code)
    files = changed_files(before, present.tools.code)[RUN_TEST.name] if before else ()
    for name, old, new in files:
        yield f"{os.path.normpath(name)} changed {short(old)} -> {short(new)}"
    if not files:
        yield "the loader, or what runs it, is another one"
