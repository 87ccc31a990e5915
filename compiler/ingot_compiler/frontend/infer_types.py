"""Rule ``infer_types``: an ``ImportedModel`` becomes a ``Graph`` of core ops with types.

In: the model and a reader of its constants (small ones become literals). Out: ``Graph``, and what
the file says of types that contradicts it; ModelError for types that contradict, UnsupportedError that lists all nodes without a translation. Errors refer
to nodes by ordinal: the caller puts the names there (``in_names``). Not done here: any
simplification beyond what is known of shapes (``passes``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ingot_compiler.frontend.check_declared import check_declared
from ingot_compiler.frontend.context import OpContext
from ingot_compiler.frontend.custom_op import CustomOp
from ingot_compiler.frontend.findings import ImportFinding, raise_unsupported
from ingot_compiler.frontend.imported import ImportedModel
from ingot_compiler.frontend.same_names import SameNames, left_apart, own_sizes
from ingot_compiler.frontend.scope import Scope
from ingot_compiler.frontend.translation import Translation
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.dims import substitute
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.message import OutputRef, Text
from ingot_compiler.ir.profile import Profile


@dataclass(frozen=True, slots=True)
class TypedModel:
    """``contradictions``: what the file says of types that is not so, for warnings; ``profiles``:
    those of the model, by the symbols of the graph."""

    graph: Graph
    contradictions: tuple[Text, ...]
    profiles: tuple[Profile, ...]


def infer_types(
    model: ImportedModel,
    read: ConstantReader,
    custom_ops: Mapping[tuple[str, str], CustomOp] | None = None,
) -> TypedModel:
    """Translate every node in order. ``read`` gives the bytes of a weight by its number;
    ``custom_ops``: definitions of the user by domain and name."""
    same_names = SameNames(model.alike)
    while True:
        joined = len(same_names.joined)
        typed = _translated(_with_joined(model, same_names), read, same_names, custom_ops or {})
        same_names.note_graph(typed.graph)
        if len(same_names.joined) == joined:
            return typed


def _with_joined(model: ImportedModel, same_names: SameNames) -> ImportedModel:
    """The model where one symbol stands for those that are one size with it."""
    bindings = same_names.bindings()
    same_names.groups = left_apart(model.alike, same_names.joined)
    inputs = tuple(
        replace(kind, shape=tuple(substitute(dim, bindings) for dim in kind.shape))
        for kind in model.inputs
    )
    return replace(model, inputs=inputs)


def _translated(
    model: ImportedModel,
    read: ConstantReader,
    same_names: SameNames,
    custom_ops: Mapping[tuple[str, str], CustomOp],
) -> TypedModel:
    translation = Translation(
        GraphBuilder(model.inputs),
        read,
        same_names=same_names,
        custom_ops=custom_ops,
        seed=model.seed,
    )
    values: dict[int, int] = {ordinal: ordinal for ordinal in range(len(model.inputs))}
    _add_constants(model, translation, values)
    scope = Scope(model, translation, [], values)
    scope.translate(model.nodes, 0, model.outputs)
    if not scope.findings:
        scope.note_missing(model.nodes, 0, model.outputs)
    raise_unsupported(scope.findings, "")
    outputs = [values[ordinal] for ordinal in model.outputs]
    _refuse_sequences(outputs)
    tensors = ((ordinal, value) for ordinal, value in values.items() if value >= 0)
    types = {ordinal: translation.builder.types[value] for ordinal, value in tensors}
    contradictions = tuple(check_declared(model, types))
    profiles = tuple(own_sizes(profile, model.inputs) for profile in model.profiles)
    return TypedModel(translation.builder.finish(outputs), contradictions, profiles)


def _refuse_sequences(outputs: Sequence[int]) -> None:
    """UnsupportedError that lists the outputs of the model that are no tensors."""
    reason = "an output that is a sequence or an optional"
    raise_unsupported(
        [
            ImportFinding(OutputRef(position), "", "", 0, "sequence", reason)
            for position, output in enumerate(outputs)
            if output < 0
        ],
        "",
    )


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
