"""Rule ``infer_types``: ImportedModel to Graph.

In: an imported model. Out: ``Graph``, verified. Not done here: translation itself (``ingot_compiler.frontend``).
"""

from __future__ import annotations

from dataclasses import dataclass

from ingot_build_rules.engine.rule import Context, Rule
from ingot_compiler.frontend import infer_types as frontend
from ingot_compiler.frontend.imported import ImportedModel
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.verify import verify


@dataclass(frozen=True, slots=True)
class InferInputs:
    """``read`` gives the bytes that the model names by digest."""

    model: ImportedModel
    read: ConstantReader


def _compute(_: Context, inputs: InferInputs) -> Graph:
    graph = frontend.infer_types(inputs.model, inputs.read)
    verify(graph)
    return graph


INFER_TYPES = Rule("infer_types", 1, ("model",), _compute)
