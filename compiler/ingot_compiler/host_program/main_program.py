"""Builds the instruction list of ``main``: sizes first, then one launch after another.

In: the fused graph with its groups expanded, the loop programs, the memory plan, where constants
lie in the weights section. Out: a ``Program`` (``ingot_runtime.format.program``). Not done here:
machine code (``backends.host.main``), stepping (the vm).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from ingot_compiler.host_program.main_assembler import Assembler
from ingot_compiler.host_program.main_outputs import finish_outputs, written_by
from ingot_compiler.host_program.main_sizes import bind_inputs, tell_sizes
from ingot_compiler.host_program.main_steps import StepEmitter, check_requirement
from ingot_compiler.ir.errors import LimitError
from ingot_compiler.ir.message import Text
from ingot_compiler.lowering.fused import (
    FusedGraph,
    Requirement,
    Specialisation,
    Step,
    SymbolRead,
    all_steps,
)
from ingot_compiler.lowering.loops import LoopProgram
from ingot_compiler.lowering.typical import typical
from ingot_compiler.memory.memory_plan import MemoryPlan, buffer_bytes
from ingot_runtime.format.limits import (
    BUFFER_COUNT_MAX,
    INSTRUCTION_COUNT_MAX,
    KERNEL_COUNT_MAX,
    REGISTER_COUNT_MAX,
)
from ingot_runtime.format.program import Program


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
    reads = [step for step in all_steps(fused.steps) if isinstance(step, SymbolRead)]
    out = Assembler({step.symbol: step.source for step in reads})
    bind_inputs(out, fused)
    hoisted = _check_early(out, fused.steps)
    workspace = tell_sizes(out, fused, programs, plan)
    out.emit("begin")
    _define_buffers(out, fused, workspace.offsets, constant_offsets)
    scratch: dict[int, int] = {}
    for buffer, (device, place) in enumerate(workspace.scratch.items(), len(fused.buffers)):
        out.emit("buffer_workspace", buffer, device, *place)
        scratch[device] = buffer
    kernels = list(zip(programs, kernel_indices, strict=True))
    emitter = StepEmitter(out, fused, plan, kernels, scratch, hoisted)
    if fused.specialisation is None:
        _run(emitter, fused.steps)
    else:
        _choose(emitter, fused.specialisation)
    buffer_count = len(fused.buffers) + len(scratch)
    _check_limits(out, buffer_count, len(set(kernel_indices)))
    program = Program(out.resolved(), out.register_count, buffer_count, tuple(out.messages))
    return program, tuple(out.messages.values())


def _check_early(out: Assembler, steps: Sequence[Step]) -> list[Requirement]:
    """Check the requirements that the sizes of inputs decide, before anything runs."""
    found = [
        step for step in steps if isinstance(step, Requirement) and out.is_bound(step.difference)
    ]
    for step in found:
        check_requirement(out, step)
    return found


def _define_buffers(
    out: Assembler,
    fused: FusedGraph,
    offsets: Mapping[int, int],
    constant_offsets: Sequence[int],
) -> None:
    """Say where each buffer lies whose place is known; the others get blocks when their sizes are
    known."""
    for buffer, spec in enumerate(fused.buffers):
        if spec.kind == "input":
            out.emit("buffer_input", buffer, spec.index)
        elif spec.kind == "output":
            if all(out.is_bound(dim) for dim in fused.outputs[spec.index].shape):
                out.emit("buffer_output", buffer, spec.index)
        elif spec.kind == "constant":
            device = (spec.device,) if spec.device else ()
            name = "buffer_device_weights" if device else "buffer_weights"
            offset_bytes, size_bytes = constant_offsets[spec.index], buffer_bytes(fused, buffer)
            out.emit(name, buffer, *device, offset_bytes, typical(size_bytes))
        elif buffer in offsets:
            place = offsets[buffer], out.dim(buffer_bytes(fused, buffer))
            out.emit("buffer_workspace", buffer, spec.device, *place)


def _run(emitter: StepEmitter, steps: Sequence[Step]) -> None:
    """One way to run, to its end: ``steps`` are all steps, or those of one way."""
    out, fused = emitter.out, emitter.fused
    emitter.emit(steps)
    written = written_by(fused.steps)
    # What nothing writes is empty, whatever its other sizes are.
    for buffer in sorted(emitter.data_dependent_outputs - written):
        out.emit("buffer_grow", buffer, 0, out.dim(0))
    finish_outputs(out, fused, steps, written - written_by(steps))
    out.emit("return")


def _choose(emitter: StepEmitter, specialisation: Specialisation) -> None:
    """``if every size is the one of the specialisation: its steps; else: the general ones``."""
    out, steps = emitter.out, emitter.fused.steps
    matches = [
        out.binary("eq", out.symbols[name], out.dim(size)) for name, size in specialisation.sizes
    ]
    condition = functools.reduce(functools.partial(out.binary, "mul"), matches)
    general, named = out.label(), out.label()
    out.emit("branch", condition, named, general)
    out.place(general)
    known, symbols = dict(out.known), dict(out.symbols)
    _run(emitter, steps[: specialisation.first_step])
    # What the general steps computed is not there when they are skipped.
    out.known, out.symbols = known, symbols
    out.place(named)
    _run(emitter, steps[specialisation.first_step :])


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
