"""The self-check: a finished bundle, run by the loader, against the interpreter, node by node.

In: a compilation, its bundle, inputs or none. Out: ``CheckReport``. Not done here: how far is too
far (``deviation``).

The vm steps the bundle and shows what each launch stores. The interpreter runs the optimized graph
beside it, and after each comparison goes on with the machine's own value: errors do not add up, and
a launch that differs is itself at fault. Then the outputs are compared with those of the graph as
it was imported (the passes), and with the native main's (bits).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import ingot_runtime
from ingot_build_rules.tools.check.check_plugins import check_plugins
from ingot_build_rules.tools.check.check_report import CheckFinding, CheckReport
from ingot_build_rules.tools.check.check_runs import (
    CheckRun,
    Inputs,
    SteppedTarget,
    check_runs,
    named,
    run_tensors,
)
from ingot_build_rules.tools.check.check_stages import check_stages
from ingot_build_rules.tools.check.deviation import (
    Limits,
    deviation,
    launch_limits,
    may_jump,
    narrowest,
)
from ingot_build_rules.tools.check.launch_recorder import Recorded
from ingot_build_rules.tools.check.output_limits import expected_outputs
from ingot_build_rules.tools.check.rounding import DIRECTIONS, Errors, settled_outputs
from ingot_compiler.ir.errors import IncompatibleTargetError
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.in_names import error_in_names, refers
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.precision import BF16
from ingot_compiler.kernels.kinds import ROUNDED_KINDS
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.option_ref import OptionRef

if TYPE_CHECKING:
    from ingot_build_rules.making.stages.compile_model import CompiledModel
    from ingot_build_rules.making.stages.target_build import TargetBuild


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
            findings.append(_finding(compiled, build, item, item.expected, ()))
        else:
            by_value.setdefault(item.value, []).append(item)
    moved = _moved(compiled, build, run, by_value)

    def settle(index: int, results: tuple[Array, ...], _: Mapping[str, int]) -> tuple[Array, ...]:
        for value, expected in zip(graph.nodes[index].results, results, strict=True):
            others = moved.pop(value, ())
            findings.extend(
                _finding(compiled, build, item, expected, others)
                for item in by_value.get(value, ())
            )
        return _stored(graph.nodes[index], results, by_value)

    settled_outputs(graph, run.given, compiled.read_constant, settle)
    report.launches += recorder.launches
    for finding in sorted(findings, key=lambda item: item.launch):
        report.add(finding)


def _stored(
    node: Node, results: tuple[Array, ...], by_value: Mapping[int, Sequence[Recorded]]
) -> tuple[Array, ...]:
    """The machine's own results, where it has stored them."""
    settled: list[Array] = []
    for value, expected in zip(node.results, results, strict=True):
        stored = by_value.get(value, ())
        fits = bool(stored) and stored[0].content.shape == expected.shape
        settled.append(stored[0].content if fits else expected)
    return tuple(settled)


def _moved(
    compiled: CompiledModel,
    build: TargetBuild,
    run: CheckRun,
    by_value: Mapping[int, Sequence[Recorded]],
) -> dict[int, tuple[Array, ...]]:
    """What launches whose results jump might have stored as well: one that adds in another order
    takes the other integer at a tie."""
    graph = run.graph
    groups = {
        item.value: build.launches[item.launch].group for each in by_value.values() for item in each
    }
    jumping = {value for value, group in groups.items() if may_jump(group.nodes, dict(group.types))}
    found: dict[int, tuple[Array, ...]] = {}
    for direction in DIRECTIONS if jumping else ():
        errors = Errors(graph, direction)

        def settle(
            index: int,
            results: tuple[Array, ...],
            bindings: Mapping[str, int],
            errors: Errors = errors,
        ) -> tuple[Array, ...]:
            moved = errors.settle(index, results, bindings)
            for value, array in zip(graph.nodes[index].results, moved, strict=True):
                if value in jumping:
                    found[value] = (*found.get(value, ()), array)
            return _stored(graph.nodes[index], moved, by_value)

        settled_outputs(graph, run.given, compiled.read_constant, settle)
    return found


def _finding(
    compiled: CompiledModel,
    build: TargetBuild,
    item: Recorded,
    expected: Array,
    moved: Sequence[Array],
) -> CheckFinding:
    group = build.launches[item.launch].group
    tensor_type = next(result.type for result in group.results if result.value == item.value)
    nodes = tuple(compiled.names.nodes[ordinal] for ordinal in group.source)
    called = compiled.names.describe(group.source)
    types = dict(group.types)
    through = "bf16" if group.kind in ROUNDED_KINDS else narrowest(group.nodes, types)
    limits = launch_limits(tensor_type.dtype, jumps=may_jump(group.nodes, types), through=through)
    same = [other for other in moved if other.shape == expected.shape]
    found = deviation(item.content, expected, tensor_type.dtype, limits, same)
    what = f"the kernel of {called}" if called else "a kernel"
    return CheckFinding(
        what, build.target, str(tensor_type), found, nodes, item.kernel, item.launch
    )


def _compare_native(
    compiled: CompiledModel, target: str, run: CheckRun, again: Inputs, report: CheckReport
) -> None:
    """The native main calls the same kernels: its outputs have the same bits."""
    for tensor in compiled.interface.outputs:
        left, right = again[tensor.name], run.outputs[tensor.name]
        if left.tobytes() != right.tobytes() or left.shape != right.shape:
            found = replace(deviation(left, right, tensor.dtype, Limits(0.0)), within=False)
            what = f"output {tensor.name!r} of the native main"
            report.differences.append(CheckFinding(what, target, tensor.dtype, found))


def _compare_outputs(
    compiled: CompiledModel, target: str, run: CheckRun, report: CheckReport
) -> None:
    """End to end, against the graph before any pass; the launches agree with the graph after
    them."""
    rounded = compiled.options.choices.precision == BF16
    every = expected_outputs(
        compiled.graph, run.given, compiled.read_constant, joined=True, rounded=rounded
    )
    for tensor, wanted in zip(compiled.interface.outputs, every, strict=True):
        got = run.outputs[tensor.name]
        found = deviation(got, wanted.content, tensor.dtype, wanted.limits)
        report.outputs_relative = max(report.outputs_relative, found.relative)
        if not found.within:
            what = f"output {tensor.name!r}, whose kernels all agree with the optimized graph,"
            report.differences.append(CheckFinding(what, target, tensor.dtype, found))
