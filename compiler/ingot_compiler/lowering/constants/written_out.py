"""Values that are computed from almost nothing, such as a triangle of ones, and that are written to
an output, or to a buffer into which other values are scattered.

In: a graph, the values that could be constants. Out: those that a kernel computes into the output
in less time than it copies them there, for a copy reads as much as it writes. Not done here: what
could be a constant (``constant_expression``).
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.types import FLOATS
from ingot_compiler.lowering.constants.constant_arithmetic import COMPARISONS
from ingot_runtime.lazy_dataclass import dataclass

_LEAST_BYTES = 1 << 15  # below it, a call takes longer than the copy
_SHARE = 8  # of a value's elements: what has no more is read
_OPS_MAX = 8
_MOVES = frozenset(("broadcast_to", "select"))
_SCATTERS = ("scatter_elements", "scatter_nd")
_PLAIN = _MOVES | COMPARISONS.keys() | {"add", "cast"}


@dataclass(frozen=True, slots=True)
class _Values:
    graph: Graph
    users: dict[int, list[int]]
    makers: dict[int, int]

    def count(self, value: int) -> int:
        """Elements of a value that could be a constant."""
        count = self.graph.types[value].element_count
        assert isinstance(count, int)
        return count

    def computed(self, value: int, ops_max: int) -> frozenset[int]:
        """A value that is computed when it is written, and what is computed for it; nothing where
        some of that is read elsewhere, or takes more than to move, compare and add integers."""
        node = self.graph.nodes[self.makers[value]]
        if not ops_max or not self._is_plain(node):
            return frozenset()
        found = frozenset((value,))
        for operand in sorted({*node.operands}):
            if self.count(operand) * _SHARE <= self.count(value):
                continue
            own = self.computed(operand, ops_max - 1)
            if not own or len(self.users[operand]) > 1 or operand in self.graph.outputs:
                return frozenset()
            found |= own
        return found

    def _is_plain(self, node: Node) -> bool:
        floats = any(self.graph.types[operand].dtype in FLOATS for operand in node.operands)
        return node.op in (_MOVES if floats else _PLAIN)


def written_out(graph: Graph, folded: AbstractSet[int]) -> frozenset[int]:
    """Outputs and operands of scatters of 32 KiB and more that nothing else reads, and what only
    they need that is nearly as large. They have the same bits wherever they are computed."""
    scattered = [node.operands[0] for node in graph.nodes if node.op in _SCATTERS]
    copied = [*graph.outputs, *scattered]
    large = [value for value in copied if value in folded and _is_large(graph, value)]
    if not large:
        return frozenset()
    values = _Values(graph, graph.users(), graph.producers())
    alone = (
        value
        for value in large
        if len(values.users.get(value, ())) + graph.outputs.count(value) == 1
    )
    return frozenset[int]().union(*(values.computed(value, _OPS_MAX) for value in alone))


def _is_large(graph: Graph, value: int) -> bool:
    size_bytes = graph.types[value].size_bytes
    return isinstance(size_bytes, int) and size_bytes >= _LEAST_BYTES
