"""The walk that every pass shares: visit nodes in order, replace values, add nodes, drop what
nobody needs.

In: a graph and a rule per node. Out: a new graph with dense ids. Not done here: any particular
rewrite (the passes).

Values keep their old ids while a rule runs and new values get ids above them; ``finish`` makes ids
dense again. A replacement that would change a value's type or its placement mark is refused: the
node then stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Protocol

import numpy as np

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.errors import LimitError
from ingot_compiler.ir.graph import Graph, Node, captured, make_attributes
from ingot_compiler.ir.op_names import OpName
from ingot_compiler.ir.ops import OPS_BY_NAME
from ingot_compiler.ir.refusal import Refusal
from ingot_compiler.ir.renumber import compact, first_free_id, with_operands
from ingot_compiler.ir.shape_constraints import Shape
from ingot_compiler.ir.traits import Trait
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.used_symbols import attribute_symbols
from ingot_runtime.lazy_dataclass import dataclass

RewriteRule = Callable[["Rewriter", Node], Sequence[int] | None]
"""(state, node with current operands) -> the values that stand for its results, or None to keep the
node."""


class RootOps(Protocol):
    """The ops to which a rule applies."""

    def __contains__(self, op: OpName, /) -> bool:
        """Whether it is."""
        ...


_GRAPH_OUTPUT = -1  # the "user" of a value that the graph returns
Operand = int | float
"""A value's id, or a number that becomes a literal."""


@dataclass(frozen=True, slots=True)
class Interior:
    """The nodes between a root and some leaves: all may be replaced together."""

    nodes: tuple[Node, ...]

    @property
    def source(self) -> tuple[int, ...]:
        """The union of the nodes' source ordinals."""
        return union(node.source for node in self.nodes)


