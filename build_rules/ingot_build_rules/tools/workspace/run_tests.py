"""Runs the tests of a project on its bundles, but those that have passed on the same before.

In: an open workspace that has built the bundles. Out: a result for each test. Not done here:
running one (rule ``run_test``).

The actions of tests are in the cache like all others. A test that fails is not: it runs again in
each build.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence

from ingot_build_rules.engine.actions.action import Task
from ingot_build_rules.engine.actions.errors import BuildStoppedError
from ingot_build_rules.engine.events.trace_file import traced
from ingot_build_rules.making.options.compile_options import HOST
from ingot_build_rules.making.project.compile_requests import CompileRequest
from ingot_build_rules.making.project.model import TestSpec
from ingot_build_rules.making.rules.run_test import RUN_TEST, RunTestInputs
from ingot_build_rules.tools.workspace.build_project import Workspace
from ingot_build_rules.tools.workspace.state import PassedTest
from ingot_build_rules.tools.workspace.target_result import TargetResult
from ingot_compiler.backends.registry import parse_target
from ingot_compiler.targets.target import processor_models
from ingot_runtime.errors import IncompatibleError
from ingot_runtime.format.plan import VariantPlan

Code = tuple[str, tuple[str, ...]]
"""The target of a variant, and the CPU features that it uses."""


def run_tests(
    workspace: Workspace, requests: Sequence[CompileRequest], specs: Sequence[TestSpec]
) -> list[TargetResult]:
    """Bring tests up to date; each has a result, failures too."""
    targets = {request.bundle.name: request.options.targets for request in requests}
    due: list[tuple[TestSpec, TargetResult, RunTestInputs]] = []
    results = [_result(spec) for spec in specs]
    for spec, result in zip(specs, results, strict=True):
        inputs = _inputs(workspace, spec, result, targets)
        if inputs is not None and not _is_current(workspace, spec, inputs):
            due.append((spec, result, inputs))
            continue
        if inputs is not None:
            result.status = "unchanged"
        workspace.notify(result.name, result.status, "")
    goals = [workspace.build.need(RUN_TEST, inputs, spec.name) for spec, _, inputs in due]
    tasks = workspace.build.run_all(goals, apart=True)
    for (spec, result, inputs), task in zip(due, tasks, strict=True):
        _settle(workspace, result, task)
        if not workspace.dry:
            _remember(workspace, spec, result, inputs)
        workspace.notify(result.name, result.status, "")
    return results


def inputs_of(
    spec: TestSpec, bundle: str, root: str, files: Sequence[tuple[str, str]], code: Code
) -> RunTestInputs:
    """Return what running a test on the file ``bundle`` takes; ``root``: its root digest;
    ``files``: the test's files, inputs and outputs, with their digests; ``code``: what runs."""
    (inputs_path, inputs), (outputs_path, outputs) = files
    variant, features = code
    return RunTestInputs(
        root, inputs, outputs, spec.relative_tolerance, spec.absolute_tolerance, spec.threads,
        spec.executor, variant, features, bundle, inputs_path, outputs_path,
    )  # fmt: skip


@functools.cache
def code_that_runs(targets: tuple[str, ...]) -> Code:
    """Return the variant that the loader takes on this machine of a bundle for ``targets``, by the
    loader's own choice; nothing where none can run."""
    from ingot_runtime.loader import choose, cpu, system  # ctypes, for builds with tests alone

    known = [parse_target(HOST, target) for target in targets]
    variants = [
        VariantPlan(text, target.rank, target.features, 0, (), (), processor_models(text, targets))
        for text, target in zip(targets, known, strict=True)
    ]
    machine, architecture = cpu.machine_features(), cpu.machine_architecture()
    try:
        index = choose.choose_variant(
            variants, machine, architecture, None, "bundle", system.request_amx, cpu.processor_model
        )
    except IncompatibleError:
        return "", ()
    return variants[index].target, variants[index].features


def files_of(spec: TestSpec, folder: str) -> tuple[str, str]:
    """Return the paths of a test's inputs and expected outputs."""
    return os.path.join(folder, spec.inputs), os.path.join(folder, spec.outputs)


def _result(spec: TestSpec) -> TargetResult:
    return TargetResult(f"test.{spec.name}", "skipped", "", test=spec.name)


def _inputs(
    workspace: Workspace,
    spec: TestSpec,
    result: TargetResult,
    targets: Mapping[str, tuple[str, ...]],
) -> RunTestInputs | None:
    """What the test runs on; None where its bundle is not there, or not known yet."""
    bundle = workspace.results[spec.bundle]
    paths = files_of(spec, workspace.folder)
    files = result.sources = tuple((path, workspace.build.files.digest(path)) for path in paths)
    if bundle.status == "would-build" and not bundle.root:
        result.status = "would-run"
    if not bundle.root or not (bundle.is_good or bundle.status == "would-build"):
        return None
    code = code_that_runs(targets[spec.bundle])
    return inputs_of(spec, bundle.path, bundle.root, files, code)


def _is_current(workspace: Workspace, spec: TestSpec, inputs: RunTestInputs) -> bool:
    """Whether the test has passed here on all of this."""
    known = workspace.state.tests.get(spec.name)
    key = workspace.build.keys.key(RUN_TEST, inputs).digest.hex()
    return known is not None and known.key == key and not workspace.thorough


def _settle(workspace: Workspace, result: TargetResult, task: Task) -> None:
    result.actions = traced(task.trace)
    result.error = task.error
    if task.error is None:
        result.status = "would-pass" if workspace.dry else "passed"
    elif isinstance(task.error, BuildStoppedError):
        result.status = "would-run" if workspace.dry else "skipped"
    else:
        result.status = "failed"


def _remember(
    workspace: Workspace, spec: TestSpec, result: TargetResult, inputs: RunTestInputs
) -> None:
    if result.status == "passed":
        key = workspace.build.keys.key(RUN_TEST, inputs).digest.hex()
        workspace.state.tests[spec.name] = PassedTest(key, workspace.code)
    elif result.status == "failed":
        workspace.state.tests.pop(spec.name, None)
