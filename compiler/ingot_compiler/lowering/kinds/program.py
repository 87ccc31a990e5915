"""The common frame of the loops of every kind.

In: buffers, body, extent. Out: a ``LoopProgram`` whose scalars are the symbols it uses. Not done
here: loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.dims import Dim, dim_floordiv, symbols_of
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.loops.nested import free_symbols
from ingot_compiler.lowering.loops.program import LoopProgram, Statement

INDEX = "p"
UNIT_WORK = 16384  # elementary operations that are worth waking a thread for: some microseconds


def finish_program(
    buffers: GroupBuffers,
    body: Sequence[Statement],
    extent: Dim,
    grain: int,
    scratch_bytes: Dim = 0,
) -> LoopProgram:
    """Build the program; every symbol that no loop binds becomes a scalar argument."""
    statements = tuple(body)
    free = {*symbols_of(extent), *symbols_of(scratch_bytes), *free_symbols(statements)}
    scalars = tuple(sorted(free - {INDEX}))
    return LoopProgram(
        tuple(buffers.buffers), scalars, INDEX, extent, grain, statements, scratch_bytes
    )


def grain_for(work_per_unit: Dim) -> int:
    """Units per thread that make waking it worth while."""
    size = dim_floordiv(UNIT_WORK, max(1, typical(work_per_unit)))
    assert isinstance(size, int)
    return max(1, size)
