"""A value that no kernel has computed yet: the operations that will compute it, and what they read.

In: nothing. Out: ``Deferred``, ``Leaf``. Not done here: which trees may be joined (``grouping``),
the kernel (``make_group``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.lowering.fusion.storage import Stored
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.kinds.kind import Kind
from ingot_compiler.lowering.kinds.pointwise import POINTWISE
from ingot_runtime.lazy_dataclass import dataclass

Leaf = tuple[int, Stored]
"""A value that a kernel reads, and where it lies."""
Anchored = tuple[Kind, int, Method | None]
"""What decides the loops of a tree: kind, node, method."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """A tree of operations over stored leaves: ``nodes`` by index, at most one of them, ``anchor``,
    with loops of its own. ``method``: that of its kernel, where its kind has several."""

    nodes: tuple[int, ...]
    leaves: tuple[Leaf, ...]
    kind: Kind = POINTWISE
    anchor: int = -1
    method: Method | None = None

    @property
    def anchored(self) -> bool:
        """Whether the loops are decided by an anchor."""
        return self.anchor >= 0


def join(
    node: int,
    parts: Sequence[Deferred],
    leaves: Sequence[Leaf],
    anchor: Anchored | None = None,
) -> Deferred:
    """The tree of a node over the trees of some operands and the leaves of the others; each leaf
    once.

    ``anchor``: kind, index and method of the node's own loops; without it the loops are those of
    the one part that has any.
    """
    nodes = {node, *(item for part in parts for item in part.nodes)}
    all_leaves = dict([leaf for part in parts for leaf in part.leaves] + list(leaves))
    plain: Anchored = POINTWISE, -1, None
    inner = next(((part.kind, part.anchor, part.method) for part in parts if part.anchored), plain)
    return Deferred(tuple(sorted(nodes)), tuple(all_leaves.items()), *(anchor or inner))
