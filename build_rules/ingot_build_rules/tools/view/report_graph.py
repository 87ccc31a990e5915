"""The graph of a report: vertices with their places on a page, and the edges between them.

In: what a report is about, the lifetimes of what its steps write. Out: plain values for JSON. Not
done here: drawing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ingot_build_rules.tools.view.evaluate_call import CopyStep
from ingot_build_rules.tools.view.launch_graph import Vertex, launch_edges
from ingot_build_rules.tools.view.layered_layout import layered_layout
from ingot_build_rules.tools.view.memory_timeline import Lifetime
from ingot_build_rules.tools.view.report_subject import ReportSubject


def report_graph(subject: ReportSubject, lifetimes: Sequence[Lifetime]) -> dict[str, Any]:
    """Return ``vertices``: inputs, steps and outputs, in this order; and ``edges``: numbers of two
    vertices, bytes, and the places of the edge's bends."""
    vertices = _vertices(subject)
    edges = [
        (
            _number(subject, edge.source),
            _number(subject, edge.target),
            subject.size_bytes(edge.span),
        )
        for edge in launch_edges(subject.call, lifetimes)
    ]
    layout = layered_layout(len(vertices), [edge[:2] for edge in edges])
    for vertex, (layer, place) in zip(vertices, layout.vertices, strict=True):
        vertex |= {"layer": layer, "place": place}
    routed = [[*edge, bends] for edge, bends in zip(edges, layout.bends, strict=True)]
    return {"vertices": vertices, "edges": routed}


def _vertices(subject: ReportSubject) -> list[dict[str, Any]]:
    vertices: list[dict[str, Any]] = [
        {"kind": "input", "name": tensor.name} for tensor in subject.plan.inputs
    ]
    vertices += (
        {"kind": "copy" if isinstance(step, CopyStep) else "launch", "step": number}
        for number, step in enumerate(subject.call.steps)
    )
    vertices += ({"kind": "output", "name": tensor.name} for tensor in subject.plan.outputs)
    return vertices


def _number(subject: ReportSubject, vertex: Vertex) -> int:
    first = len(subject.plan.inputs)
    if isinstance(vertex, int):
        return first + vertex
    end, number = vertex
    return number if end == "input" else first + len(subject.call.steps) + number
