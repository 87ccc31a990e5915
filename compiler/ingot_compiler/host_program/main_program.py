"""Builds the instruction list of ``main``: sizes first, then one launch after another.

In: the fused graph with its groups expanded, the loop programs, the memory plan, where constants
lie in the weights section. Out: a ``Program`` (``ingot_runtime.format.program``). Not done here:
machine code (``backends.host.main``), stepping (the vm).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ingot_compiler.host_program.main_assembler import Assembler
from ingot_compiler.host_program.main_outputs import finish_outputs, written_by
from ingot_compiler.host_program.main_sizes import (
    WorkspaceRegisters,
    bind_inputs,
    tell_outputs,
    tell_workspace,
)
from ingot_compiler.host_program.main_steps import StepEmitter, check_requirement
from ingot_compiler.host_program.main_versions import each_version, fits_profile
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.errors import LimitError
from ingot_compiler.ir.message import Text
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.lowering.groups.fused import (
    FusedGraph,
    Requirement,
    Step,
    SymbolRead,
    all_steps,
)
from ingot_compiler.lowering.groups.versions import Version, versions_of
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.memory.memory_plan import MemoryPlan, buffer_bytes
from ingot_compiler.memory.planned_bytes import PlannedSizes
from ingot_runtime.format.limits import (
    BUFFER_COUNT_MAX,
    INSTRUCTION_COUNT_MAX,
    KERNEL_COUNT_MAX,
    REGISTER_COUNT_MAX,
)
from ingot_runtime.format.program import Program
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What one version has computed before ``begin``: the requirements that hold, its workspace,
    the registers of expressions."""

    hoisted: frozenset[Requirement]
    workspace: WorkspaceRegisters
    known: dict[Dim, int]


def build_program(
    fused: FusedGraph,
    programs: Sequence[LoopProgram],
    kernel_indices: Sequence[int],
    plan: MemoryPlan,
    constant_offsets: Sequence[int],
) -> tuple[Program, tuple[Text, ...]]:
    """Assemble ``main``; beside it what its messages refer to, in their order.

    ``fused`` has its groups expanded; ``programs[i]`` and ``kernel_indices[i]`` (position in the
    variant's kernel list) are the i-th of all programs, as ``Launch.program`` counts them;
    ``constant_offsets[i]`` is the byte offset of ``fused.constants[i]`` in the weights section.

    Raises:
        LimitError: the program is too large for a bundle.
        UnsupportedError: the scratch of a kernel has a size that the model computes.
    """
    versions = versions_of(fused)
    reads = [step for step in all_steps(fused.steps) if isinstance(step, SymbolRead)]
    out = Assembler({step.symbol: step.source for step in reads})
    bind_inputs(out, fused)
    tests = [fits_profile(out, version.profile) for version in versions[1:]]
    prepared: list[_Prepared] = []
    begin = out.label()

    def prepare(number: int) -> None:
        hoisted = _check_early(out, versions[number].steps)
        workspace = tell_workspace(out, fused, versions[number], programs, plan)
        prepared.append(_Prepared(hoisted, workspace, out.known))
        if number < len(tests):
            out.emit("jump", begin)

    each_version(out, tests, prepare)
    out.place(begin)
    planned = PlannedSizes(fused)
    tell_outputs(out, planned)
    out.emit("begin")
    devices = enumerate(prepared[0].workspace.scratch, len(fused.buffers))
    scratch = {device: buffer for buffer, device in devices}
    kernels = list(zip(programs, kernel_indices, strict=True))
    emitter = StepEmitter(out, planned, plan, kernels, scratch)

    def run(number: int) -> None:
        out.known, emitter.hoisted = prepared[number].known, prepared[number].hoisted
        places = prepared[number].workspace
        emitter.blocks = places.blocks
        _define_buffers(out, planned, _left_out(versions, number), places, constant_offsets)
        for device, place in places.scratch.items():
            out.emit("buffer_workspace", scratch[device], device, *place)
        _run(emitter, versions[number].steps)

    each_version(out, tests, run)
    buffer_count = len(fused.buffers) + len(scratch)
    _check_limits(out, buffer_count, len(set(kernel_indices)))
    program = Program(out.resolved(), out.register_count, buffer_count, tuple(out.messages))
    return program, tuple(out.messages.values())


def _check_early(out: Assembler, steps: Sequence[Step]) -> frozenset[Requirement]:
    """Check the requirements that the sizes of inputs decide, before anything runs."""
    found = [
        step for step in steps if isinstance(step, Requirement) and out.is_bound(step.difference)
    ]
    for step in found:
        check_requirement(out, step)
    return frozenset(found)


def _left_out(versions: Sequence[Version], number: int) -> set[int]:
    """Buffers of other versions than that of a number."""
    used = [version.buffers() for version in versions]
    return {buffer for buffers in used for buffer in buffers} - used[number]


def _define_buffers(
    out: Assembler,
    planned: PlannedSizes,
    left_out: Collection[int],
    places: WorkspaceRegisters,
    constant_offsets: Sequence[int],
) -> None:
    """Say where each buffer lies whose place is known; the others get blocks when their sizes are
    known."""
    fused = planned.fused
    for buffer, spec in enumerate(fused.buffers):
        if buffer in left_out:
            continue
        if spec.kind == "input":
            out.emit("buffer_input", buffer, spec.index)
        elif spec.kind == "output":
            is_bound = all(out.is_bound(dim) for dim in fused.outputs[spec.index].shape)
            if is_bound or planned.output_shape(spec.index) is not None:
                out.emit("buffer_output", buffer, spec.index)
        elif spec.kind == "constant":
            device = (spec.device,) if spec.device else ()
            name = "buffer_device_weights" if device else "buffer_weights"
            offset_bytes, size_bytes = constant_offsets[spec.index], buffer_bytes(fused, buffer)
            out.emit(name, buffer, *device, offset_bytes, typical(size_bytes))
        elif buffer in places.offsets:
            place = places.offsets[buffer], out.dim(planned.buffer_bytes(buffer))
            home = places.homes.get(buffer, spec.device)
            out.emit("buffer_workspace", buffer, home, *place)


def _run(emitter: StepEmitter, steps: Sequence[Step]) -> None:
    """One version to its end: ``steps`` are its own."""
    out, fused = emitter.out, emitter.fused
    emitter.emit(steps)
    written = written_by(fused.steps)
    # What nothing writes is empty, whatever its other sizes are.
    for buffer in sorted(emitter.data_dependent_outputs - written):
        out.emit("buffer_grow", buffer, 0, out.dim(0))
    finish_outputs(out, emitter.planned, steps, written - written_by(steps))
    out.emit("return")


def _check_limits(out: Assembler, buffer_count: int, kernel_count: int) -> None:
    for count, limit, unit in (
        (len(out.instructions), INSTRUCTION_COUNT_MAX, "instructions"),
        (out.register_count, REGISTER_COUNT_MAX, "registers"),
        (buffer_count, BUFFER_COUNT_MAX, "buffers"),
        (kernel_count, KERNEL_COUNT_MAX, "kernels"),
    ):
        if count > limit:
            why = f"expected at most {limit} {unit}, got {count}"
            what = "the model is too large for one bundle"
            raise LimitError(what, "main", why, "split the model")
