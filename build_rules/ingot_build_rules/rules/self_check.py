"""The self-check: a finished bundle, run by the loader, against the interpreter, node by node.

In: a compilation, its bundle, inputs or none. Out: ``CheckReport``. Not done here: how far is too far (``deviation``).

The vm steps the bundle and shows what each launch stores. The interpreter runs the optimized graph beside it, and after
each comparison goes on with the machine's own value: errors do not add up, and a launch that differs is itself at fault.
Then the outputs are compared with those of the graph as it was imported (the passes), and with the native main's (bits).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import numpy as np

import ingot_runtime
from ingot_build_rules.rules.check_inputs import generated_inputs
from ingot_build_rules.rules.deviation import Deviation, deviation, may_jump
from ingot_build_rules.rules.launch_recorder import LaunchRecorder, Recorded
from ingot_build_rules.rules.output_file import check_output
from ingot_compiler.ir.errors import IncompatibleTargetError, UserError, VerificationError
from ingot_compiler.ir.interpret import bind_symbols, interpret, interpret_values
from ingot_compiler.ir.op import Array

if TYPE_CHECKING:
    from ingot_build_rules.rules.compile_model import CompiledModel, TargetBuild

_OUTPUT_SLACK = 10.0  # errors add up from the inputs to the outputs
Inputs = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Finding:
    """One comparison: ``what`` was compared, ``nodes`` are the model's (name, op), ``kernel`` and ``launch`` if it is one."""

    what: str
    target: str
    type: str
    deviation: Deviation
    nodes: tuple[tuple[str, str], ...] = ()
    kernel: str = ""
    launch: int = -1

    def error(self, others: int) -> VerificationError:
        """The report of a difference; ``others``: how many more launches differ."""
        found = self.deviation
        place = f"{self.kernel}, launch {self.launch}, " if self.kernel else ""
        if found.index or found.count == 1:
            first = f"expected {found.expected:.9g}, got {found.got:.9g} at {list(found.index)}"
        else:
            first = f"expected {found.expected:.0f} elements, got {found.got:.0f}"
        more = f"; {others} more launches differ" if others else ""
        return VerificationError(
            f"{self.what} differs from the interpreter",
            where=f"{place}{self.type}, target {self.target}",
            why=f"{first}; {found.apart} of {found.count} elements differ, largest error {found.absolute:.3g}, "
            f"{found.relative:.3g} of the largest value{more}",
            do="report the model; no bundle was written",
        )


@dataclass(slots=True)
class CheckReport:
    """``largest``: the comparison of a launch with the largest relative error; ``outputs_relative``: end to end."""

    launches: int = 0
    largest: Finding | None = None
    outputs_relative: float = 0.0
    differences: list[Finding] = field(default_factory=list[Finding])
    targets: list[str] = field(default_factory=list[str])
    targets_left_out: list[str] = field(default_factory=list[str])
    sizes: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, finding: Finding) -> None:
        """Count one comparison."""
        if not finding.deviation.within:
            self.differences.append(finding)
        if self.largest is None or finding.deviation.relative > self.largest.deviation.relative:
            self.largest = finding

    def require_equal(self) -> None:
        """Raise for the first difference.

        Raises:
            VerificationError: naming nodes, kernel, index and how far it is.
        """
        if self.differences:
            raise self.differences[0].error(len(self.differences) - 1)

    def plain(self) -> dict[str, object]:
        """As plain values, for JSON."""
        return {
            "passed": not self.differences,
            "launches": self.launches,
            "largest": asdict(self.largest) if self.largest else None,
            "outputs_relative": self.outputs_relative,
            "first_difference": asdict(self.differences[0]) if self.differences else None,
            "differing_launches": len(self.differences),
            "targets": self.targets,
            "targets_left_out": self.targets_left_out,
            "sizes": self.sizes,
        }

    def __str__(self) -> str:
        """One line for people."""
        found = self.largest
        largest = f"{found.deviation.relative:.1e} in {found.what}" if found else "none"
        left_out = f"; not run here: {', '.join(self.targets_left_out)}" if self.targets_left_out else ""
        return (
            f"checked {self.launches} launches against the interpreter: largest relative error {largest}; "
            f"outputs {self.outputs_relative:.1e}{left_out}"
        )


def save_checked(compiled: CompiledModel, path: str, inputs: Inputs | None) -> tuple[str, CheckReport]:
    """Write the bundle under another name beside ``path``, check it, and rename it if nothing differs.

    Returns the root digest and the report. With differences in the report, ``path`` is what it was before.

    Raises:
        UserError: wrong inputs. IncompatibleTargetError: no variant runs on this machine. Every error of ``save``.
    """
    check_output(path)
    folder, name = os.path.split(os.path.abspath(path))
    with tempfile.TemporaryDirectory(prefix=".ingot-check-", dir=folder) as kept_apart:
        candidate = os.path.join(kept_apart, name)
        digest = compiled.save(candidate)
        report = check_bundle(compiled, candidate, inputs)
        if not report.differences:
            os.replace(candidate, path)
    return digest, report


