"""The part of ``main`` before ``begin``: from the sizes of the inputs to the memory that the caller
must provide.

In: the fused graph, the loop programs, the memory plan. Out: instructions that tell workspace,
scratch and output sizes, and registers that say where buffers lie. Not done here: sizes that only
the data decide (``main_outputs``); the same totals as numbers (``workspace_bytes``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ingot_compiler.host_program.main_assembler import TOO_LARGE, Assembler
from ingot_compiler.host_program.main_blocks import BlockSpace, block_space
from ingot_compiler.host_program.main_messages import cut
from ingot_compiler.host_program.workspace_bytes import scratch_sizes
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.errors import UnsupportedError
from ingot_compiler.ir.message import Text, message, nodes_text
from ingot_compiler.ir.sizes.symbol_terms import bare_symbol
from ingot_compiler.lowering.groups.fused import FusedGraph, launches_of
from ingot_compiler.lowering.groups.versions import Version
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.memory.memory_plan import ALIGNMENT_BYTES, BufferPlacement, MemoryPlan
from ingot_compiler.memory.planned_bytes import PlannedSizes
from ingot_runtime.format.limits import SIZE_BYTES_MAX
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class WorkspaceRegisters:
    """Registers with bytes. ``offsets``: where a buffer begins in the workspace of its device, or
    in the pool that ``homes`` names; ``scratch``: for each device beside the host, in order, offset
    and size of its scratch, which lies behind its buffers; ``blocks``: the space in the host's for
    those whose sizes only the data decide."""

    offsets: Mapping[int, int]
    scratch: Mapping[int, tuple[int, int]]
    homes: Mapping[int, int]
    blocks: BlockSpace | None


def bind_inputs(out: Assembler, fused: FusedGraph) -> None:
    """Registers for the symbols; every other dimension is checked once all symbols are known."""
    checks: list[tuple[int, Dim, Text]] = []
    for index, tensor_type in enumerate(fused.inputs):
        for axis, dim in enumerate(tensor_type.shape):
            register = out.register()
            out.emit("input_dim", register, index, axis)
            name = bare_symbol(dim)
            if name is not None and name not in out.symbols:
                out.bind(name, register)
            else:
                checks.append(
                    (register, dim, cut(message(f"input {index}, axis {axis}: expected ", dim)))
                )
    for register, dim, what in checks:
        out.require(out.binary("eq", register, out.dim(dim)), what)


def tell_workspace(
    out: Assembler,
    fused: FusedGraph,
    version: Version,
    programs: Sequence[LoopProgram],
    plan: MemoryPlan,
) -> WorkspaceRegisters:
    """Compute the totals that the caller must provide for one version of the model.

    Raises:
        UnsupportedError: the scratch of a kernel has a size that the model computes.
    """
    offsets: dict[int, int] = {}
    behind: dict[int, tuple[int, int]] = {}
    homes: dict[int, int] = {}
    blocks: BlockSpace | None = None
    used = version.buffers()
    for device in (0, *_other_devices(fused, plan)):
        placements = [item for item in plan.of(device) if item.buffer in used]
        total = _place_buffers(out, placements, offsets)
        if device in plan.named:
            homes |= dict.fromkeys([item.buffer for item in placements], device)
            out.emit("workspace_bytes", device, total)
            continue
        scratch = _scratch(out, scratch_sizes(version.steps, programs, device), device)
        if device:
            behind[device] = total, scratch
            out.emit("workspace_bytes", device, out.binary("add", total, scratch))
        else:
            blocks = block_space(out, placements, total)
            out.emit("workspace_bytes", 0, blocks.end if blocks else total)
            out.emit("scratch_bytes", scratch)
    return WorkspaceRegisters(offsets, behind, homes, blocks)


def tell_outputs(out: Assembler, planned: PlannedSizes) -> None:
    """Compute the sizes of outputs as far as they are known, or bounded."""
    for index, tensor_type in enumerate(planned.fused.outputs):
        shape = planned.output_shape(index) or tensor_type.shape
        for axis, dim in enumerate(shape):
            out.emit("output_dim", index, axis, out.dim(dim if out.is_bound(dim) else -1))


def _other_devices(fused: FusedGraph, plan: MemoryPlan) -> list[int]:
    """The devices beside the host that run something, or only hold it: a value that is copied
    there, seen in another shape, and copied back."""
    running = {launch.group.device for launch in launches_of(fused)}
    return sorted((running | {pool.device for pool in plan.pools}) - {0})


def _scratch(out: Assembler, sizes: Mapping[Dim, Sequence[int]], device: int) -> int:
    """The scratch of a device that is enough for each kernel; ``sizes``: of each, and the nodes
    that need it."""
    data_dependent = [
        ordinal for size, source in sizes.items() if not out.is_bound(size) for ordinal in source
    ]
    if data_dependent:
        raise UnsupportedError(
            "attention over a number of keys that the model computes",
            where=nodes_text(data_dependent),
            why="its scratch memory is needed before that number is known",
            do="give the number of keys by the shape of an input",
        )
    # Beside the host there is always some: what is of no size, scratch or a buffer, must not lie at
    # the very end of the pool.
    least = [out.dim(ALIGNMENT_BYTES)] if device else []
    return out.rounded(_largest(out, [*least, *(out.dim(size) for size in sizes if size != 0)]))


def _place_buffers(
    out: Assembler, placements: Iterable[BufferPlacement], offsets: dict[int, int]
) -> int:
    """Note the offsets of the buffers of one device; the size of its workspace."""
    ends: dict[int, int] = {}
    for placement in placements:
        if not placement.is_data_dependent:
            _place(out, placement, offsets, ends)
    return _largest(out, list(ends.values()))


def _place(
    out: Assembler, placement: BufferPlacement, offsets: dict[int, int], ends: dict[int, int]
) -> None:
    buffer = placement.buffer
    if placement.offset_bytes is not None:
        assert isinstance(placement.size_bytes, int)
        offsets[buffer] = out.dim(placement.offset_bytes)
        ends[buffer] = out.dim(
            -(-(placement.offset_bytes + placement.size_bytes) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        )
        return
    offsets[buffer] = _largest(out, [ends[other] for other in placement.after])
    size = out.dim(placement.size_bytes)
    out.require(out.binary("le", size, out.dim(SIZE_BYTES_MAX)), TOO_LARGE)
    ends[buffer] = out.rounded(out.binary("add", offsets[buffer], size))


def _largest(out: Assembler, registers: list[int]) -> int:
    total = out.dim(0)
    for register in dict.fromkeys(registers):
        total = register if total == out.dim(0) else out.binary("max", total, register)
    return total
