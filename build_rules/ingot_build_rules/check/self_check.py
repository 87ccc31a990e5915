"""The self-check: a finished bundle, run by the loader, against the interpreter, node by node.

In: a compilation, its bundle, inputs or none. Out: ``CheckReport``. Not done here: how far is too
far (``deviation``).

The vm steps the bundle and shows what each launch stores. The interpreter runs the optimized graph
beside it, and after each comparison goes on with the machine's own value: errors do not add up, and
a launch that differs is itself at fault. Then the outputs are compared with those of the graph as
it was imported (the passes), and with the native main's (bits).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import ingot_runtime
from ingot_artifacts.store.atomic import sync_folders
from ingot_build_rules.check.check_plugins import check_plugins
from ingot_build_rules.check.check_report import CheckFinding, CheckReport
from ingot_build_rules.check.check_runs import (
    CheckRun,
    Inputs,
    SteppedTarget,
    check_runs,
    named,
    run_tensors,
)
from ingot_build_rules.check.check_stages import check_stages
from ingot_build_rules.check.deviation import OUTPUT_SLACK, deviation, may_jump
from ingot_build_rules.check.launch_recorder import Recorded
from ingot_build_rules.compilation.output_file import check_output
from ingot_compiler.backends.host.kinds import ROUNDED_KINDS
from ingot_compiler.ir.errors import IncompatibleTargetError
from ingot_compiler.ir.in_names import error_in_names, refers
from ingot_compiler.ir.interpret import interpret, interpret_values
from ingot_compiler.ir.message import OptionRef, message
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.precision import BF16
from ingot_runtime.ingot_error import IngotError

if TYPE_CHECKING:
    from ingot_build_rules.compilation.compile_model import CompiledModel
    from ingot_build_rules.compilation.target_build import TargetBuild


def save_checked(
    compiled: CompiledModel, path: str, inputs: Inputs | None
) -> tuple[str, CheckReport]:
    """Write the bundle under another name beside ``path``, check it, and rename it if nothing
    differs.

    Returns the root digest and the report. With differences in the report, ``path`` is what it was
    before.

    Raises:
        UserError: wrong inputs. IncompatibleTargetError: no variant runs on this machine. Every
            error of ``save``.
    """
    check_output(path)
    folder, name = os.path.split(os.path.abspath(path))
    with tempfile.TemporaryDirectory(prefix=".ingot-check-", dir=folder) as kept_apart:
        candidate = os.path.join(kept_apart, name)
        digest = compiled.save(candidate)
        report = check_bundle(compiled, candidate, inputs)
        if not report.differences:
            os.replace(candidate, path)
            sync_folders([folder])
    return digest, report


def check_bundle(compiled: CompiledModel, path: str, inputs: Inputs | None) -> CheckReport:
    """Verify every stage, and run every variant of the bundle that can run here against the
    interpreter.

    Args:
        compiled: what the bundle was made from.
        path: the bundle.
        inputs: arrays by input name; numbers of a stated generator where None
            (``generated_inputs``).

    Raises:
        UserError, ModelError: the interpreter refuses the inputs.
    """
    try:
        return _check(compiled, path, inputs)
    except IngotError as error:
        if refers(error):
            raise error_in_names(error, compiled.names) from error
        raise


def _check(compiled: CompiledModel, path: str, inputs: Inputs | None) -> CheckReport:
    check_stages(compiled)
    check_plugins(compiled)
    report = CheckReport()
    for build in compiled.target_builds:
        target = build.target
        try:
            session = ingot_runtime.load(path, variant=target, executor="vm")
        except ingot_runtime.IncompatibleError:
            report.targets_left_out.append(target)
            continue
        report.targets.append(target)
        with session, ingot_runtime.load(path, variant=target) as native:
            for run in check_runs(SteppedTarget(compiled, build, session), inputs, report):
                _compare_launches(compiled, build, run, report)
                again = run_tensors(native, named(compiled, run.given))
                _compare_native(compiled, target, run, again, report)
                if not report.differences:
                    _compare_outputs(compiled, target, run, report)
    if not report.targets:
        raise _none_runs_here(report.targets_left_out)
    return report


def _none_runs_here(targets: Sequence[str]) -> IncompatibleTargetError:
    what, where = "no variant can be checked here", f"targets {', '.join(targets)}"
    do = message("check on such a machine, or leave ", OptionRef("check"), " out")
    return IncompatibleTargetError(what, where, "this machine runs none of them", do)


def _compare_launches(
    compiled: CompiledModel, build: TargetBuild, run: CheckRun, report: CheckReport
) -> None:
    graph, recorder = run.graph, run.recorder
    findings: list[CheckFinding] = []
    by_value: dict[int, list[Recorded]] = {}
    for item in recorder.recorded:
        if item.expected is not None:
            findings.append(_finding(compiled, build, item, item.expected))
        else:
            by_value.setdefault(item.value, []).append(item)

    def settle(index: int, results: tuple[Array, ...], _: Mapping[str, int]) -> tuple[Array, ...]:
        settled: list[Array] = []
        for value, expected in zip(graph.nodes[index].results, results, strict=True):
            stored = by_value.pop(value, [])
            findings.extend(_finding(compiled, build, item, expected) for item in stored)
            fits = bool(stored) and stored[0].content.shape == expected.shape
            settled.append(stored[0].content if fits else expected)
        return tuple(settled)

    for _ in interpret_values(graph, run.given, compiled.read_constant, settle):
        pass
    report.launches += recorder.launches
    for finding in sorted(findings, key=lambda item: item.launch):
        report.add(finding)


def _finding(
    compiled: CompiledModel, build: TargetBuild, item: Recorded, expected: Array
) -> CheckFinding:
    group = build.launches[item.launch].group
    kind = next(result.type for result in group.results if result.value == item.value)
    nodes = tuple(compiled.names.nodes[ordinal] for ordinal in group.source)
    called = compiled.names.describe(group.source)
    jumps = may_jump(group.nodes, dict(group.types))
    rounded = group.kind in ROUNDED_KINDS
    found = deviation(item.content, expected, kind.dtype, jumps=jumps, rounded=rounded)
    what = f"the kernel of {called}" if called else "a kernel"
    return CheckFinding(what, build.target, str(kind), found, nodes, item.kernel, item.launch)


def _compare_native(
    compiled: CompiledModel, target: str, run: CheckRun, again: Inputs, report: CheckReport
) -> None:
    """The native main calls the same kernels: its outputs have the same bits."""
    for tensor in compiled.interface.outputs:
        left, right = again[tensor.name], run.outputs[tensor.name]
        if left.tobytes() != right.tobytes() or left.shape != right.shape:
            found = replace(deviation(left, right, tensor.dtype, jumps=False), within=False)
            what = f"output {tensor.name!r} of the native main"
            report.differences.append(CheckFinding(what, target, tensor.dtype, found))


def _compare_outputs(
    compiled: CompiledModel, target: str, run: CheckRun, report: CheckReport
) -> None:
    """End to end, against the graph before any pass; the launches agree with the graph after
    them."""
    graph = compiled.graph
    expected = interpret(graph, run.given, compiled.read_constant)
    jumps = may_jump(graph.nodes, dict(enumerate(graph.types)))
    for tensor, wanted in zip(compiled.interface.outputs, expected, strict=True):
        found = deviation(
            run.outputs[tensor.name],
            wanted,
            tensor.dtype,
            jumps=jumps,
            slack=OUTPUT_SLACK,
            rounded=compiled.options.precision == BF16,
        )
        report.outputs_relative = max(report.outputs_relative, found.relative)
        if not found.within:
            what = f"output {tensor.name!r}, whose kernels all agree with the optimized graph,"
            report.differences.append(CheckFinding(what, target, tensor.dtype, found))
