"""States: pairs of an input and an output that may lie in one memory, from call to call.

In: a placed graph. Out: ``State``. Not done here: marking them (``passes.hold_state``), how they
lie (``fusion.hold``), memory for them (the loader).

A graph with devices beside the host has none: its ``append`` is a ``concat``.
"""

from __future__ import annotations

from collections import Counter

from ingot_compiler.placement.placed import PlacedGraph
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class State:
    """Output number ``output`` is input number ``input``, or its first rows, with more behind it
    along ``axis``; or, where it is ``fixed``, with rows of it replaced; ``result``: the value."""

    input: int
    output: int
    axis: int
    result: int
    fixed: bool


def states_of(placed: PlacedGraph) -> tuple[State, ...]:
    """The states of a graph, in the order of its nodes."""
    if len(placed.devices) > 1:
        return ()
    graph, outputs = placed.graph, Counter(placed.graph.outputs)
    cut_from = {node.results[0]: node.operands[0] for node in graph.nodes if node.op == "slice"}
    found: list[State] = []
    for node in graph.nodes:
        fixed = node.op == "write_rows" and node.flag("held")
        if not (fixed or node.op == "append") or outputs[node.results[0]] != 1:
            continue
        past = node.operands[0] if fixed else cut_from.get(node.operands[0], node.operands[0])
        if past in graph.inputs:
            result, axis = node.results[0], node.integer("axis")
            numbers = graph.inputs.index(past), graph.outputs.index(result)
            found.append(State(*numbers, axis, result, fixed))
    return tuple(found)
