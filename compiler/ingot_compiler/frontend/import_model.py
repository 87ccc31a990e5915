"""Rule ``import_model``: a model file becomes an ``ImportedModel``, weights are stored by number,
names go beside.

In: the file's bytes, a reader of files beside it, a store, the user's sizes and placements. Out:
``ImportedModel`` and ``Names``. Not done here: types of intermediate tensors (``infer_types``),
which files may be read (``external_data``).

Memory: the file's bytes (best a mapping) plus kilobytes; large weights go from the file to the
store as views.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import onnx.inliner
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # protobuf brings no types
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

from ingot_compiler.frontend.attribute_values import UnsupportedAttribute, attribute_value
from ingot_compiler.frontend.check_functions import check_functions
from ingot_compiler.frontend.check_names import check_names
from ingot_compiler.frontend.check_nodes import canonical_domain, check_node
from ingot_compiler.frontend.detach_tensors import detach_tensors
from ingot_compiler.frontend.external_checksum import check_checksum
from ingot_compiler.frontend.findings import ImportFinding, raise_unsupported
from ingot_compiler.frontend.imported import (
    ABSENT,
    DeclaredType,
    ImportedAttribute,
    ImportedModel,
    ImportedNode,
    ImportedRegion,
)
from ingot_compiler.frontend.input_types import Shapes, input_types
from ingot_compiler.frontend.onnx_types import dtype_of, onnx_dtype_name
from ingot_compiler.frontend.place_marks import place_marks
from ingot_compiler.frontend.sort_nodes import (
    describe_node,
    names_read,
    node_name,
    regions_of,
    sort_nodes,
)
from ingot_compiler.frontend.tensor_data import ExternalReader, UnsupportedDtype, tensor_bytes
from ingot_compiler.frontend.upgrade_opset import upgrade_opset
from ingot_compiler.ir.constants import ConstantWriter
from ingot_compiler.ir.errors import LimitError, ModelError
from ingot_compiler.ir.graph import ConstantSource, Names
from ingot_runtime.format.limits import TENSOR_COUNT_MAX


def import_model(
    source: bytes | memoryview,
    read_external: ExternalReader,
    store: ConstantWriter,
    shapes: Shapes,
    place: Sequence[tuple[str, str]],
    max_bytes: int | None = None,
) -> tuple[ImportedModel, Names]:
    """Read a model file.

    ``shapes`` are the user's sizes by input name (``--shape``); ``place`` are (glob, device name)
    pairs, the last match wins; ``max_bytes`` bounds what the model's own functions become.
    ModelError for a wrong file, UnsupportedError that lists everything unsupported, LimitError for
    what is too large, UserError for a wrong option.
    """
    model, detached = _parse(source)
    expanded_bytes = check_functions(model, max_bytes)
    imported, names = _Importer(upgrade_opset(_inlined(model)), detached, read_external, store).run(
        shapes, place
    )
    return replace(imported, expanded_bytes=expanded_bytes), names


def _parse(source: bytes | memoryview) -> tuple[ModelProto, dict[str, memoryview]]:
    """The model without its large tensors, and those by name."""
    parts = detach_tensors(source)
    model = ModelProto()
    try:
        model.ParseFromString(parts.model)
    except DecodeError as error:
        do = "give the path of an .onnx file"
        raise ModelError(
            "the file is not an ONNX model", "model file", f"protobuf: {error}", do
        ) from None
    _check_text(model)
    detached = {
        model.graph.initializer[position].name: data for position, data in parts.tensors.items()
    }
    return model, detached


def _check_text(model: ModelProto) -> None:
    """Protobuf gives bytes for a name that is not UTF-8."""
    graph = model.graph
    nodes = [
        *_all_nodes(graph.node),
        *(node for function in model.functions for node in _all_nodes(function.node)),
    ]
    names: list[Any] = [
        name
        for node in nodes
        for name in (node.name, node.op_type, node.domain, *node.input, *node.output)
    ]
    names += [attribute.name for node in nodes for attribute in node.attribute]
    values = (*graph.input, *graph.output, *graph.value_info)
    names += [
        graph.name,
        *(value.name for value in values),
        *(tensor.name for tensor in graph.initializer),
    ]
    names += [dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim]
    names += [entry.domain for entry in model.opset_import]
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise ModelError(
            "a name in the model is not UTF-8",
            "model file",
            f"got {wrong[0]!r}",
            "export the model again",
        )


def _all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Nodes and those of the graphs that are their attributes."""
    for node in nodes:
        yield node
        for region in regions_of(node):
            yield from _all_nodes(region.node)