class Rewriter:
    """The graph being rebuilt; rules read producers and types through it and add nodes by
    ``emit``."""

    def __init__(self, graph: Graph) -> None:
        self.types: list[TensorType] = list(graph.types)
        # New ids stay clear of the ids inside regions, which continue after those that the region
        # sees.
        self.types += [TensorType("bool", ())] * (first_free_id(graph) - len(graph.types))
        self.inputs = graph.inputs
        self.nodes: list[Node] = []
        self.mark = ""
        self.refusals: list[Refusal] = []
        self._graph = graph
        self._producer: dict[int, Node] = graph.makers()
        self._merged: dict[int, set[int]] = {}
        self._inferred: dict[tuple[OpName, tuple[TensorType, ...]], Sequence[TensorType]] = {}
        self._replaced: dict[int, int] = {}
        self._constant: set[int] = set()
        self.numbers: dict[int, float | None] = {}  # literals -> what ``match.scalar`` says of them
        self._literals: dict[tuple[str, str, str, tuple[int, ...]], int] = {}
        self._judged_count = 0  # of the nodes, how many ``_constant`` knows
        self._known_users: dict[int, set[int]] = {value: {_GRAPH_OUTPUT} for value in graph.outputs}
        # What happened since somebody asked who reads a value, which most passes never do.
        self._changes: list[Node | tuple[int, int]] = list(graph.nodes)

    def _users(self) -> dict[int, set[int]]:
        """Value -> the first results of the nodes that read it; of nodes that were replaced, too."""
        users = self._known_users
        for change in self._changes:
            if isinstance(change, tuple):
                old, new = change
                users.setdefault(new, set()).update(users.get(old, ()))
            elif change.results:
                for operand in (*change.operands, *(captured(change) if change.regions else ())):
                    users.setdefault(operand, set()).add(change.results[0])
        self._changes.clear()
        return users

    def type_of(self, value: int) -> TensorType:
        """The type of an old or new value."""
        return self.types[value]

    def shape_of(self, value: int) -> tuple[Dim, ...]:
        """The shape of an old or new value."""
        return self.types[value].shape

    def producer(self, value: int) -> Node | None:
        """The node that makes ``value``; None for an input."""
        return self._producer.get(value)

    def made_by(self, value: int, *ops: OpName) -> Node | None:
        """The node that makes ``value`` when it is one of ``ops`` and has the mark of the node
        being visited."""
        node = self._producer.get(value)
        if node is None or node.op not in ops:
            return None
        return node if node.mark == self.mark or _is_source(node) else None

    def is_constant(self, value: int) -> bool:
        """Whether ``value`` depends on constants and literals alone and has a fixed size."""
        for node in self.nodes[self._judged_count :]:
            if self._computes_constant(node):
                self._constant.update(node.results)
        self._judged_count = len(self.nodes)
        return value in self._constant

    def is_used_once(self, value: int) -> bool:
        """Whether one node alone reads ``value``, and the graph does not return it."""
        users = self._users().get(value, set())
        return len(users) == 1 and _GRAPH_OUTPUT not in users

    def emit(
        self,
        op: OpName,
        operands: Sequence[Operand],
        attributes: Mapping[str, Attribute] | None,
        source: Sequence[int],
    ) -> int:
        """Add a node with one result and the visited node's mark; OpTypeError when its rule refuses
        the operands.

        A float operand becomes a literal with the element type of the first operand that is a
        value.
        """
        dtype = next((self.types[item].dtype for item in operands if isinstance(item, int)), "f32")
        values = [
            self.literal(item, dtype, source) if isinstance(item, float) else item
            for item in operands
        ]
        table = dict(attributes or {})
        types = self._result_types(op, values, table)
        results = tuple(range(len(self.types), len(self.types) + len(types)))
        self.types += types
        spelled = make_attributes(table)
        node = Node(op, tuple(values), results, spelled, (), tuple(source), self.mark)
        self._producer[results[0]] = node
        self.nodes.append(node)
        self._changes.append(node)
        return results[0]

    def _result_types(
        self, op: OpName, operands: Sequence[int], attributes: Mapping[str, Attribute]
    ) -> Sequence[TensorType]:
        """What the op's rule says; asked once of an op without attributes and the same types."""
        given = tuple([self.types[value] for value in operands])
        if attributes:
            return OPS_BY_NAME[op].infer(given, attributes).results
        found = self._inferred.get((op, given))
        if found is None:
            found = self._inferred[op, given] = OPS_BY_NAME[op].infer(given, attributes).results
        return found

    def literal(self, value: Attribute, dtype: str, source: Sequence[int] = ()) -> int:
        """A rank-0 literal, added once; a float is rounded to ``dtype``, so that equal literals are
        spelled alike."""
        if dtype == "f32" and isinstance(value, float):
            value = float(np.float32(value))
        key = dtype, repr(value), self.mark, tuple(source)
        found = self._literals.get(key)
        if found is None:
            attributes: dict[str, Attribute] = {"dtype": dtype, "shape": (), "value": (value,)}
            found = self._literals[key] = self.emit("literal", (), attributes, source)
        return found

    def _computes_constant(self, node: Node) -> bool:
        if not self._constant.issuperset(node.operands):  # most nodes: the rest is asked of few
            return False
        if node.regions or node.op == "read_dim" or attribute_symbols(node.attributes):
            return False
        shapes = [self.types[result].shape for result in node.results]
        return all(isinstance(dim, int) for shape in shapes for dim in shape)

    def interior(self, root: Node, leaves: Collection[int]) -> Interior | None:
        """All nodes from ``root`` back to ``leaves`` (and to sources without operands).

        None when one of them has another mark, when an interior value is used outside, or when a
        path leaves the pattern (ends in an input that is no leaf).
        """
        found = self._back_to(root, leaves)
        if found is None:
            return None
        table = self._users()
        for node in found.values():
            users = {user for result in node.results for user in table.get(result, ())}
            strangers = users - found.keys()
            if node is not root and strangers:
                returned = ", the model returns it" if _GRAPH_OUTPUT in strangers else ""
                reason = f"the result of an inner {node.op} is used outside{returned}"
                self.refuse(root, reason, strangers)
                return None
        return Interior(tuple(found[key] for key in sorted(found)))

    def _back_to(self, root: Node, leaves: Collection[int]) -> dict[int, Node] | None:
        """First result -> node, of those between; None when a path leaves the pattern."""
        found: dict[int, Node] = {}
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node.mark != self.mark or node.regions:
                return None
            found[node.results[0]] = node
            for operand in node.operands:
                producer = self.producer(operand)
                if operand in leaves or operand in found or (producer and _is_source(producer)):
                    continue
                if producer is None:
                    return None
                waiting.append(producer)
        return found

    def refuse(self, node: Node, reason: str, others: Iterable[int] = ()) -> None:
        """Note why a pattern that ends at ``node`` is left; ``others``: values whose makers the
        reason is about."""
        strangers = set(others)
        nodes = self._graph.nodes if strangers else ()
        sources = union(node.source for node in nodes if strangers.intersection(node.results[:1]))
        self.refusals.append(Refusal("", node.source, reason, sources))

    def merge_source(self, value: int, source: Sequence[int]) -> None:
        """Let the node that makes ``value`` also stand for ``source``."""
        self._merged.setdefault(value, set()).update(source)

    def run(self, rule: RewriteRule, root_ops: Collection[OpName]) -> None:
        """Offer each node of the old graph that is one of ``root_ops`` to the rule; keep the
        others."""
        replaced, keep = self._replaced.keys(), self.nodes.append
        for old in self._graph.nodes:
            same = not old.regions and replaced.isdisjoint(old.operands)
            node = old if same else self._current(old)
            if node.op in root_ops:
                self._offer(node, rule)
            else:
                keep(node)

    def _current(self, old: Node) -> Node:
        """The node with the operands that it has now."""
        node = with_operands(old, self._replaced)
        self._producer.update(dict.fromkeys(node.results, node))
        return node

    def _offer(self, node: Node, rule: RewriteRule) -> None:
        self.mark = node.mark
        noted = len(self.refusals)
        try:
            results = rule(self, node)
        except LimitError:  # the rewritten form has sizes that are too long
            results = None
        if results is not None:
            del self.refusals[noted:]
        if results is None or not self.may_replace(node, results):
            self.nodes.append(node)
            return
        for old, new in zip(node.results, results, strict=True):
            self._replaced[old] = new
            del self._producer[old]
            self._changes.append((old, new))

    def may_replace(self, node: Node, results: Sequence[int]) -> bool:
        """Whether ``results`` have the types and the mark of the node's results."""
        if [self.types[new] for new in results] != [self.types[old] for old in node.results]:
            return False
        return all(self._mark_of(new) == node.mark for new in results)

    def _mark_of(self, value: int) -> str:
        producer = self.producer(value)
        return producer.mark if producer else ""

    def finish(self) -> Graph:
        """The new graph: live nodes only, dense ids; the old one where no node has changed, which
        saves most passes most of their time."""
        if len(self.nodes) == len(self._graph.nodes) and all(
            map(is_, self.nodes, self._graph.nodes)
        ):
            return self._graph
        outputs = tuple(self._replaced.get(value, value) for value in self._graph.outputs)
        nodes = tuple(map(self._with_sources, self.nodes) if self._merged else self.nodes)
        return compact(Graph(self.inputs, nodes, outputs, tuple(self.types)))

    def _with_sources(self, node: Node) -> Node:
        further = self._merged.get(node.results[0]) if node.results else None
        return replace(node, source=union((node.source, further))) if further else node


