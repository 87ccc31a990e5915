"""The translation of the nodes of a graph or region, in order.

In: imported nodes, the values of the tensors that they see. Out: core ops in the builder, and the
findings: what has no translation. Not done here: initializers of the model, what the file declares
(``infer_types``), the translation of one node (``translate_node``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.control import DivergentNode, DivergentTypes
from ingot_compiler.frontend.build.divergent_branches import DivergentTranslation, Numbered
from ingot_compiler.frontend.build.divergent_nodes import (
    divergent_if,
    divergent_squeeze,
    squeezed_output,
)
from ingot_compiler.frontend.build.translate_node import translate_node
from ingot_compiler.frontend.build.translation import Translation
from ingot_compiler.frontend.model.findings import ImportFinding
from ingot_compiler.frontend.model.imported import (
    ABSENT,
    ImportedAttribute,
    ImportedModel,
    ImportedNode,
    ImportedRegion,
)
from ingot_compiler.frontend.model.onnx_node import RegionBody
from ingot_compiler.ir.errors import InternalError, LimitError, ModelError
from ingot_compiler.ir.message import NodeRef, Text, joined, message, with_makers
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_runtime.ingot_error import IngotError
from ingot_runtime.lazy_dataclass import dataclass


class _Incomplete(Exception):
    """A region holds nodes without a translation; they are among the findings."""


@dataclass(frozen=True, slots=True)
class _Run:
    """The nodes of a graph or region, whose ordinals begin at ``first``; ``used``: the tensors that
    are read or are outputs."""

    nodes: Sequence[ImportedNode]
    first: int
    outputs: frozenset[int]
    used: frozenset[int]


@dataclass(frozen=True, slots=True)
class Scope:
    """A graph or region under translation; ``values``: tensor ordinal -> value id, of all that it
    sees; ``refused``: ordinals of nodes that import refuses, None where it refuses nothing."""

    model: ImportedModel
    translation: Translation
    findings: list[ImportFinding]
    values: dict[int, int]
    refused: frozenset[int] | None = None

    def translate(self, nodes: Sequence[ImportedNode], first: int, outputs: Sequence[int]) -> None:
        """Translate nodes, whose ordinals begin at ``first``, into the builder."""
        used = {operand for node in nodes for operand in node.reads()} | set(outputs)
        run = _Run(nodes, first, frozenset(outputs), frozenset(used))
        self._translate_run(run, enumerate(nodes, first))

    def _translate_run(self, run: _Run, nodes: Iterable[Numbered]) -> None:
        """Translate some of the nodes of a run, in order."""
        waiting = deque(nodes)
        while waiting:
            ordinal, node = waiting.popleft()
            if self.refused is not None and ordinal in self.refused:
                continue
            if self.sees(node):
                context = self.context_of(ordinal, node, run.used)
                with self._collecting(context, node):
                    waiting = deque(self._translate_one(run, context, node, waiting))
            elif self.refused is None:
                self.note_missing(run.nodes, run.first, node.reads())

    def _translate_one(
        self, run: _Run, context: OpContext, node: ImportedNode, behind: Iterable[Numbered]
    ) -> Iterable[Numbered]:
        """Translate a node; return what is left of those behind it."""
        cases = None if node.domain or node.op != "Squeeze" else divergent_squeeze(context)
        if cases is not None:
            return self._translate_divergent(run, context, node, behind, cases)
        try:
            self.take(node, _checked(context))
        except DivergentTypes:
            if node.op != "If" or node.domain:
                raise
            return self._translate_divergent(run, context, node, behind, divergent_if(context))
        return behind

    def _translate_divergent(
        self,
        run: _Run,
        context: OpContext,
        node: ImportedNode,
        behind: Iterable[Numbered],
        cases: DivergentNode,
    ) -> Sequence[Numbered]:
        """Translate a node that is of different types in two cases, and what is independent of it;
        return what is left."""
        following = set(node.results)
        rest: list[Numbered] = []
        others: list[Numbered] = []
        for numbered in behind:
            depends = not following.isdisjoint(numbered[1].reads())
            (rest if depends else others).append(numbered)
            following.update(numbered[1].results if depends else ())
        self._translate_run(run, others)
        declared = dict(zip(self.model.outputs, self.model.declared, strict=True))
        if cases.is_default and not rest and declared.keys() >= run.outputs & {*node.results}:
            self.take(node, (squeezed_output(context),))
            return rest
        scope = _BranchScope(self, run.used, self.values)
        try:
            return DivergentTranslation(
                scope, context, node, cases, declared, run.outputs
            ).translate(rest)
        except Unsupported:
            if not cases.is_default:
                raise
            self.take(node, _checked(context))
            return rest

    def sees(self, node: ImportedNode) -> bool:
        """Whether the operands of a node, and what its regions read, have values."""
        return all(read in self.values for read in node.reads() if read != ABSENT)

    def take(self, node: ImportedNode, results: Sequence[int]) -> None:
        """Remember what a node has become."""
        made = zip(node.results, results, strict=False)
        self.values.update({result: value for result, value in made if value != ABSENT})

    @contextmanager
    def _collecting(self, context: OpContext, node: ImportedNode) -> Generator[None]:
        """Collect what has no translation."""
        try:
            yield
        except Unsupported as error:
            self.findings.append(_finding(context, error.reason))
        except _Incomplete:
            self._note_branches(node)
        except IngotError:
            if self.refused is None:
                raise

    def _note_branches(self, node: ImportedNode) -> None:
        """Find what the branches of a node hold that were not looked at because of the first."""
        known = {finding.node for finding in self.findings}
        for _, region in node.attributes:
            if isinstance(region, ImportedRegion) and not region.inputs:
                inner = replace(self, findings=[], values=dict(self.values))
                with suppress(IngotError):
                    inner.translate_region(region)
                self.findings.extend(item for item in inner.findings if item.node not in known)

    def translate_region(self, region: ImportedRegion) -> None:
        """Translate what a region has, whose inputs are among the values."""
        for ordinal, constant in region.initializers:
            context = OpContext.of_constant(self.translation)
            self.values[ordinal] = context.constant(constant)
        self.translate(region.nodes, region.first_node, region.outputs)

    def note_missing(self, nodes: Sequence[ImportedNode], first: int, reads: Sequence[int]) -> None:
        """Find the node that was translated, but lacks a result that is read; none below a node
        that was not."""
        refused = {finding.node for finding in self.findings}
        for maker, node in enumerate(nodes, first):
            lacking = [
                position
                for position, result in enumerate(node.results)
                if result != ABSENT and result in reads and result not in self.values
            ]
            if lacking and node.results[0] in self.values and NodeRef(maker) not in refused:
                reason = f"its optional result {lacking[0]} has no translation"
                opset = self.model.opset(node.domain)
                self.findings.append(
                    ImportFinding(NodeRef(maker), node.op, node.domain, opset, "", reason)
                )
                return

    def context_of(self, ordinal: int, node: ImportedNode, used: frozenset[int]) -> OpContext:
        """What a node is translated with."""
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
            (ordinal,), node.mark, self.translation.declared.get(node.results[0], ()),
            self.translation,
        )  # fmt: skip

    def _body(self, region: ImportedRegion) -> RegionBody:
        def translate(inputs: Sequence[int]) -> Sequence[int]:
            inner = replace(self, values=dict(self.values))
            inner.values.update(zip(region.inputs, inputs, strict=True))
            before = len(self.findings)
            inner.translate_region(region)
            if len(self.findings) > before or any(
                output not in inner.values for output in region.outputs
            ):
                raise _Incomplete
            return [inner.values[output] for output in region.outputs]

        return RegionBody(len(region.inputs), len(region.outputs), translate)


@dataclass(frozen=True, slots=True)
class _BranchScope:
    """A scope for ``DivergentTranslation``; ``values`` are the scope's own."""

    scope: Scope
    used: frozenset[int]
    values: dict[int, int]

    def inner(self) -> _BranchScope:
        """One that begins with the same values, and keeps its own."""
        values = dict(self.values)
        return _BranchScope(replace(self.scope, values=values, findings=[]), self.used, values)

    def translate_whole(self, ordinal: int, node: ImportedNode) -> None:
        """Put the results of a node into the values; raise where it has none."""
        if not self.scope.sees(node):
            raise Unsupported("an operand of it has no translation")
        try:
            self.scope.take(node, _checked(self.scope.context_of(ordinal, node, self.used)))
        except _Incomplete:
            raise Unsupported(self.scope.findings[0].reason) from None


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
    types = map(partial(_type_text, context), context.operands)
    call = message(context.op, "(", joined(", ", types), "): ", error.text)
    what = "a node's operands or attributes contradict its op"
    why = with_makers(call, context.translation.makers)
    do = "correct the model, or give other sizes of inputs"
    return ModelError(what, NodeRef(context.source[0]), why, do)


def _type_text(context: OpContext, value: int | None) -> Text:
    if value is None:
        return "none"
    return "a sequence" if value < 0 else message(context.type_of(value))


def _finding(context: OpContext, reason: Text) -> ImportFinding:
    tensors = [value for value in context.given() if value >= 0]
    dtype = context.dtype_of(tensors[0]) if tensors else ""
    reason_text = with_makers(reason, context.translation.makers)
    return ImportFinding(
        NodeRef(context.source[0]), context.op, context.domain, context.opset, dtype, reason_text
    )
