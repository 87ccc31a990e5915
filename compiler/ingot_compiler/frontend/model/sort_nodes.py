"""The graph's tensor names: every one defined once, every node behind those it reads.

In: a ``GraphProto``. Out: its nodes in topological order (the file's order where it is one).
ModelError for a name that is defined twice, read but never defined, or part of a cycle. Not done
here: what nodes mean (``check_nodes``).
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence

from onnx import AttributeProto, GraphProto, NodeProto

from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.suggest import nearest


def node_name(node: NodeProto) -> str:
    """What messages, reports and ``--place`` call a node: its name, or its first result's when it
    has none."""
    return node.name or next((name for name in node.output if name), node.op_type)


def describe_node(node: NodeProto) -> str:
    """``node 'layer1/conv' (Conv)``."""
    return f"node {node_name(node)!r} ({node.op_type})"


def regions_of(node: NodeProto) -> tuple[GraphProto, ...]:
    """The graphs that are attributes of a node."""
    attributes = node.attribute
    if not attributes:
        return ()
    return tuple([each.g for each in attributes if each.type == AttributeProto.GRAPH])


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Nodes and those of the graphs that are their attributes."""
    for node in nodes:
        yield node
        for region in regions_of(node):
            yield from all_nodes(region.node)


def names_read(node: NodeProto) -> Iterator[str]:
    """Names of a node's operands, then of the tensors outside that its regions read; absent ones
    are ""."""
    yield from node.input
    for graph in regions_of(node):
        own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        own |= {name for inner in graph.node for name in inner.output}
        read = (
            *(name for inner in graph.node for name in names_read(inner)),
            *(value.name for value in graph.output),
        )
        yield from (name for name in read if name not in own)


def sort_nodes(graph: GraphProto, outside: Collection[str] = ()) -> tuple[NodeProto, ...]:
    """Nodes in topological order, after all checks of names; a region also sees the names
    ``outside``."""
    makers = _makers(graph, is_whole=not outside)
    roots = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    known = roots | set(makers) | set(outside)
    for node in graph.node:
        for name in names_read(node):
            if name and name not in known:
                raise _undefined(
                    "a node reads a tensor that no node computes", describe_node(node), name, known
                )
    for value in graph.output:
        if value.name not in known:
            raise _undefined(
                "no node computes an output", f"output {value.name!r}", value.name, known
            )
    return tuple(graph.node[index] for index in _order(graph.node, makers))


def _undefined(what: str, where: str, name: str, known: Collection[str]) -> ModelError:
    close = nearest(name, known)
    return ModelError(
        what, where, f"no tensor is called {name!r}", f"did you mean {close!r}?" if close else _DO
    )


class _Definitions:
    """The names of one graph, and where each is defined."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}

    def add(self, name: str, where: str) -> None:
        """Note a definition; ModelError for a second one."""
        if name in self.places:
            why = f"{name!r} is defined by {self.places[name]} already"
            raise ModelError("a tensor name is defined twice", where, why, _DO)
        self.places[name] = where


def _makers(graph: GraphProto, *, is_whole: bool) -> dict[str, int]:
    """Tensor name -> index of the node that makes it; ModelError when a name is defined twice."""
    defined = _Definitions()
    for value in graph.input:
        defined.add(value.name, f"input {value.name!r}")
    listed = {value.name for value in graph.input}
    for tensor in graph.initializer:
        # Before IR version 4, every initializer was listed as an input too.
        if tensor.name in listed:
            listed.discard(tensor.name)
        else:
            defined.add(tensor.name, f"initializer {tensor.name!r}")
    makers: dict[str, int] = {}
    for index, node in enumerate(graph.node):
        for name in filter(None, node.output):
            defined.add(name, describe_node(node))
            makers[name] = index
    if is_whole:
        _check_outputs(graph)
    return makers


def _check_outputs(graph: GraphProto) -> None:
    seen: set[str] = set()
    for value in graph.output:
        if value.name in seen:
            where = f"output {value.name!r}"
            raise ModelError("an output name is used twice", where, "output names must differ", _DO)
        seen.add(value.name)


def _order(nodes: Sequence[NodeProto], makers: dict[str, int]) -> list[int]:
    sources = [{makers[name] for name in names_read(node) if name in makers} for node in nodes]
    users: list[list[int]] = [[] for _ in nodes]
    for index, made_by in enumerate(sources):
        for source in made_by:
            users[source].append(index)
    waiting = [len(made_by) for made_by in sources]
    ready = [index for index, count in enumerate(waiting) if not count]
    order: list[int] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for user in users[index]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, user)
    if len(order) < len(nodes):
        raise _cycle(nodes, sources, waiting)
    return order


def _cycle(
    nodes: Sequence[NodeProto], sources: Sequence[set[int]], waiting: Sequence[int]
) -> ModelError:
    """Walk back from a stuck node until one repeats: those between are a cycle."""
    index = next(position for position, count in enumerate(waiting) if count)
    path: list[int] = []
    while index not in path:
        path.append(index)
        index = min(source for source in sources[index] if waiting[source])
    cycle = list(reversed(path[path.index(index) :]))
    why = "they read each other's results: " + " -> ".join(
        repr(node_name(nodes[step])) for step in (*cycle, cycle[0])
    )
    return ModelError("the graph has a cycle", describe_node(nodes[cycle[0]]), why, _DO)


_DO = "export the model again; every tensor needs one name and one maker"
