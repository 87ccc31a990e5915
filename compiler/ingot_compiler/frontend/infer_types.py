"""Rule ``infer_types``: an ``ImportedModel`` becomes a ``Graph`` of core ops with types.

In: the model and a reader of its constants (small ones become literals). Out: ``Graph``, and what
the file says of types that contradicts it; ModelError for types that contradict, UnsupportedError
that lists all nodes without a translation. Errors refer to nodes by ordinal: the caller puts the
names there (``in_names``). Not done here: any simplification beyond what is known of shapes
(``passes``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import islice

from ingot_compiler.frontend.build.context import OpContext
from ingot_compiler.frontend.build.custom_op import CustomOp
from ingot_compiler.frontend.build.forms import form_of, value_of_form
from ingot_compiler.frontend.build.scope import Scope
from ingot_compiler.frontend.build.sequences import parts_of
from ingot_compiler.frontend.build.translation import Translation
from ingot_compiler.frontend.inputs.same_names import SameNames, left_apart, own_sizes
from ingot_compiler.frontend.model.check_declared import check_declared
from ingot_compiler.frontend.model.findings import ImportFinding, raise_unsupported
from ingot_compiler.frontend.model.imported import ImportedModel, ImportedNode
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.dims import Dim, substitute, symbol
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.message import Text, message
from ingot_compiler.ir.sizes.profile import Profile
from ingot_compiler.ir.value_forms import TENSOR, count_of
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

_DEQUANTIZER_DOMAINS = ("", "com.microsoft")


@dataclass(frozen=True, slots=True)
class TypedModel:
    """``contradictions``: what the file says of types that is not so, for warnings; ``profiles``:
    those of the model, by the symbols of the graph; ``forms``: of inputs and outputs, none where
    all are tensors."""

    graph: Graph
    contradictions: tuple[Text, ...]
    profiles: tuple[Profile, ...]
    forms: tuple[tuple[str, ...], ...] = ()


def infer_types(
    model: ImportedModel,
    read: ConstantReader,
    custom_ops: Mapping[tuple[str, str], CustomOp] | None = None,
) -> TypedModel:
    """Translate every node in order. ``read`` gives the bytes of a weight by its number;
    ``custom_ops``: definitions of the user by domain and name."""
    same_names = SameNames(model.alike)
    while True:
        bindings = same_names.bindings()
        typed = _translated(_with_bindings(model, same_names), read, same_names, custom_ops or {})
        same_names.note_graph(typed.graph)
        if same_names.bindings() == bindings:
            _require_given(model, bindings)
            return typed


def _require_given(model: ImportedModel, bindings: Mapping[str, Dim]) -> None:
    """Refuse a size of the user where the model has another one."""
    for item in (item for profile in model.profiles for item in profile):
        size = bindings.get(item.symbol)
        if isinstance(size, int) and not item.least <= size <= item.most:
            what, option = "the model has another size than the one given", OptionRef("shape")
            why = message("expected ", symbol(item.symbol), f" = {size}, got {item.span}")
            raise ModelError(what, message(option), why, message("correct ", option))


def _with_bindings(model: ImportedModel, same_names: SameNames) -> ImportedModel:
    """The model where one symbol stands for those that are one size with it, or a number."""
    bindings = same_names.bindings()
    same_names.groups = left_apart(model.alike, bindings)
    inputs = tuple(
        replace(tensor_type, shape=tuple(substitute(dim, bindings) for dim in tensor_type.shape))
        for tensor_type in model.inputs
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
        declared=_declared_sizes(model),
        seed=model.seed,
    )
    values = _inputs(model, translation)
    _add_constants(model, translation, values)
    scope = Scope(model, translation, [], values)
    scope.translate(model.nodes, 0, model.outputs)
    if not scope.findings:
        scope.note_missing(model.nodes, 0, model.outputs)
    raise_unsupported(scope.findings, "")
    outputs = [values[ordinal] for ordinal in model.outputs]
    tensors = ((ordinal, value) for ordinal, value in values.items() if value >= 0)
    types = {ordinal: translation.builder.types[value] for ordinal, value in tensors}
    contradictions = tuple(check_declared(model, types))
    profiles = tuple(own_sizes(profile, model.inputs) for profile in model.profiles)
    context = OpContext.of_constant(translation)
    parts = [part for output in outputs for part in parts_of(context, output)]
    forms = tuple(form_of(context, output) for output in outputs)
    has_values = bool(model.forms) or set(forms) - {TENSOR}
    own = model.forms or (TENSOR,) * len(model.inputs)
    graph = translation.builder.finish(parts)
    return TypedModel(graph, contradictions, profiles, (own, forms) if has_values else ())


def _declared_sizes(model: ImportedModel) -> dict[int, tuple[int | None, ...]]:
    """What the file says of the sizes of tensors, by their ordinals."""
    outputs = zip(model.outputs, model.declared, strict=True)
    pairs = (*model.declared_inside, *outputs)
    return {ordinal: each.shape for ordinal, each in pairs if each.shape is not None}


def _inputs(model: ImportedModel, translation: Translation) -> dict[int, int]:
    """The value of each input, by the ordinal of its first tensor."""
    context = OpContext.of_constant(translation)
    values: dict[int, int] = {}
    ordinals = iter(range(len(model.inputs)))
    for form in model.forms or (TENSOR,) * len(model.inputs):
        tensors = list(islice(ordinals, count_of(form)))
        values[tensors[0]] = value_of_form(context, form, iter(tensors))
    return values


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
    is one. Integers that are dequantized, and nothing else, are weights."""
    users: dict[int, list[int]] = {}
    for ordinal, node in enumerate(model.nodes):
        for operand in node.reads():
            users.setdefault(operand, []).append(ordinal)
    other_reads = {operand for node in model.nodes for operand in _not_dequantized(node)}
    for ordinal, constant in enumerate(model.initializers, len(model.inputs)):
        readers = users.get(ordinal, [])
        marks = {model.nodes[reader].mark for reader in readers}
        mark = marks.pop() if len(marks) == 1 else ""
        context = OpContext.of_constant(translation, tuple(readers), mark)
        is_quantized = bool(readers) and ordinal not in other_reads
        values[ordinal] = context.constant(constant, is_quantized=is_quantized)


def _not_dequantized(node: ImportedNode) -> tuple[int, ...]:
    """What a node reads, but for the integers that DequantizeLinear makes floats of, and their zero
    points."""
    is_dequantizer = node.op == "DequantizeLinear" and node.domain in _DEQUANTIZER_DOMAINS
    return node.operands[1:2] if is_dequantizer else node.reads()
