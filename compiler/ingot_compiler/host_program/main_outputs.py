"""Outputs whose sizes only the data decide: which they are, and what tells the caller of them.

In: the fused graph, an assembler that knows the sizes of inputs. Out: buffers, and the instructions
behind the steps. Not done here: outputs that the caller allocates (``main_sizes`` tells their
sizes), blocks of memory (``main_steps``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ingot_compiler.host_program.main_assembler import Assembler
from ingot_compiler.ir.dims import symbols_of
from ingot_compiler.lowering.groups.fused import Copy, Launch, Step, all_steps, symbols_set
from ingot_compiler.memory.memory_plan import buffer_bytes
from ingot_compiler.memory.planned_bytes import PlannedSizes


def data_dependent_outputs(out: Assembler, planned: PlannedSizes) -> set[int]:
    """Buffers of outputs whose size no input shape gives: they get blocks of their own,
    unless they are small."""
    fused = planned.fused
    return {
        buffer
        for buffer, spec in enumerate(fused.buffers)
        if spec.kind == "output"
        and planned.output_shape(spec.index) is None
        and not all(out.is_bound(dim) for dim in fused.outputs[spec.index].shape)
    }


def written_by(steps: Sequence[Step]) -> set[int]:
    """Buffers that the kernels and copies of some steps write."""
    inside = list(all_steps(steps))
    launches = [step for step in inside if isinstance(step, Launch)]
    results = {result.buffer for launch in launches for result in launch.results}
    return results | {step.result for step in inside if isinstance(step, Copy)}


def finish_outputs(
    out: Assembler, planned: PlannedSizes, steps: Sequence[Step], others: Collection[int]
) -> None:
    """Tell the sizes and addresses of the outputs that ``steps`` decide; ``others``: buffers of the
    other way to run."""
    fused, read = planned.fused, symbols_set(steps)
    for buffer, spec in enumerate(fused.buffers):
        if spec.kind != "output" or buffer in others:
            continue
        shape = fused.outputs[spec.index].shape
        if any(name in read for dim in shape for name in symbols_of(dim)):
            for axis, dim in enumerate(shape):
                out.emit("output_dim", spec.index, axis, out.dim(dim))
            if planned.output_shape(spec.index) is None:
                size_bytes = out.dim(buffer_bytes(fused, buffer))
                out.emit("output_buffer", spec.index, buffer, size_bytes)
