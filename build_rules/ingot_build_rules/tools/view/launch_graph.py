"""What flows from step to step of a call: its graph, found in the memory that each writes.

In: a call, the lifetimes of what its steps write. Out: ``Edge``s between steps, inputs and outputs.
Not done here: names, positions on a page (``layered_layout``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ingot_build_rules.tools.view.evaluate_call import BufferSpan, CopyStep, EvaluatedCall
from ingot_build_rules.tools.view.memory_timeline import Lifetime
from ingot_runtime.lazy_dataclass import dataclass

Vertex = int | tuple[str, int]
"""A step by its position in the call, or ``("input", n)``, ``("output", n)``."""


@dataclass(frozen=True, slots=True)
class Edge:
    """What ``span`` holds flows from one vertex to another."""

    source: Vertex
    target: Vertex
    span: BufferSpan


def launch_edges(call: EvaluatedCall, lifetimes: Sequence[Lifetime]) -> list[Edge]:
    """Return each edge once: from inputs, between steps, to outputs."""
    edges = [*_from_inputs(call), *_from_steps(lifetimes)]
    return list({(edge.source, edge.target): edge for edge in edges}.values())


def _from_inputs(call: EvaluatedCall) -> Iterator[Edge]:
    for position, step in enumerate(call.steps):
        spans = (step.source,) if isinstance(step, CopyStep) else step.buffers
        for span in spans:
            if span.origin == "input":
                yield Edge(("input", span.offset), position, span)


def _from_steps(lifetimes: Sequence[Lifetime]) -> Iterator[Edge]:
    for lifetime in lifetimes:
        for reader in lifetime.readers:
            yield Edge(lifetime.first, reader, lifetime.span)
        if lifetime.span.origin == "output":
            yield Edge(lifetime.first, ("output", lifetime.span.offset), lifetime.span)
