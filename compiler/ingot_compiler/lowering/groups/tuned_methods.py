"""Methods of layers that were measured on a machine, which replace the choice of the cost model.

In: nothing. Out: ``TunedMethods``. Not done here: measuring, files (``ingot tune``), what a method
is (``backends``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_compiler.ir.graph import Node
from ingot_runtime.lazy_dataclass import dataclass

ALL = -1
"""In the place of a node: every layer that may run by a method does, for a comparison."""
Pairs = Sequence[tuple[int, str]]
"""Nodes of the model by number, and the methods of the layers that they become."""


@dataclass(frozen=True, slots=True)
class TunedMethods:
    """``by_node``: the method of each imported node that has one."""

    by_node: Mapping[int, str]

    def of(self, node: Node) -> str | None:
        """Return the method that is asked for; it must be possible."""
        found = (self.by_node[source] for source in node.source if source in self.by_node)
        return next(found, None)

    @property
    def of_all(self) -> str | None:
        """Return the method of every layer that may run by it."""
        return self.by_node.get(ALL)