def check_bundle(compiled: CompiledModel, path: str, inputs: Inputs | None) -> CheckReport:
    """Run every variant of a bundle that can run here against the interpreter.

    Args:
        compiled: what the bundle was made from.
        path: the bundle.
        inputs: arrays by input name; numbers of a stated generator where None (``check_inputs``).
    """
    report = CheckReport()
    graph = compiled.graph
    for build in compiled.target_builds:
        target = str(build.target)
        try:
            session = ingot_runtime.load(path, variant=target, executor="vm")
        except ingot_runtime.IncompatibleError:
            report.targets_left_out.append(target)
            continue
        with session:
            given, recorder, outputs = _run(compiled, build, session, inputs, report)
        _compare_launches(compiled, build, given, recorder, report)
        with ingot_runtime.load(path, variant=target) as native:
            again = native.run(dict(zip(compiled.names.inputs, given, strict=True)))
        _compare_native(compiled, target, outputs, again, report)
        if not report.differences:
            _compare_outputs(compiled, target, interpret(graph, given, compiled.read_constant), outputs, report)
        report.targets.append(target)
    if not report.targets:
        raise IncompatibleTargetError(
            "no variant can be checked here",
            where=f"targets {', '.join(report.targets_left_out)}",
            why="this machine runs none of them",
            do="check on such a machine, or leave --check out",
        )
    return report


def _run(
    compiled: CompiledModel,
    build: TargetBuild,
    session: ingot_runtime.Session,
    inputs: Inputs | None,
    report: CheckReport,
) -> tuple[list[Array], LaunchRecorder, dict[str, Array]]:
    """Inputs in order, what the launches stored, the outputs."""
    names = compiled.names
    graph = compiled.placed.graph
    if inputs is not None:
        session.run(inputs)  # the loader's own words for inputs that do not fit
        tries = [({}, [np.asarray(inputs[name]) for name in names.inputs])]
    else:
        tries = generated_inputs(graph)
    refusal = "every size leaves a tensor without elements"
    for sizes, given in tries:
        recorder = LaunchRecorder(build.fused, given, bind_symbols(graph, given))
        session.observe(recorder.observe)
        try:
            outputs = session.run(dict(zip(names.inputs, given, strict=True)))
        except ingot_runtime.InputError as error:
            refusal = error.why or error.what
            continue
        called = dict(names.symbols)
        report.sizes = {called.get(name, name): size for name, size in sizes.items()}
        return given, recorder, outputs
    raise UserError(
        "the model accepts none of the generated inputs", where="option --check", why=refusal,
        do="give inputs: --check INPUTS.npz",
    )  # fmt: skip


def _compare_launches(
    compiled: CompiledModel, build: TargetBuild, given: list[Array], recorder: LaunchRecorder, report: CheckReport
) -> None:
    graph = compiled.placed.graph
    findings: list[Finding] = []
    by_value: dict[int, list[Recorded]] = {}
    for item in recorder.recorded:
        if item.expected is not None:
            findings.append(_finding(compiled, build, recorder, item, item.expected))
        else:
            by_value.setdefault(item.value, []).append(item)

    def settle(index: int, results: tuple[Array, ...], _: Mapping[str, int]) -> tuple[Array, ...]:
        settled: list[Array] = []
        for value, expected in zip(graph.nodes[index].results, results, strict=True):
            stored = by_value.pop(value, [])
            findings.extend(_finding(compiled, build, recorder, item, expected) for item in stored)
            fits = bool(stored) and stored[0].content.shape == expected.shape
            settled.append(stored[0].content if fits else expected)
        return tuple(settled)

    for _ in interpret_values(graph, given, compiled.read_constant, settle):
        pass
    report.launches += len(recorder.kernels)
    for finding in sorted(findings, key=lambda item: item.launch):
        report.add(finding)


def _finding(
    compiled: CompiledModel, build: TargetBuild, recorder: LaunchRecorder, item: Recorded, expected: Array
) -> Finding:
    group = build.groups[item.launch]
    kind = next(result.type for result in group.results if result.value == item.value)
    nodes = tuple(compiled.names.nodes[ordinal] for ordinal in group.source)
    called = compiled.names.describe(group.source)
    found = deviation(item.content, expected, kind.dtype, jumps=may_jump(group.nodes, dict(group.types)))
    what = f"the kernel of {called}" if called else "a kernel"
    return Finding(what, str(build.target), str(kind), found, nodes, recorder.kernels[item.launch], item.launch)


def _compare_native(compiled: CompiledModel, target: str, outputs: Inputs, again: Inputs, report: CheckReport) -> None:
    """The native main calls the same kernels: its outputs have the same bits."""
    for tensor in compiled.interface.outputs:
        left, right = again[tensor.name], outputs[tensor.name]
        if left.tobytes() != right.tobytes() or left.shape != right.shape:
            found = deviation(left, right, tensor.dtype, jumps=False)
            report.differences.append(
                Finding(f"output {tensor.name!r} of the native main", target, tensor.dtype, _never_within(found))
            )


def _compare_outputs(
    compiled: CompiledModel, target: str, expected: tuple[Array, ...], outputs: Inputs, report: CheckReport
) -> None:
    """End to end, against the graph before any pass; the launches agree with the graph after them."""
    graph = compiled.graph
    jumps = may_jump(graph.nodes, dict(enumerate(graph.types)))
    for tensor, wanted in zip(compiled.interface.outputs, expected, strict=True):
        found = deviation(outputs[tensor.name], wanted, tensor.dtype, jumps=jumps, slack=_OUTPUT_SLACK)
        report.outputs_relative = max(report.outputs_relative, found.relative)
        if not found.within:
            what = f"output {tensor.name!r}, whose kernels all agree with the optimized graph,"
            report.differences.append(Finding(what, target, tensor.dtype, found))


def _never_within(found: Deviation) -> Deviation:
    return Deviation(
        found.absolute, found.relative, found.index, found.expected, found.got, found.apart, found.count, within=False
    )
