"""Rule ``infer_types``: an ``ImportedModel`` becomes a ``Graph`` of core ops with types.

In: the model and a reader of its constants (small ones become literals). Out: ``Graph``, and what
the file says of types that contradicts it; ModelError for types that contradict, UnsupportedError that lists all nodes without a translation. Errors refer
to nodes by ordinal: the caller puts the names there (``in_names``). Not done here: any
simplification beyond what is known of shapes (``passes``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ingot_compiler.frontend.check_declared import check_declared
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.findings import ImportFinding, raise_unsupported
from ingot_compiler.frontend.imported import ImportedModel
from ingot_compiler.frontend.scope import Scope
from ingot_compiler.frontend.translation import Translation
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.message import Text


@dataclass(frozen=True, slots=True)
class TypedModel:
    """``contradictions``: what the file says of types that is not so, for warnings."""

    graph: Graph
    contradictions: tuple[Text, ...]


def infer_types(model: ImportedModel, read: ConstantReader) -> TypedModel:
    """Translate every node in order. ``read`` gives the bytes of a weight by its number."""
    translation = Translation(GraphBuilder(model.inputs), read)
    values: dict[int, int] = {ordinal: ordinal for ordinal in range(len(model.inputs))}
    _add_constants(model, translation, values)
    scope = Scope(model, translation, [], values)
    scope.translate(model.nodes, 0, model.outputs)
    if not scope.findings:
        scope.note_missing(model.nodes, 0, model.outputs)
    raise_unsupported(scope.findings, "")
    outputs = [values[ordinal] for ordinal in model.outputs]
    types = {ordinal: translation.builder.types[value] for ordinal, value in values.items()}
    contradictions = tuple(check_declared(model, types))
    return TypedModel(translation.builder.finish(outputs), contradictions)


def find_untranslated(
    model: ImportedModel,
    values: Mapping[int, int],
    refused: Collection[int],
    translation: Translation,
) -> list[ImportFinding]:
    """Return what else has no translation in a model some of whose nodes are ``refused``, for one
    error that lists everything.

    ``values``: tensor ordinal -> value id, of the inputs and initializers that there are. What
    follows from refused nodes is not looked at, and nodes that are wrong are passed over.
    """
    scope = Scope(model, translation, [], dict(values), frozenset(refused))
    scope.translate(model.nodes, 0, model.outputs)
    return scope.findings


def _add_constants(model: ImportedModel, translation: Translation, values: dict[int, int]) -> None:
    """Initializers; each names the nodes that read it as its source, and takes their mark when it
    is one."""
    users: dict[int, list[int]] = {}
    for ordinal, node in enumerate(model.nodes):
        for operand in node.reads():
            users.setdefault(operand, []).append(ordinal)
    for ordinal, constant in enumerate(model.initializers, len(model.inputs)):
        readers = users.get(ordinal, [])
        marks = {model.nodes[reader].mark for reader in readers}
        mark = marks.pop() if len(marks) == 1 else ""
        context = OpContext.of_constant(translation, tuple(readers), mark)
        values[ordinal] = context.constant(constant)
