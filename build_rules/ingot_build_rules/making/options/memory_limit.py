"""``max_bytes``: what one compilation may expand, fold and plan.

In: what the stages found, in bytes. Out: nothing, or ``LimitError``. Not done here: finding it. A
limit refuses and changes no result, so it is part of no key; it is compared with what comes from
the cache, too, and the answer is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_compiler.ir.errors import LimitError
from ingot_compiler.ir.message import Text, message, nodes_text
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

if TYPE_CHECKING:
    from ingot_compiler.lowering.groups.fused import FusedGraph, Launch
    from ingot_compiler.memory.memory_plan import MemoryPlan

_DO = message("allow more by ", OptionRef("max-bytes"), ", or make the model smaller")


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """``max_bytes`` None allows anything."""

    max_bytes: int | None = None

    def check(self, size_bytes: int, what: str, where: Text) -> None:
        """Raise LimitError for more bytes than are allowed."""
        if self.max_bytes is not None and size_bytes > self.max_bytes:
            why = f"expected at most {self.max_bytes} bytes, got {size_bytes}"
            raise LimitError(f"{what} needs more memory than it may", where, why, _DO)

    def check_plan(self, plan: MemoryPlan, fused: FusedGraph, target: str) -> None:
        """Raise LimitError for a workspace whose fixed part is too large; names the nodes that
        write most of it."""
        sizes = [
            (place.offset_bytes or 0, place.size_bytes, place.buffer)
            for place in plan.placements
            if isinstance(place.size_bytes, int)
        ]
        end_bytes = max((offset + size for offset, size, _ in sizes), default=0)
        if self.max_bytes is not None and end_bytes > self.max_bytes:
            _, largest = max((size, -buffer) for _, size, buffer in sizes)
            where = _writers(fused, -largest) or f"target {target}"
            self.check(end_bytes, f"the workspace of {target}", where)


def _writers(fused: FusedGraph, buffer: int) -> Text:
    """The nodes that write a buffer."""
    from ingot_compiler.lowering.groups.fused import launches_of

    groups = [launch.group for launch in launches_of(fused) if buffer in _written(launch)]
    return nodes_text([ordinal for group in groups[:1] for ordinal in group.source])


def _written(launch: Launch) -> set[int]:
    """The buffers of a launch but for what its group reads."""
    return set(launch.buffers) - {operand.buffer for operand in launch.group.operands}
