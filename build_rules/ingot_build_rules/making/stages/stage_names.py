"""The user's names of the things of a graph that came as a text.

In: a graph, the file beside its text. Out: ``Names``. Not done here: reading that file
(``stage_weights``).

Where the file says nothing of names, inputs are called ``input0``, outputs ``output0``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ingot_build_rules.making.stages.stage_weights import (
    NUMBER_MAX,
    StageWeights,
    constants_of,
    nodes_of,
    weight_number,
)
from ingot_compiler.ir.errors import ModelError, UserError
from ingot_compiler.ir.graph import Graph, Names

_Counts = tuple[int, int, int, int]
"""How many inputs, outputs, nodes and weights there are."""


def names_of(graph: Graph, given: StageWeights, path: str) -> Names:
    """What things are called: by the file, or by what they are.

    Raises:
        UserError: the names do not fit the graph. ModelError: the text numbers constants or nodes
            beyond any model.
    """
    counts = _counts(graph)
    largest = max(counts[2:])
    if largest > NUMBER_MAX:
        why = f"expected at most {NUMBER_MAX} nodes and constants, got {largest}"
        raise ModelError("ordinals are too large", path, why, "number nodes and constants from 0")
    if given.names is None:
        return _made_names(counts, len(given.weights), path)
    names = _read_names(given.names)
    if names is None or not _fit(names, counts):
        found = _counts_of_names(names) if names else (0, 0, 0, 0)
        counted = f"{_listed(counts)} of them, got {_listed(found)}"
        why = f"expected inputs, outputs, nodes, weights: {counted}"
        do = "take the file that was written with this text"
        raise UserError("names of another graph", path, why, do)
    return names


def _counts(graph: Graph) -> _Counts:
    nodes = list(nodes_of(graph))
    node_count = 1 + max((ordinal for node in nodes for ordinal in node.source), default=-1)
    weight_count = 1 + max(map(weight_number, constants_of(graph)), default=-1)
    return len(graph.inputs), len(graph.outputs), node_count, weight_count


def _counts_of_names(names: Names) -> _Counts:
    return len(names.inputs), len(names.outputs), len(names.nodes), len(names.weights)


def _fit(names: Names, counts: _Counts) -> bool:
    """Whether all that a graph has is named; nodes and weights that it lacks may be named too."""
    found = _counts_of_names(names)
    return found[:2] == counts[:2] and found[2] >= counts[2] and found[3] >= counts[3]


def _listed(counts: _Counts) -> str:
    return ", ".join(map(str, counts))


def _made_names(counts: _Counts, given_weights: int, path: str) -> Names:
    inputs, outputs, nodes, weights = counts
    return Names(
        os.path.splitext(os.path.basename(path))[0],
        tuple(f"input{index}" for index in range(inputs)),
        tuple(f"output{index}" for index in range(outputs)),
        tuple((f"node{index}", "node") for index in range(nodes)),
        (),
        tuple(f"weight{index}" for index in range(max(weights, given_weights))),
    )


def _read_names(table: Mapping[str, Any]) -> Names | None:
    def texts(name: str) -> tuple[str, ...]:
        return tuple(str(item) for item in table[name])

    def pairs(name: str) -> tuple[tuple[str, str], ...]:
        return tuple((str(first), str(second)) for first, second in table[name])

    try:
        model = str(table["model"])
        inputs, outputs, weights = map(texts, ("inputs", "outputs", "weights"))
        plans = tuple(tuple(str(step) for step in steps) for steps in table.get("plans", ()))
        nodes, symbols = pairs("nodes"), pairs("symbols")
        return Names(model, inputs, outputs, nodes, symbols, weights, plans=plans)
    except (TypeError, ValueError):
        return None
