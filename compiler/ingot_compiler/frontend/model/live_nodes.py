"""The nodes that some output follows from: others are in files of real exporters, too, and decide
nothing.

In: the nodes of a graph in topological order, the names of its outputs. Out: those that count, and
those that do not. Not done here: whether Ingot has translations of them (``check_nodes``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onnx import NodeProto

from ingot_compiler.frontend.model.sort_nodes import names_read


def live_nodes(
    nodes: Sequence[NodeProto], outputs: Iterable[str]
) -> tuple[tuple[NodeProto, ...], tuple[NodeProto, ...]]:
    """Return the nodes whose results are read on the way to an output, and the others, in order."""
    read = set(outputs)
    live: list[NodeProto] = []
    dead: list[NodeProto] = []
    for node in reversed(nodes):
        if read.isdisjoint(filter(None, node.output)):
            dead.append(node)
        else:
            live.append(node)
            read.update(names_read(node))
    return tuple(reversed(live)), tuple(reversed(dead))
