"""Rule ``infer_types``: ImportedModel to Graph.

In: an imported model, its weights. Out: ``Graph``, verified, and what to warn of. Not done here:
translation itself (``ingot_compiler.frontend``). The few small constants that become part of the
graph are noted: others may change without a new graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingot_build_rules.engine.actions.artifact import Artifact
from ingot_build_rules.engine.actions.rule import FileDigests, Rule, RuleContext
from ingot_build_rules.making.values.custom_ops import custom_ops, op_file
from ingot_runtime.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ingot_compiler.frontend.model.imported import ImportedModel
    from ingot_compiler.ir.graph import Graph
    from ingot_compiler.ir.message import Text
    from ingot_compiler.ir.sizes.profile import Profile


@dataclass(frozen=True, slots=True)
class InferInputs:
    """``weights``: bytes of the constants by their number. ``ops``: the user's ops that are
    programs and the digests of their files, which ``op_files`` are, in the same order."""

    model: Artifact[ImportedModel]
    weights: tuple[Artifact[memoryview], ...]
    ops: tuple[tuple[str, str], ...] = ()
    op_files: tuple[tuple[str, Artifact[memoryview]], ...] = ()


@dataclass(frozen=True, slots=True)
class TypedGraph:
    """``contradictions``: what the file says of types that is not so, by numbers of nodes;
    ``profiles``: the sizes for which the user wants versions of their own (``--shape``); ``forms``:
    of inputs and outputs, none where all are tensors."""

    graph: Artifact[Graph]
    contradictions: Artifact[tuple[Text, ...]]
    profiles: tuple[Profile, ...] = ()
    forms: tuple[tuple[str, ...], ...] = ()


def _compute(context: RuleContext, inputs: InferInputs) -> TypedGraph:
    from ingot_compiler.frontend import infer_types as frontend

    def read(constant: str) -> memoryview:
        context.note(constant)
        return inputs.weights[int(constant)].value()

    files = [
        op_file(op, file, bytes(kept.value()))
        for (op, _), (file, kept) in zip(inputs.ops, inputs.op_files, strict=True)
    ]
    typed = frontend.infer_types(inputs.model.value(), read, custom_ops(files))
    contradictions = context.keep(typed.contradictions)
    return TypedGraph(context.keep(typed.graph), contradictions, typed.profiles, typed.forms)


def _resolve(_: FileDigests, inputs: InferInputs, constant: str) -> str:
    number = int(constant) if constant.isdecimal() else len(inputs.weights)
    return inputs.weights[number].digest if number < len(inputs.weights) else ""


INFER_TYPES = Rule("infer_types", 1, ("model", "ops"), _compute, _resolve)
