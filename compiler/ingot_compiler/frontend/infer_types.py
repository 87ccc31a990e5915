"""Rule ``infer_types``: an ``ImportedModel`` becomes a ``Graph`` of core ops with types.

In: the model and a reader of its constants (small ones become literals). Out: ``Graph``; ModelError
for types that contradict, UnsupportedError that lists all nodes without a translation. Errors refer
to nodes by ordinal: the caller puts the names there (``in_names``). Not done here: any
simplification beyond what is known of shapes (``passes``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ingot_compiler.frontend.check_declared import check_declared
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.findings import ImportFinding, raise_unsupported
from ingot_compiler.frontend.imported import (
    ABSENT,
    ImportedAttribute,
    ImportedModel,
    ImportedNode,
    ImportedRegion,
)
from ingot_compiler.frontend.onnx_node import RegionBody
from ingot_compiler.frontend.translate_node import translate_node
from ingot_compiler.frontend.translation import Translation
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.errors import InternalError, LimitError, ModelError
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.message import NodeRef, OptionRef, Text, joined, message, with_makers
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_runtime.ingot_error import IngotError


def infer_types(model: ImportedModel, read: ConstantReader) -> Graph:
    """Translate every node in order. ``read`` gives the bytes of a weight by its number."""
    translation = Translation(GraphBuilder(model.inputs), read)
    values: dict[int, int] = {ordinal: ordinal for ordinal in range(len(model.inputs))}
    _add_constants(model, translation, values)
    scope = _Scope(model, translation, [], values)
    scope.translate(model.nodes, 0, model.outputs)
    if not scope.findings:
        scope.note_missing(model.nodes, 0, model.outputs)
    raise_unsupported(scope.findings, "")
    outputs = [values[ordinal] for ordinal in model.outputs]
    check_declared(model, [translation.builder.types[output] for output in outputs])
    return translation.builder.finish(outputs)


class _Incomplete(Exception):
    """A region holds nodes without a translation; they are among the findings."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """A graph or region under translation; ``values``: tensor ordinal -> value id, of all that it
    sees."""

    model: ImportedModel
    translation: Translation
    findings: list[ImportFinding]
    values: dict[int, int]

    def translate(self, nodes: Sequence[ImportedNode], first: int, outputs: Sequence[int]) -> None:
        """Translate nodes, whose ordinals begin at ``first``, into the builder."""
        used = {operand for node in nodes for operand in node.reads()} | set(outputs)
        for ordinal, node in enumerate(nodes, first):
            reads = node.reads()
            if all(operand in self.values for operand in reads if operand != ABSENT):
                self._translate_node(ordinal, node, used)
            else:
                self.note_missing(nodes, first, reads)

    def _translate_node(self, ordinal: int, node: ImportedNode, used: set[int]) -> None:
        context = self._context(ordinal, node, used)
        try:
            results = _checked(context)
        except Unsupported as error:
            self.findings.append(_finding(context, error.reason))
        except _Incomplete:
            return
        else:
            made = zip(node.results, results, strict=False)
            self.values.update({result: value for result, value in made if value != ABSENT})

    def note_missing(self, nodes: Sequence[ImportedNode], first: int, reads: Sequence[int]) -> None:
        """Find the node that was translated, but lacks a result that is read; none below a node
        that was not."""
        refused = {finding.node for finding in self.findings}
        for maker, node in enumerate(nodes, first):
            lacking = [
                position
                for position, result in enumerate(node.results)
                if result in reads and result not in self.values
            ]
            if lacking and node.results[0] in self.values and NodeRef(maker) not in refused:
                reason = f"its optional result {lacking[0]} has no translation"
                opset = self.model.opset(node.domain)
                self.findings.append(
                    ImportFinding(NodeRef(maker), node.op, node.domain, opset, "", reason)
                )
                return

    def _context(self, ordinal: int, node: ImportedNode, used: set[int]) -> OpContext:
        operands = tuple(
            None if operand == ABSENT else self.values[operand] for operand in node.operands
        )
        wanted = tuple(result != ABSENT and result in used for result in node.results)
        attributes: dict[str, ImportedAttribute | RegionBody] = {
            name: self._body(value) if isinstance(value, ImportedRegion) else value
            for name, value in node.attributes
        }
        return OpContext(
            node.op, node.domain, self.model.opset(node.domain), attributes, operands, wanted,
            (ordinal,), node.mark, self.translation,
        )  # fmt: skip

    def _body(self, region: ImportedRegion) -> RegionBody:
        def translate(inputs: Sequence[int]) -> Sequence[int]:
            inner = _Scope(self.model, self.translation, self.findings, dict(self.values))
            inner.values.update(zip(region.inputs, inputs, strict=True))
            for ordinal, constant in region.initializers:
                context = OpContext.of_constant(self.translation)
                inner.values[ordinal] = context.constant(constant)
            before = len(self.findings)
            inner.translate(region.nodes, region.first_node, region.outputs)
            if len(self.findings) > before or any(
                output not in inner.values for output in region.outputs
            ):
                raise _Incomplete
            return [inner.values[output] for output in region.outputs]

        return RegionBody(len(region.inputs), len(region.outputs), translate)


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


def _checked(context: OpContext) -> Sequence[int]:
    """The results of a node; every error names it."""
    where = NodeRef(context.source[0])
    try:
        return translate_node(context)
    except OpTypeError as error:
        raise _contradiction(context, error) from None
    except LimitError as error:
        raise (error if error.where else error.at(where)) from None
    except (IngotError, Unsupported, _Incomplete):
        raise
    except Exception as error:
        why = f"{type(error).__name__} in the translation of {context.op}: {error}"
        what = "a bug in Ingot stopped the translation of a node"
        do = "report it with the model, or change this node"
        raise InternalError(what, where, why, do) from error


def _contradiction(context: OpContext, error: OpTypeError) -> ModelError:
    types = ("none" if value is None else context.type_of(value) for value in context.operands)
    call = message(context.op, "(", joined(", ", types), "): ", error.text)
    what = "a node's operands or attributes contradict its op"
    why = with_makers(call, context.translation.makers)
    do = message("correct the model, or ", OptionRef("shape"))
    return ModelError(what, NodeRef(context.source[0]), why, do)


def _finding(context: OpContext, reason: Text) -> ImportFinding:
    dtype = "" if not context.given() else context.dtype_of(context.given()[0])
    told = with_makers(reason, context.translation.makers)
    return ImportFinding(
        NodeRef(context.source[0]), context.op, context.domain, context.opset, dtype, told
    )
