"""Stage 8: where every workspace buffer lies.

In: placements. Out: ``MemoryPlan``. Not done here: planning (``plan_memory``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_mul
from ingot_compiler.ir.types import dtype_size_bytes
from ingot_compiler.lowering.groups.fused import FusedGraph
from ingot_runtime.lazy_dataclass import dataclass

ALIGNMENT_BYTES = 64


@dataclass(frozen=True, slots=True)
class BufferPlacement:
    """One buffer's place. ``offset_bytes`` is set when every size is fixed; else the buffer starts
    at the highest end of ``after`` (0 if empty). ``is_data_dependent``: its size is only known
    after a ``SymbolRead``; it gets a block of its own."""

    buffer: int
    size_bytes: Dim
    first: int
    last: int
    offset_bytes: int | None
    after: tuple[int, ...] = ()
    is_data_dependent: bool = False
    device: int = 0


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """The workspace of one device; ``size_bytes`` and ``lower_bound_bytes`` are those of typical
    sizes when symbolic. ``name``: of a pool of the user's, which is memory of the host with a
    number behind those of the devices; "" for a device's own."""

    device: int
    size_bytes: int
    lower_bound_bytes: int
    is_fixed: bool
    name: str = ""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """One pool per device that has buffers, the host's always, and those of the user; all
    placements, each behind those of its ``after``."""

    placements: tuple[BufferPlacement, ...]
    pools: tuple[PoolPlan, ...]
    planner: str

    def of(self, device: int) -> tuple[BufferPlacement, ...]:
        """The placements in one device's workspace."""
        return tuple(placement for placement in self.placements if placement.device == device)

    @property
    def named(self) -> frozenset[int]:
        """The numbers of the user's pools."""
        return frozenset(pool.device for pool in self.pools if pool.name)


def buffer_bytes(fused: FusedGraph, buffer: int) -> Dim:
    """Bytes of a buffer."""
    spec = fused.buffers[buffer]
    return dim_mul(spec.element_count, dtype_size_bytes(spec.dtype))