def _inlined(model: ModelProto) -> ModelProto:
    """Replace calls of the model's own functions by their bodies."""
    if not model.functions:
        return model
    try:
        return onnx.inliner.inline_local_functions(model, convert_version=_mixes_opsets(model))
    except (RuntimeError, DecodeError, onnx.checker.ValidationError) as error:
        raise ModelError(
            "the model's own functions cannot be expanded", "model file", str(error), ""
        ) from None


def _mixes_opsets(model: ModelProto) -> bool:
    own = {canonical_domain(entry.domain): entry.version for entry in model.opset_import}
    return any(
        own.get(canonical_domain(entry.domain), entry.version) != entry.version
        for function in model.functions
        for entry in function.opset_import
    )


class _Importer:
    """One import: the file's tables, what is unsupported so far, ordinals given so far."""

    def __init__(
        self,
        model: ModelProto,
        detached: dict[str, memoryview],
        read_external: ExternalReader,
        store: ConstantWriter,
    ) -> None:
        self.graph: GraphProto = model.graph
        self.opsets = {
            canonical_domain(entry.domain): entry.version for entry in model.opset_import
        } or {"": 1}
        self.detached = detached
        self.read_external = read_external
        self.checksums: dict[str, str] = {}
        self.store = store
        self.findings: list[ImportFinding] = []
        self.ordinals: dict[str, int] = {"": ABSENT}
        self.tensor_count = 0
        self.weight_names: dict[str, str] = {}  # numbers are given in this order
        self.inner_nodes: list[tuple[str, str]] = []  # (name, op) of those inside regions
        self.outer_node_count = 0
        self.dtypes = {
            value.name: _elem_type(value) for value in (*model.graph.value_info, *model.graph.input)
        }
        self.dtypes |= {
            tensor.name: onnx_dtype_name(tensor.data_type) for tensor in model.graph.initializer
        }

    def run(self, shapes: Shapes, place: Sequence[tuple[str, str]]) -> tuple[ImportedModel, Names]:
        """The whole import, in the order in which ordinals are given."""
        graph = self.graph
        nodes = sort_nodes(graph)
        constants = {tensor.name for tensor in graph.initializer}
        inputs = [value for value in graph.input if value.name not in constants]
        for what, count in (("inputs", len(inputs)), ("outputs", len(graph.output))):
            if count > TENSOR_COUNT_MAX:
                why = f"expected at most {TENSOR_COUNT_MAX}, got {count}"
                raise LimitError(
                    f"the model has too many {what}",
                    f"model {graph.name!r}",
                    why,
                    "join some of them",
                )
        typed = input_types(inputs, shapes, self.findings)
        self.outer_node_count = len(nodes)
        self._check(nodes)
        self._check_sparse(graph)
        self._name(value.name for value in inputs)
        initializers = self._initializers(graph, nodes)
        names = tuple(map(node_name, nodes))
        outer = frozenset(names)
        inner_names = [name for name in map(node_name, _all_nodes(nodes)) if name not in outer]
        marks = place_marks(names, place, inner_names)
        imported = tuple(self._node(node, mark) for node, mark in zip(nodes, marks, strict=True))
        raise_unsupported(self.findings, graph.name)
        used = {canonical_domain(node.domain) for node in _all_nodes(nodes)} | {""}
        model = ImportedModel(
            typed.types, initializers, imported,
            tuple(self.ordinals[value.name] for value in graph.output),
            tuple(map(_declared, graph.output)),
            tuple(sorted((domain, version) for domain, version in self.opsets.items() if domain in used)),
            typed.sizes,
        )  # fmt: skip
        pairs = (
            *((name, node.op_type) for name, node in zip(names, nodes, strict=True)),
            *self.inner_nodes,
        )
        outputs = tuple(value.name for value in graph.output)
        called = tuple(self.weight_names.values())
        called_inputs = tuple(value.name for value in inputs)
        found = Names(graph.name, called_inputs, outputs, pairs, typed.symbols, called)
        check_names(found)
        return model, found

    def _name(self, names: Iterable[str]) -> None:
        """Give the next ordinals."""
        for name in names:
            self.ordinals[name] = self.tensor_count
            self.tensor_count += 1

    def _check(self, nodes: Sequence[NodeProto]) -> None:
        """Collect everything unsupported that can be seen without a tensor's bytes."""
        for node in nodes:
            dtype = self.dtypes.get(node.input[0], "") if node.input else ""
            finding = check_node(node, self.opsets, dtype)
            self.findings += [finding] if finding else []
            for region in regions_of(node):
                self._check(region.node)
                self._check_sparse(region)

    def _check_sparse(self, graph: GraphProto) -> None:
        for sparse in graph.sparse_initializer:
            name = f"initializer {sparse.values.name!r}"
            self.findings.append(
                ImportFinding(
                    name, "", "", 0, onnx_dtype_name(sparse.values.data_type), "a sparse tensor"
                )
            )

    def _initializers(
        self, graph: GraphProto, nodes: Sequence[NodeProto]
    ) -> tuple[ConstantSource, ...]:
        """Store the initializers that are used, in the file's order."""
        used = {name for node in nodes for name in names_read(node)} | {
            value.name for value in graph.output
        }
        detached = self.detached if graph is self.graph else {}
        stored: list[ConstantSource] = []
        for tensor in graph.initializer:
            if tensor.name not in used:
                continue
            try:
                stored.append(
                    self._store(tensor, f"initializer {tensor.name!r}", detached.get(tensor.name))
                )
            except UnsupportedDtype as error:
                reason = "an element type that Ingot has not"
                self.findings.append(
                    ImportFinding(f"initializer {tensor.name!r}", "", "", 0, error.name, reason)
                )
            self._name([tensor.name])
        return tuple(stored)

    def _store(
        self, tensor: TensorProto, where: str, raw: memoryview | None = None
    ) -> ConstantSource:
        type_, data = tensor_bytes(tensor, raw, self.read_external, where)
        check_checksum(tensor, self.read_external, self.checksums, where)
        weight = self.store(data)
        self.weight_names.setdefault(weight, tensor.name or where)
        return ConstantSource(weight, type_)

    def _node(self, node: NodeProto, mark: str) -> ImportedNode:
        pairs = [(attribute.name, self._attribute(node, attribute)) for attribute in node.attribute]
        operands = tuple(self.ordinals[name] for name in node.input)
        self._name(name for name in node.output if name)
        results = tuple(self.ordinals[name] for name in node.output)
        return ImportedNode(
            node.op_type,
            canonical_domain(node.domain),
            tuple(sorted(pairs, key=itemgetter(0))),
            operands,
            results,
            mark,
        )

    def _region(self, graph: GraphProto) -> ImportedRegion:
        """A graph that is an attribute; its names end with it, its ordinals are its own."""
        outside, self.ordinals = self.ordinals, dict(self.ordinals)
        nodes = sort_nodes(graph, outside.keys())
        first = self.outer_node_count + len(self.inner_nodes)
        self.inner_nodes += [(node_name(node), node.op_type) for node in nodes]
        self._name(value.name for value in graph.input)
        at = self.tensor_count
        constants = tuple(enumerate(self._initializers(graph, nodes), at))
        inputs = tuple(self.ordinals[value.name] for value in graph.input)
        made = tuple(self._node(node, "") for node in nodes)
        outputs = tuple(self.ordinals[value.name] for value in graph.output)
        self.ordinals = outside
        return ImportedRegion(inputs, constants, made, outputs, first)

    def _attribute(self, node: NodeProto, attribute: AttributeProto) -> ImportedAttribute:
        where = f"{describe_node(node)}, attribute {attribute.name!r}"
        if attribute.type == AttributeProto.GRAPH:
            return self._region(attribute.g)
        try:
            return attribute_value(attribute, lambda tensor: self._store(tensor, where))
        except (UnsupportedDtype, UnsupportedAttribute) as error:
            dtype = error.name if isinstance(error, UnsupportedDtype) else ""
            reason = (
                error.reason
                if isinstance(error, UnsupportedAttribute)
                else "an element type that Ingot has not"
            )
            domain = canonical_domain(node.domain)
            name = f"node {node_name(node)!r}"
            if not any(finding.node == name for finding in self.findings):
                self.findings.append(
                    ImportFinding(name, node.op_type, domain, self.opsets[domain], dtype, reason)
                )
            return 0  # never seen: a finding ends the import


def _elem_type(value: ValueInfoProto) -> str:
    return (
        onnx_dtype_name(value.type.tensor_type.elem_type)
        if value.type.HasField("tensor_type")
        else ""
    )


def _declared(value: ValueInfoProto) -> DeclaredType:
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return DeclaredType(dtype_of(tensor.elem_type), None)
    dims = (
        dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None
        for dim in tensor.shape.dim
    )
    return DeclaredType(dtype_of(tensor.elem_type), tuple(dims))
