"""Pass: caches of fixed length that a session may keep in place, from call to call.

In: a graph, before it is specialised. Out: the same graph, in which each ``write_rows`` of an input
whose result is an output says so. Not done here: caches that grow (``hold_state``), where the two lie
(``lowering.groups.states``).

What a call has written stays written, so nothing may refuse the call afterwards: every
requirement is asked for again where the places of the rows are computed, before the first row is
written. Where one depends on a cache that was written, or a size is read from data, no cache is
kept, unless writing it is the last that a call does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import symbols_of
from ingot_compiler.ir.graph import Graph, Node, captured, make_attributes
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.renumber import first_free_id
from ingot_compiler.ir.types import TensorType
from ingot_compiler.passes.eliminate_dead_code import eliminate_dead_code
from ingot_compiler.passes.hold_whole import replaces_all
from ingot_compiler.passes.rows_of_scatter import SCATTERS, rows_of_scatter

_WRITES = ("write_rows", *SCATTERS)
_REFUSES = ("require", "read_dim")


def hold_rows(graph: Graph) -> Graph:
    """Mark what may be kept, and let all checks come before what writes it."""
    if not any(node.op in _WRITES for node in graph.nodes):
        return graph
    graph = rows_of_scatter(eliminate_dead_code(graph))
    held = frozenset(_held(graph))
    if not held:
        return graph
    behind = _behind(graph, held)
    late = [node for node in graph.nodes if node.results and node.results[0] in behind]
    if any(node.op in _REFUSES for node in late):
        return graph
    if any(map(_reads_sizes, graph.nodes)) and not _ends_with(graph, late, held):
        return graph
    return _Held(graph, held, behind).graph_with_checks()


def _held(graph: Graph) -> Iterator[int]:
    """Results of ``write_rows`` of an input that nothing else reads, or whose rows are all new and
    computed by what reads it; they are one output."""
    users, outputs, makers = graph.users(), Counter(graph.outputs), graph.makers()
    for index, node in enumerate(graph.nodes):
        if node.op != "write_rows":
            continue
        past, *others = node.operands
        readers = [graph.nodes[user] for user in users[past] if user != index]
        alone = past not in (*others, *graph.outputs)
        if readers:
            is_whole = replaces_all(graph, node, makers.get(others[0]), readers[0], users)
            alone = alone and len(readers) == 1 and is_whole
        if past in graph.inputs and alone and outputs[node.results[0]] == 1:
            yield node.results[0]


def _behind(graph: Graph, held: frozenset[int]) -> set[int]:
    """Values that need a cache which was written, the caches among them."""
    found = set(held)
    for node in graph.nodes:
        if not found.isdisjoint((*node.operands, *captured(node))):
            found.update(node.results)
    return found


def _ends_with(graph: Graph, late: Sequence[Node], held: frozenset[int]) -> bool:
    """Whether writing caches is the last that a call does: all sizes were read by then, and those of
    the outputs are no sizes that data decide."""
    read = {node.text("symbol") for node in graph.nodes if node.op == "read_dim"}
    sizes = {
        name
        for output in graph.outputs
        for size in graph.types[output].shape
        for name in symbols_of(size)
    }
    return len(late) == len(held) and read.isdisjoint(sizes)


def _reads_sizes(node: Node) -> bool:
    """Whether what a node computes, or one inside it, decides on sizes; or refuses a call, inside."""
    inside = [inner for region in node.regions for inner in region.nodes]
    return node.op == "read_dim" or any(
        inner.op in _REFUSES or _reads_sizes(inner) for inner in inside
    )


class _Held:
    """A graph whose nodes are put into another order, with some added."""

    def __init__(self, graph: Graph, held: frozenset[int], behind: set[int]) -> None:
        self._graph = graph
        self._held = held
        self._early = [node for node in graph.nodes if behind.isdisjoint(node.results)]
        self._late = [node for node in graph.nodes if not behind.isdisjoint(node.results)]
        self._types = list(graph.types)
        self._types += [TensorType("bool", ())] * (first_free_id(graph) - len(graph.types))
        self._added: list[Node] = []

    def graph_with_checks(self) -> Graph:
        """The graph with checks before everything that writes, or reads what was written."""
        writes = [node for node in self._late if node.results[0] in self._held]
        places = dict.fromkeys(node.operands[1] for node in writes)
        checked = {place: self._checked(place) for place in places}

        def held(node: Node) -> Node:
            if node.results[0] not in self._held:
                return node
            past, place, rows = node.operands
            table = (("axis", node.integer("axis")), ("held", True))
            return replace(node, operands=(past, checked[place], rows), attributes=table)

        nodes = (*self._early_and_checks(), *map(held, self._late))
        changed = replace(self._graph, nodes=nodes, types=tuple(self._types))
        return eliminate_dead_code(changed)  # whose ids ascend again

    def _early_and_checks(self) -> Iterator[Node]:
        """Each check as soon as what it needs is there: before what may then be computed where it
        is kept."""
        place = {result: at for at, node in enumerate(self._early) for result in node.results}
        behind: dict[int, list[Node]] = {}
        for node in self._added:
            at = max(place.get(operand, -1) for operand in node.operands)
            place[node.results[0]] = at
            behind.setdefault(at, []).append(node)
        yield from behind.get(-1, ())
        for at, node in enumerate(self._early):
            yield from (node, *behind.get(at, ()))

    def _checked(self, places: int) -> int:
        """Places behind all that may refuse the call, but for what they are computed by."""
        known = self._needed_for(places)
        for node in self._early:
            if node.op == "require" and node.results[0] not in known:
                condition = self._all(node.operands[1], node)
                what = dict(node.attributes)
                places = self._add(replace(node, operands=(places, condition)), what)
        return places

    def _needed_for(self, value: int) -> set[int]:
        needed = {value}
        for node in reversed(self._early):
            if not needed.isdisjoint(node.results):
                needed.update((*node.operands, *captured(node)))
        return needed

    def _all(self, condition: int, node: Node) -> int:
        """Whether a condition holds everywhere."""
        rank = self._types[condition].rank
        if not rank:
            return condition
        axes = tuple(range(rank))
        table: dict[str, Attribute] = {"axes": axes, "function": "min", "keepdims": False}
        return self._add(
            Node("reduce", (condition,), (), source=node.source, mark=node.mark), table
        )

    def _add(self, node: Node, table: Mapping[str, Attribute]) -> int:
        """The result of a node of one result."""
        operands = [self._types[value] for value in node.operands]
        result = len(self._types)
        self._types += OPS_BY_NAME[node.op].infer(operands, table).results
        self._added.append(replace(node, results=(result,), attributes=make_attributes(table)))
        return result
