"""Rule ``infer_types``: ImportedModel to Graph.

In: an imported model, its weights. Out: ``Graph``, verified, and what to warn of. Not done here: translation itself
(``ingot_compiler.frontend``). The few small constants that become part of the graph are noted:
others may change without a new graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import FileDigests, Rule, RuleContext

if TYPE_CHECKING:
    from ingot_compiler.frontend.imported import ImportedModel
    from ingot_compiler.ir.graph import Graph
    from ingot_compiler.ir.message import Text
    from ingot_compiler.ir.profile import Profile


@dataclass(frozen=True, slots=True)
class InferInputs:
    """``weights``: bytes of the constants by their number."""

    model: Artifact[ImportedModel]
    weights: tuple[Artifact[memoryview], ...]


@dataclass(frozen=True, slots=True)
class TypedGraph:
    """``contradictions``: what the file says of types that is not so, by numbers of nodes;
    ``profiles``: the sizes for which the user wants versions of their own (``--shape``)."""

    graph: Artifact[Graph]
    contradictions: Artifact[tuple[Text, ...]]
    profiles: tuple[Profile, ...] = ()


def _compute(context: RuleContext, inputs: InferInputs) -> TypedGraph:
    from ingot_compiler.frontend import infer_types as frontend

    def read(constant: str) -> memoryview:
        context.note(constant)
        return inputs.weights[int(constant)].value()

    typed = frontend.infer_types(inputs.model.value(), read)
    contradictions = context.keep(typed.contradictions)
    return TypedGraph(context.keep(typed.graph), contradictions, typed.profiles)


def _resolve(_: FileDigests, inputs: InferInputs, constant: str) -> str:
    number = int(constant) if constant.isdecimal() else len(inputs.weights)
    return inputs.weights[number].digest if number < len(inputs.weights) else ""


INFER_TYPES = Rule("infer_types", 1, ("model",), _compute, _resolve)
