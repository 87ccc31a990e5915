"""Stage 2, ``ImportedModel``: the model file's operations with ordinals for names and numbers for weights.

In: what ``import_model`` read. Out: the frozen stage and its text view. Not done here: reading files, types (``infer_types``).

Tensor ordinals: graph inputs, then initializers, then node results in topological order; -1 is an absent optional tensor.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from ingot_compiler.ir.dims import Dim, format_dim
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.types import DType, TensorType

ABSENT = -1


@dataclass(frozen=True, slots=True)
class ImportedRegion:
    """A graph that is an attribute. Its tensors' ordinals continue after those it can see, and are used nowhere else.

    Initializers follow the inputs in the order of ordinals; node ``i`` has the ordinal ``first_node + i``.
    """

    inputs: tuple[int, ...]
    initializers: tuple[tuple[int, ConstantSource], ...]
    nodes: tuple[ImportedNode, ...]
    outputs: tuple[int, ...]
    first_node: int


ImportedAttribute = (
    int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | ConstantSource | ImportedRegion
)


@dataclass(frozen=True, slots=True)
class ImportedNode:
    """One node as in the file; its ordinal is its position. ``domain`` is "" for the ONNX domain."""

    op: str
    domain: str
    attributes: tuple[tuple[str, ImportedAttribute], ...]  # sorted by name
    operands: tuple[int, ...]
    results: tuple[int, ...]
    mark: str = ""

    def reads(self) -> tuple[int, ...]:
        """Its operands, and the tensors outside that its regions read; each once."""
        return tuple(dict.fromkeys((*self.operands, *_captured(self))))


def _captured(node: ImportedNode) -> Iterator[int]:
    for _, region in node.attributes:
        if isinstance(region, ImportedRegion):
            made = {result for inner in region.nodes for result in inner.results}
            own = {*region.inputs, *(ordinal for ordinal, _ in region.initializers), *made}
            reads = (*(ordinal for inner in region.nodes for ordinal in inner.reads()), *region.outputs)
            yield from (ordinal for ordinal in reads if ordinal not in own and ordinal != ABSENT)


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """What the file says of an output; None: says nothing (of the element type, the rank, a dimension)."""

    dtype: DType | None
    shape: tuple[int | None, ...] | None


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """Every op is recognised, every operand is defined before its use; names are beside it (``ir.graph.Names``)."""

    inputs: tuple[TensorType, ...]
    initializers: tuple[ConstantSource, ...]
    nodes: tuple[ImportedNode, ...]
    outputs: tuple[int, ...]
    declared: tuple[DeclaredType, ...]  # one per output
    opsets: tuple[tuple[str, int], ...]  # sorted by domain
    sizes: tuple[tuple[str, int], ...] = ()  # what ``--shape`` binds: (symbol, size)
    expanded_bytes: int = 0  # of the bodies that took the place of calls of the model's own functions

    def opset(self, domain: str) -> int:
        """The opset version of a domain that some node uses."""
        return dict(self.opsets)[domain]


def print_imported(model: ImportedModel) -> str:
    """Text view of the stage (``--to imported``); one tensor or node a line, deterministic."""
    return "\n".join(_lines(model)) + "\n"


def _lines(model: ImportedModel) -> Iterator[str]:
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in model.opsets)
    yield f"imported(opset {opsets}) {{"
    for ordinal, tensor in enumerate(model.inputs):
        yield f"  input %{ordinal}: {tensor}"
    for name, size in model.sizes:
        yield f"  special {name} = {size}"
    for ordinal, constant in enumerate(model.initializers, len(model.inputs)):
        yield f"  initializer %{ordinal}: {_attribute(constant)}"
    for ordinal, node in enumerate(model.nodes):
        yield f"  {_node(node)} #{ordinal}" + (f" on {json.dumps(node.mark)}" if node.mark else "")
        yield from _regions(node, "    ")
    for ordinal, declared in zip(model.outputs, model.declared, strict=True):
        yield f"  output %{ordinal}: {_declared(declared)}"
    yield "}"


def _regions(node: ImportedNode, indent: str) -> Iterator[str]:
    for name, region in node.attributes:
        if not isinstance(region, ImportedRegion):
            continue
        yield f"{indent}{name}({', '.join(map(_tensor, region.inputs))}) {{"
        for ordinal, constant in region.initializers:
            yield f"{indent}  initializer %{ordinal}: {_attribute(constant)}"
        for ordinal, inner in enumerate(region.nodes, region.first_node):
            yield f"{indent}  {_node(inner)} #{ordinal}"
            yield from _regions(inner, indent + "    ")
        yield f"{indent}  return {', '.join(map(_tensor, region.outputs))}"
        yield f"{indent}}}"


def _node(node: ImportedNode) -> str:
    results = ", ".join(map(_tensor, node.results))
    attributes = ", ".join(f"{name}={_attribute(value)}" for name, value in node.attributes)
    op = f"{node.domain}.{node.op}" if node.domain else node.op
    return f"{results} = {op}({', '.join(map(_tensor, node.operands))})" + (f" {{{attributes}}}" if attributes else "")


def _tensor(ordinal: int) -> str:
    return "_" if ordinal == ABSENT else f"%{ordinal}"


def _attribute(value: ImportedAttribute) -> str:
    if isinstance(value, ConstantSource):
        return f"{value.type} weight {value.weight}"
    if isinstance(value, ImportedRegion):
        return f"region of {len(value.nodes)} nodes"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_attribute, value))}]"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _declared(declared: DeclaredType) -> str:
    if declared.shape is None:
        return f"{declared.dtype or '?'}[..]"
    dims: tuple[Dim | None, ...] = declared.shape
    return f"{declared.dtype or '?'}[{', '.join('?' if dim is None else format_dim(dim) for dim in dims)}]"
