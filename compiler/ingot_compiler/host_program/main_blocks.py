"""Blocks whose sizes only the data decide: small ones lie one behind the other in the workspace.

In: a buffer of the host, the register of its size. Out: instructions that give it a place there, or
ask the loader for a block where no space is left: a loader in Python needs microseconds for one.
Not done here: blocks in loops, which are used again by the next round (``main_steps``).
"""

from __future__ import annotations

from collections.abc import Iterable

from ingot_compiler.host_program.main_assembler import Assembler
from ingot_compiler.memory.memory_plan import BufferPlacement
from ingot_runtime.lazy_dataclass import dataclass

BLOCK_SPACE_BYTES = 1 << 13
"""For all of them together: calls of small models may be limited to little memory (`max_bytes`)."""


@dataclass(frozen=True, slots=True)
class BlockSpace:
    """Registers with bytes: where the next block begins in the workspace, and the end of the
    space."""

    next_at: int
    end: int


def block_space(
    out: Assembler, placements: Iterable[BufferPlacement], start: int
) -> BlockSpace | None:
    """Return the space that begins at register ``start``, behind the buffers of the workspace; None
    where no size depends on data."""
    if not any(placement.is_data_dependent for placement in placements):
        return None
    next_at = out.binary("add", start, out.dim(0))
    return BlockSpace(next_at, out.binary("add", start, out.dim(BLOCK_SPACE_BYTES)))


def emit_block(out: Assembler, space: BlockSpace | None, buffer: int, size: int) -> None:
    """Let a buffer of ``size`` bytes, a register, have a block until ``main`` returns."""
    if space is None:
        out.emit("buffer_grow", buffer, 0, size)
        return
    small, large, behind = out.label(), out.label(), out.label()
    # A negative size is refused as a large one is.
    end = out.binary("add", space.next_at, out.rounded(size))
    inside = out.binary("le", end, space.end)
    fits = out.binary("mul", inside, out.binary("le", out.dim(0), size))
    out.emit("branch", fits, small, large)
    out.place(small)
    out.emit("buffer_workspace", buffer, 0, space.next_at, size)
    out.emit("add", space.next_at, end, out.dim(0))
    out.emit("jump", behind)
    out.place(large)
    out.emit("buffer_grow", buffer, 0, size)
    out.place(behind)
