"""Rule ``optimize``: Graph to OptimizedGraph.

In: a graph. Out: ``OptimizedGraph``, verified. Not done here: the passes (``ingot_compiler.passes``).
"""

from __future__ import annotations

from dataclasses import dataclass

from ingot_build_rules.engine.rule import Context, Rule
from ingot_compiler.ir.graph import Graph, OptimizedGraph
from ingot_compiler.ir.verify import verify
from ingot_compiler.passes import pipeline


@dataclass(frozen=True, slots=True)
class OptimizeInputs:
    """The graph alone decides."""

    graph: Graph


def _compute(_: Context, inputs: OptimizeInputs) -> OptimizedGraph:
    optimized = pipeline.optimize(inputs.graph)
    verify(optimized.graph)
    return optimized


OPTIMIZE = Rule("optimize", 1, ("graph",), _compute)
