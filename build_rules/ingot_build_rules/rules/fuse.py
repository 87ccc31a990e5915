"""Rule ``fuse``: PlacedGraph to FusedGraph, per target.

In: a placed graph, a target. Out: ``FusedGraph``. Not done here: fusion and layouts (``ingot_compiler.lowering``).
"""

from __future__ import annotations

from dataclasses import dataclass

from ingot_build_rules.engine.rule import Context, Rule
from ingot_compiler.lowering import fuse as lowering
from ingot_compiler.lowering.fused import FusedGraph
from ingot_compiler.placement.place import PlacedGraph
from ingot_compiler.targets.target import Target


@dataclass(frozen=True, slots=True)
class FuseInputs:
    """Layouts depend on the target's vector width."""

    placed: PlacedGraph
    target: Target


def _compute(_: Context, inputs: FuseInputs) -> FusedGraph:
    return lowering.fuse(inputs.placed, inputs.target)


FUSE = Rule("fuse", 1, ("placed", "target"), _compute)
