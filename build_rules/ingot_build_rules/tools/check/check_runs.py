"""The calls of a bundle that a self-check looks at: on inputs that are given, or on generated ones.

In: a target of a compilation, a session that steps its bundle, inputs or none. Out: ``CheckRun``.
Not done here: what the calls should have given (``self_check``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

import ingot_runtime
from ingot_build_rules.tools.check.generated_inputs import generated_inputs
from ingot_build_rules.tools.check.launch_recorder import LaunchRecorder
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.sizes.profile import fitting
from ingot_compiler.lowering.constants.evaluate_constant import evaluate
from ingot_compiler.lowering.groups.versions import versions_of
from ingot_compiler.oracles.interpret import bind_symbols
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

if TYPE_CHECKING:
    from ingot_build_rules.making.stages.compile_model import CompiledModel
    from ingot_build_rules.making.stages.target_build import TargetBuild
    from ingot_build_rules.tools.check.check_report import CheckReport
    from ingot_runtime.executor.session import Session

Inputs = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class CheckRun:
    """One call: what it was given, what it stored and returned, and the graph that it follows."""

    graph: Graph
    given: list[Array]
    recorder: LaunchRecorder
    outputs: Inputs


@dataclass(frozen=True, slots=True)
class SteppedTarget:
    """One target of a compilation, and the session that steps its variant of the bundle."""

    compiled: CompiledModel
    build: TargetBuild
    session: Session

    def call(self, given: list[Array]) -> CheckRun:
        """Call the bundle once; ``given``: the inputs in their order.

        Raises:
            InputError: the bundle does not accept them.
        """
        fused, number = self.build.expanded, self.version_of(given)
        graph = self.graphs()[number]
        steps, symbols = versions_of(fused)[number].steps, bind_symbols(graph, given)

        def constant(number: int) -> memoryview:
            return evaluate(fused.constants[number], self.compiled.read_constant)

        recorder = LaunchRecorder(fused.buffers, steps, given, symbols, constant)
        self.session.observe(recorder.observe)
        outputs = run_tensors(self.session, named(self.compiled, given))
        return CheckRun(graph, given, recorder, outputs)

    def graphs(self) -> list[Graph]:
        """The graph of each version: the general one, then those of ``--shape``."""
        placed = (self.compiled.placed, *self.compiled.specialisations)
        return [version.graph for version in placed]

    def version_of(self, given: list[Array]) -> int:
        """The position of the version that `main` runs on these inputs."""
        symbols = bind_symbols(self.compiled.placed.graph, given)
        profiles = [each.profile for each in self.build.fused.specialisations]
        chosen = fitting(profiles, symbols)
        return 0 if chosen is None else 1 + chosen


def run_tensors(session: Session, tensors: Inputs) -> Inputs:
    """Call a bundle with the tensors that its inputs are made of."""
    from ingot_runtime.executor.session import Session as OfTensors

    return OfTensors.run(session, tensors)


def named(compiled: CompiledModel, given: list[Array]) -> Inputs:
    """Inputs in their order, by the user's names."""
    return dict(zip(compiled.names.inputs, given, strict=True))


def check_runs(
    target: SteppedTarget, inputs: Inputs | None, report: CheckReport
) -> Iterator[CheckRun]:
    """Yield one call on given inputs; on generated ones a call for any size and, with ``--shape``,
    one for each profile. The sizes that were generated go into the report.

    Raises:
        UserError: the model accepts none of the generated inputs.
    """
    compiled = target.compiled
    if inputs is not None:
        inputs = _as_tensors(target.session, inputs)
        run_tensors(target.session, inputs)  # the loader's own words for inputs that do not fit
        yield target.call([np.asarray(inputs[name]) for name in compiled.names.inputs])
        return
    called, refusals, count = dict(compiled.names.symbols), list[str](), 0
    for version in range(len(target.graphs())):
        found = _generated_run(target, version, refusals)
        if found is not None:
            sizes, run = found
            report.sizes.append({called.get(name, name): size for name, size in sizes.items()})
            yield run
            count += 1
    if not count:
        raise _none_accepted(refusals)


def _as_tensors(session: Session, inputs: Inputs) -> Inputs:
    """The tensors that inputs of a file are made of."""
    plan = session.loaded.plan
    if plan.values is None:
        return inputs
    from ingot_runtime.executor.values import of_arrays, packed

    return packed(plan, of_arrays(session, dict(inputs)))


def _generated_run(
    target: SteppedTarget, version: int, refusals: list[str]
) -> tuple[dict[str, int], CheckRun] | None:
    """The first call on generated inputs of this version that the model accepts, with its sizes."""
    for sizes, given in generated_inputs(target.graphs()[version]):
        if target.version_of(given) != version:
            continue
        try:
            return sizes, target.call(given)
        except ingot_runtime.InputError as error:
            refusals.append(error.why or error.what)
    return None


def _none_accepted(refusals: list[str]) -> UserError:
    return UserError(
        "the model accepts none of the generated inputs",
        where=OptionRef("check"),
        why=refusals[0] if refusals else "every size leaves a tensor without elements",
        do=message("give inputs: ", OptionRef("check", "INPUTS.npz")),
    )