def rewrite(graph: Graph, rule: RewriteRule, roots: RootOps | None = None) -> Graph:
    """Apply ``rule`` once to every node, in order.

    Args:
        graph: without nodes that nobody needs (``eliminate_dead_code`` is the first of all passes).
        rule: what to do with one node.
        roots: the ops that ``rule`` may replace or refuse; it is not asked of others. None: all.
    """
    state = _visited(graph, rule, roots)
    return graph if state is None else state.finish()


def _visited(graph: Graph, rule: RewriteRule, roots: RootOps | None) -> Rewriter | None:
    """The state behind the last node; None where the rule applies to no node."""
    ops: set[OpName] = {node.op for node in graph.nodes}
    root_ops: set[OpName] = ops if roots is None else {op for op in ops if op in roots}
    if not root_ops:
        return None
    state = Rewriter(graph)
    state.run(rule, root_ops)
    return state


def refusals_of(
    graph: Graph, pattern: str, rule: RewriteRule, roots: RootOps
) -> tuple[Refusal, ...]:
    """Why ``rule`` leaves what looks like ``pattern`` to it as it is, each reason once."""
    state = _visited(graph, rule, roots)
    found = () if state is None else dict.fromkeys(state.refusals)
    return tuple(replace(item, pattern=pattern) for item in found)


def rewrite_until_stable(
    graph: Graph, rule: RewriteRule, roots: RootOps | None = None, rounds_max: int = 8
) -> Graph:
    """Apply ``rule`` to the whole graph until it changes nothing."""
    for _ in range(rounds_max):
        found = rewrite(graph, rule, roots)
        if found is graph or found == graph:
            break
        graph = found
    return graph


def _is_source(node: Node) -> bool:
    """Whether a node makes its results of nothing."""
    return Trait.SOURCE in OPS_BY_NAME[node.op].traits


def in_shape(state: Rewriter, value: int, shape: Shape, source: Sequence[int]) -> int:
    """``value`` reshaped to ``shape``; itself if it has that shape."""
    if state.shape_of(value) == shape:
        return value
    return state.emit("reshape", (value,), {"shape": shape}, source)


def union(sources: Iterable[Iterable[int]]) -> tuple[int, ...]:
    """All ordinals, sorted, each once."""
    return tuple(sorted({ordinal for source in sources for ordinal in source}))
