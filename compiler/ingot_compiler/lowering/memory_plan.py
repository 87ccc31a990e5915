"""Stage 8: where every workspace buffer lies.

In: placements. Out: ``MemoryPlan``. Not done here: planning (``plan_memory``).
"""

from __future__ import annotations

from dataclasses import dataclass

from ingot_compiler.ir.dims import Dim, dim_mul
from ingot_compiler.ir.types import dtype_size_bytes
from ingot_compiler.lowering.fused import FusedGraph

ALIGNMENT_BYTES = 64


@dataclass(frozen=True, slots=True)
class Placement:
    """One buffer's place. ``offset_bytes`` is set when every size is fixed; else the buffer starts at the highest end
    of ``after`` (0 if empty). ``late``: its size is only known after a ``SymbolRead``; it gets a block of its own."""

    buffer: int
    size_bytes: Dim
    first: int
    last: int
    offset_bytes: int | None
    after: tuple[int, ...] = ()
    late: bool = False


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """All placements, each behind those of its ``after``; ``pool_bytes`` and ``lower_bound_bytes`` are those of typical sizes when symbolic."""

    placements: tuple[Placement, ...]
    pool_bytes: int
    lower_bound_bytes: int
    planner: str


def buffer_bytes(fused: FusedGraph, buffer: int) -> Dim:
    """Bytes of a buffer."""
    spec = fused.buffers[buffer]
    return dim_mul(spec.element_count, dtype_size_bytes(spec.dtype))
