"""Pass: what a caller keeps from call to call becomes ``append``, so that no later pass loses it.

In: a graph, before it is specialised. Out: the same graph, in which ``concat(input, new)`` that is
an output is ``append(input, new)``. Not done here: where the two lie (``lowering.groups.states``).

Caches of decoders: ``present = concat(past, new)`` along one axis, the length of the past a size of
its own; or only the first rows of the past, where ``new`` alone reads the others: it has theirs at
the same places, or others. Names are not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ingot_compiler.ir.dims import Dim, symbols_of
from ingot_compiler.ir.graph import Graph, Node
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.sizes.symbol_terms import bare_symbol
from ingot_compiler.ir.traits import Trait
from ingot_runtime.lazy_dataclass import dataclass

_OPERAND_COUNT = 2
_READERS_MAX = 16


def hold_state(graph: Graph) -> Graph:
    """Mark each pair of an input and an output of which one call's output is the next one's
    input."""
    return replace(graph, nodes=_Marks.of(graph).nodes())


@dataclass(frozen=True, slots=True)
class _Marks:
    graph: Graph
    makers: dict[int, Node]
    readers: dict[int, list[Node]]

    @classmethod
    def of(cls, graph: Graph) -> _Marks:
        """Know who makes and reads each value."""
        makers = graph.makers()
        readers: dict[int, list[Node]] = {}
        for node in graph.nodes:
            for operand in dict.fromkeys(node.operands):
                readers.setdefault(operand, []).append(node)
        return cls(graph, makers, readers)

    def nodes(self) -> tuple[Node, ...]:
        """All nodes, those of states marked."""
        outputs, taken = Counter(self.graph.outputs), set[int]()

        def marked(node: Node) -> Node:
            past = self._past(node)
            if past is None or past in taken or outputs[node.results[0]] != 1:
                return node
            taken.add(past)
            return replace(node, op="append")

        return tuple(map(marked, self.graph.nodes))

    def _past(self, node: Node) -> int | None:
        """The input that a node puts something behind, or behind its first rows."""
        if node.op != "concat" or len(node.operands) != _OPERAND_COUNT:
            return None
        first, axis = node.operands[0], node.integer("axis")
        cut = self.makers.get(first)
        if cut is not None:
            if not _keeps_first_rows(cut, axis, self.graph) or not self._is_read_for(cut, node):
                return None
            (first,) = cut.operands
        if first not in self.graph.inputs or not self._grows(first, node):
            return None
        return first

    def _grows(self, past: int, node: Node) -> bool:
        """Whether the length of a tensor along the axis is open, nothing else of it grows, and the
        inputs' sizes tell the new length."""
        axis = node.integer("axis")
        shape, result = self.graph.types[past].shape, self.graph.types[node.results[0]].shape
        length, beside = shape[axis], _beside(shape, axis)
        open_length = bare_symbol(length) is not None and length not in beside
        given = {
            name
            for value in self.graph.inputs
            for dim in self.graph.types[value].shape
            for name in symbols_of(dim)
        }
        known = given.issuperset(symbols_of(result[axis]))
        return known and open_length and _beside(result, axis) == beside

    def _is_read_for(self, cut: Node, node: Node) -> bool:
        """Whether nothing but ``node`` needs what is cut from, and each element of it is read no
        later than its place is written: at the place where the result has it."""
        waiting = list[int]()
        for reader in self.readers[cut.operands[0]]:
            if reader is not cut:
                if not _begins_behind(reader, cut, node.integer("axis")):
                    return False
                waiting += reader.results
        return all(self._leads_to(value, node) for value in waiting)

    def _leads_to(self, value: int, node: Node) -> bool:
        """Whether a value is read by ``node`` alone, directly or through ops that keep places."""
        seen = [value]
        for found in seen:
            if found in self.graph.outputs or len(seen) > _READERS_MAX:
                return False
            for reader in self.readers.get(found, []):
                if reader is not node and not _keeps_places(reader):
                    return False
                seen += [] if reader is node else reader.results
        return True


def _begins_behind(node: Node, cut: Node, axis: int) -> bool:
    """Whether a node is a slice that begins where another one ends."""
    if node.op != "slice" or set(node.ints("steps")) != {1}:
        return False
    starts = node.dims("starts")
    return starts[axis] == cut.dims("sizes")[axis] and set(_beside(starts, axis)) <= {0}


def _keeps_places(node: Node) -> bool:
    if node.op == "pad":
        return set(node.dims("before")) == {0} and node.text("mode") == "constant"
    return bool(OPS_BY_NAME[node.op].traits & Trait.ELEMENTWISE)


def _keeps_first_rows(node: Node, axis: int, graph: Graph) -> bool:
    if node.op != "slice" or node.operands[0] not in graph.inputs:
        return False
    same = _beside(node.dims("sizes"), axis) == _beside(graph.types[node.operands[0]].shape, axis)
    return same and set(node.dims("starts")) == {0} and set(node.ints("steps")) == {1}


def _beside(shape: Sequence[Dim], axis: int) -> tuple[Dim, ...]:
    return (*shape[:axis], *shape[axis + 1 :])
