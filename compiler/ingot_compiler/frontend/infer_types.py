"""Rule ``infer_types``: an ``ImportedModel`` becomes a ``Graph`` of core ops with types.

In: the model and a reader of its constants (small ones become literals). Out: ``Graph``; ModelError
for types that contradict, UnsupportedError that lists all nodes without a translation. Errors refer
to nodes by ordinal: the caller puts the names there (``in_names``). Not done here: any
simplification beyond what is known of shapes (``passes``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ingot_compiler.frontend.context import OpContext, RegionBody, Translation, Unsupported
from ingot_compiler.frontend.findings import ImportFinding, raise_unsupported
from ingot_compiler.frontend.imported import (
    ABSENT,
    DeclaredType,
    ImportedAttribute,
    ImportedModel,
    ImportedNode,
    ImportedRegion,
)
from ingot_compiler.frontend.translate_node import translate_node
from ingot_compiler.ir.builder import GraphBuilder
from ingot_compiler.ir.constants import ConstantReader
from ingot_compiler.ir.errors import InternalError, LimitError, ModelError
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.message import NodeRef, OutputRef, Text, joined, message, with_makers
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.types import TensorType
from ingot_runtime.ingot_error import IngotError


def infer_types(model: ImportedModel, read: ConstantReader) -> Graph:
    """Translate every node in order. ``read`` gives the bytes of a weight by its number."""
    translation = Translation(GraphBuilder(model.inputs), read)
    values: dict[int, int] = {ordinal: ordinal for ordinal in range(len(model.inputs))}
    _add_constants(model, translation, values)
    findings: list[ImportFinding] = []
    _Scope(model, translation, findings, values).translate(model.nodes, 0, model.outputs)
    _check_outputs(model, values, findings)
    raise_unsupported(findings, "")
    outputs = [values[ordinal] for ordinal in model.outputs]
    _check_declared(model, [translation.builder.types[output] for output in outputs])
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
            if any(operand not in self.values for operand in node.reads() if operand != ABSENT):
                missing = _missing_result(
                    self.model, nodes, first, node, self.values, self.findings
                )
                self.findings.extend([missing] if missing else [])
                continue
            context = self._context(ordinal, node, used)
            try:
                results = _checked(context)
            except Unsupported as error:
                self.findings.append(_finding(context, error.reason))
                continue
            except _Incomplete:
                continue
            made = zip(node.results, results, strict=False)
            self.values.update({result: value for result, value in made if value != ABSENT})

    def _context(self, ordinal: int, node: ImportedNode, used: set[int]) -> OpContext:
        operands = tuple(
            None if operand == ABSENT else self.values[operand] for operand in node.operands
        )
        wanted = tuple(result != ABSENT and result in used for result in node.results)
        attributes: dict[str, ImportedAttribute | RegionBody] = {
            name: self._body(value) if isinstance(value, ImportedRegion) else value
            for name, value in node.attributes
        }
        opset = self.model.opset(node.domain)
        return OpContext(
            self.translation,
            node.op,
            node.domain,
            opset,
            attributes,
            operands,
            wanted,
            (ordinal,),
            node.mark,
        )

    def _body(self, region: ImportedRegion) -> RegionBody:
        def translate(inputs: Sequence[int]) -> Sequence[int]:
            inner = _Scope(self.model, self.translation, self.findings, dict(self.values))
            inner.values.update(zip(region.inputs, inputs, strict=True))
            for ordinal, constant in region.initializers:
                context = OpContext(self.translation, "Constant", "", 0, {}, (), (True,), ())
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
        context = OpContext(translation, "Constant", "", 0, {}, (), (True,), tuple(readers), mark)
        values[ordinal] = context.constant(constant)


def _checked(context: OpContext) -> Sequence[int]:
    where = NodeRef(context.source[0])
    try:
        return translate_node(context)
    except OpTypeError as error:
        operands = joined(
            ", ",
            ("none" if value is None else context.type_of(value) for value in context.operands),
        )
        why = with_makers(
            message(context.op, "(", operands, "): ", error.text), context.translation.makers
        )
        raise ModelError(
            "a node's operands or attributes contradict its op",
            where,
            why,
            "correct the model, or --shape",
        ) from None
    except LimitError as error:
        raise (error if error.where else error.at(where)) from None
    except (IngotError, Unsupported, _Incomplete):
        raise
    except Exception as error:
        why = f"{type(error).__name__} in the translation of {context.op}: {error}"
        do = "report it with the model, or change this node"
        raise InternalError(
            "a bug in Ingot stopped the translation of a node", where, why, do
        ) from error


def _finding(context: OpContext, reason: Text) -> ImportFinding:
    dtype = "" if not context.given() else context.dtype_of(context.given()[0])
    told = with_makers(reason, context.translation.makers)
    return ImportFinding(
        NodeRef(context.source[0]), context.op, context.domain, context.opset, dtype, told
    )


def _missing_result(
    model: ImportedModel,
    nodes: Sequence[ImportedNode],
    first: int,
    node: ImportedNode,
    values: dict[int, int],
    findings: Sequence[ImportFinding],
) -> ImportFinding | None:
    """A finding when a node that was translated lacks the result that ``node`` reads; None below a
    node that was not."""
    refused = {finding.node for finding in findings}
    for maker, other in enumerate(nodes, first):
        lacking = [
            position
            for position, result in enumerate(other.results)
            if result in node.reads() and result not in values
        ]
        translated = other.results[0] in values
        if lacking and translated and NodeRef(maker) not in refused:
            reason = f"its optional result {lacking[0]} has no translation"
            return ImportFinding(
                NodeRef(maker), other.op, other.domain, model.opset(other.domain), "", reason
            )
    return None


def _check_outputs(
    model: ImportedModel, values: dict[int, int], findings: list[ImportFinding]
) -> None:
    if not findings:
        lost = ImportedNode(
            "", "", (), tuple(output for output in model.outputs if output not in values), ()
        )
        missing = (
            _missing_result(model, model.nodes, 0, lost, values, findings)
            if lost.operands
            else None
        )
        findings += [missing] if missing else []


def _check_declared(model: ImportedModel, types: Sequence[TensorType]) -> None:
    """What the file says of its outputs must not contradict what its nodes compute."""
    makers = {
        result: ordinal for ordinal, node in enumerate(model.nodes) for result in node.results
    }
    for position, (ordinal, declared, type_) in enumerate(
        zip(model.outputs, model.declared, types, strict=True)
    ):
        if _contradicts(declared, type_):
            of_node = (" of ", NodeRef(makers[ordinal])) if ordinal in makers else ()
            where = message(OutputRef(position), *of_node)
            shape = (
                "any shape"
                if declared.shape is None
                else str(["?" if dim is None else dim for dim in declared.shape])
            )
            why = message(
                f"expected {declared.dtype or 'any type'} {shape} as the model declares, got ",
                type_,
            )
            raise ModelError(
                "an output contradicts its declared type", where, why, "export the model again"
            )


def _contradicts(declared: DeclaredType, type_: TensorType) -> bool:
    if declared.dtype not in (None, type_.dtype):
        return True
    if declared.shape is None:
        return False
    if len(declared.shape) != type_.rank:
        return True
    pairs = zip(declared.shape, type_.shape, strict=True)
    return any(
        isinstance(size, int) and isinstance(got, int) and size != got for size, got in pairs
    )
