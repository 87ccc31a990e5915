"""Runs the functions of plug-ins at the phase ``graph``: an optimized graph to another one.

In: a graph, functions in their order. Out: the graph. Not done here: whether it means the same,
which ``--check`` tells.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.verify import verify
from ingot_compiler.plugins.call_hook import call_hook, plugin_error
from ingot_compiler.plugins.plugin import RewriteGraph
from ingot_compiler.plugins.settings import PluginSettings


def rewrite_graph(graph: Graph, passes: Sequence[tuple[PluginSettings, RewriteGraph]]) -> Graph:
    """Return what the passes make of the graph, one after the other.

    Raises:
        PluginError: one fails, or gives a graph that is malformed or of another signature.
    """
    for settings, rewrite in passes:
        made = call_hook(
            settings, "a pass at phase graph", Graph, functools.partial(rewrite, graph, settings)
        )
        _check(settings, graph, made)
        graph = made
    return graph


def _check(settings: PluginSettings, before: Graph, after: Graph) -> None:
    what = "a pass at phase graph made a wrong graph"
    try:
        verify(after)
    except InternalError as error:
        raise plugin_error(settings, what, error.why, error.where) from error
    for part, expected, got in zip(
        ("inputs", "outputs"), _signature(before), _signature(after), strict=True
    ):
        if expected != got:
            why = f"expected {part} {_texts(expected)}, got {_texts(got)}"
            raise plugin_error(settings, what, why)
    if "composite" in {node.op for node in after.nodes}:
        raise plugin_error(settings, what, "expected no composite: claim makes them, got one")


def _signature(graph: Graph) -> tuple[tuple[TensorType, ...], tuple[TensorType, ...]]:
    inputs = tuple(graph.types[value] for value in graph.inputs)
    return inputs, tuple(graph.types[value] for value in graph.outputs)


def _texts(types: Sequence[TensorType]) -> str:
    return ", ".join(map(str, types)) or "none"
