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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

import ingot_runtime
from ingot_artifacts.store.atomic import sync_folders
from ingot_build_rules.check.check_report import CheckFinding, CheckReport
from ingot_build_rules.check.check_stages import check_stages
from ingot_build_rules.check.deviation import deviation, may_jump
from ingot_build_rules.check.generated_inputs import generated_inputs
from ingot_build_rules.check.launch_recorder import LaunchRecorder, Recorded
from ingot_build_rules.compilation.output_file import check_output
from ingot_compiler.ir.errors import IncompatibleTargetError, UserError
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.in_names import error_in_names, refers
from ingot_compiler.ir.interpret import bind_symbols, interpret, interpret_values
from ingot_compiler.ir.op import Array
from ingot_runtime.ingot_error import IngotError

if TYPE_CHECKING:
    from ingot_build_rules.compilation.compile_model import CompiledModel
    from ingot_build_rules.compilation.target_build import TargetBuild
    from ingot_runtime.executor.session import Session

_OUTPUT_SLACK = 10.0  # errors add up from the inputs to the outputs
Inputs = Mapping[str, Array]


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
            for run in _runs(compiled, build, session, inputs, report):
                _compare_launches(compiled, build, run, report)
                _compare_native(
                    compiled, target, run, native.run(_named(compiled, run.given)), report
                )
                if not report.differences:
                    _compare_outputs(compiled, target, run, report)
    if not report.targets:
        raise IncompatibleTargetError(
            "no variant can be checked here",
            where=f"targets {', '.join(report.targets_left_out)}",
            why="this machine runs none of them",
            do="check on such a machine, or leave --check out",
        )
    return report


@dataclass(frozen=True, slots=True)
class _Run:
    """One call: what it was given, what it stored and returned, and the graph that it follows."""

    graph: Graph
    given: list[Array]
    recorder: LaunchRecorder
    outputs: Inputs


def _runs(
    compiled: CompiledModel,
    build: TargetBuild,
    session: Session,
    inputs: Inputs | None,
    report: CheckReport,
) -> Iterator[_Run]:
    """One call on given inputs; on generated ones a call for any size and, with ``--shape``, one
    for its sizes."""
    general, specialisation = compiled.placed.graph, compiled.specialisation
    if inputs is not None:
        session.run(inputs)  # the loader's own words for inputs that do not fit
        given = [np.asarray(inputs[name]) for name in compiled.names.inputs]
        yield _run(compiled, build, session, given)
        return
    refusals: list[str] = []
    count = 0
    for graph in [general, *([specialisation.graph] if specialisation else [])]:
        for sizes, given in generated_inputs(graph):
            if (graph is general) == _is_specialised(compiled, build, given):
                continue
            try:
                run = _run(compiled, build, session, given)
            except ingot_runtime.InputError as error:
                refusals.append(error.why or error.what)
                continue
            called = dict(compiled.names.symbols)
            report.sizes.append({called.get(name, name): size for name, size in sizes.items()})
            yield run
            count += 1
            break
    if not count:
        raise UserError(
            "the model accepts none of the generated inputs",
            where="option --check",
            why=refusals[0] if refusals else "every size leaves a tensor without elements",
            do="give inputs: --check INPUTS.npz",
        )


def _is_specialised(compiled: CompiledModel, build: TargetBuild, given: list[Array]) -> bool:
    """Whether `main` runs the steps of ``--shape`` on these inputs."""
    specialisation = build.fused.specialisation
    symbols = bind_symbols(compiled.placed.graph, given)
    return specialisation is not None and all(
        symbols.get(name) == size for name, size in specialisation.sizes
    )


def _run(compiled: CompiledModel, build: TargetBuild, session: Session, given: list[Array]) -> _Run:
    fused, graph, steps = build.expanded, compiled.placed.graph, build.expanded.steps
    if fused.specialisation is not None:
        steps = fused.steps[: fused.specialisation.first_step]
        if _is_specialised(compiled, build, given):
            assert compiled.specialisation is not None
            graph, steps = (
                compiled.specialisation.graph,
                fused.steps[fused.specialisation.first_step :],
            )
    recorder = LaunchRecorder(fused.buffers, steps, given, bind_symbols(graph, given))
    session.observe(recorder.observe)
    return _Run(graph, given, recorder, session.run(_named(compiled, given)))


def _named(compiled: CompiledModel, given: list[Array]) -> Inputs:
    return dict(zip(compiled.names.inputs, given, strict=True))


def _compare_launches(
    compiled: CompiledModel, build: TargetBuild, run: _Run, report: CheckReport
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
    found = deviation(
        item.content, expected, kind.dtype, jumps=may_jump(group.nodes, dict(group.types))
    )
    what = f"the kernel of {called}" if called else "a kernel"
    return CheckFinding(what, build.target, str(kind), found, nodes, item.kernel, item.launch)


def _compare_native(
    compiled: CompiledModel, target: str, run: _Run, again: Inputs, report: CheckReport
) -> None:
    """The native main calls the same kernels: its outputs have the same bits."""
    for tensor in compiled.interface.outputs:
        left, right = again[tensor.name], run.outputs[tensor.name]
        if left.tobytes() != right.tobytes() or left.shape != right.shape:
            found = deviation(left, right, tensor.dtype, jumps=False)
            report.differences.append(
                CheckFinding(
                    f"output {tensor.name!r} of the native main",
                    target,
                    tensor.dtype,
                    replace(found, within=False),
                )
            )


def _compare_outputs(compiled: CompiledModel, target: str, run: _Run, report: CheckReport) -> None:
    """End to end, against the graph before any pass; the launches agree with the graph after
    them."""
    graph = compiled.graph
    expected = interpret(graph, run.given, compiled.read_constant)
    jumps = may_jump(graph.nodes, dict(enumerate(graph.types)))
    for tensor, wanted in zip(compiled.interface.outputs, expected, strict=True):
        found = deviation(
            run.outputs[tensor.name], wanted, tensor.dtype, jumps=jumps, slack=_OUTPUT_SLACK
        )
        report.outputs_relative = max(report.outputs_relative, found.relative)
        if not found.within:
            what = f"output {tensor.name!r}, whose kernels all agree with the optimized graph,"
            report.differences.append(CheckFinding(what, target, tensor.dtype, found))
