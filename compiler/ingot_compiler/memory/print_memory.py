"""Text form of a memory plan: pools, and where each buffer lies and which steps it lives for;
``parse_memory`` reads it back.

In: a ``MemoryPlan``. Out: text that ends with a newline. Not done here: planning (``plan_memory``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import format_dim
from ingot_compiler.memory.memory_plan import BufferPlacement, MemoryPlan, PoolPlan


def print_memory(plan: MemoryPlan) -> str:
    """One pool or buffer a line."""
    lines = [f"planner {plan.planner}", *map(_pool, plan.pools), *map(_placement, plan.placements)]
    return "".join(f"{line}\n" for line in lines)


def _pool(pool: PoolPlan) -> str:
    fixed = ", fixed" if pool.is_fixed else ""
    name = f" {pool.name}" if pool.name else ""
    sizes = f"{pool.size_bytes} bytes, at least {pool.lower_bound_bytes}{fixed}"
    return f"device {pool.device}{name}: {sizes}"


def _placement(item: BufferPlacement) -> str:
    device = f" on device {item.device}" if item.device else ""
    size = f"{format_dim(item.size_bytes)} bytes, steps {item.first} to {item.last}"
    return f"buffer b{item.buffer}{device}: {size}, {_place(item)}"


def _place(item: BufferPlacement) -> str:
    if item.is_data_dependent:
        return "a block of its own"
    if item.offset_bytes is not None:
        return f"at {item.offset_bytes}"
    return f"above {', '.join(f'b{buffer}' for buffer in item.after) or 'nothing'}"
