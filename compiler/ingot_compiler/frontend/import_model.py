"""Rule ``import_model``: a model file becomes an ``ImportedModel``, weights are stored by number,
names go beside.

In: the file's bytes, a reader of files beside it, a store, the user's sizes and placements. Out:
``ImportedModel`` and ``Names``. Not done here: types of intermediate tensors (``infer_types``),
which files may be read (``external_data``).

Memory: the file's bytes (best a mapping) plus kilobytes; large weights go from the file to the
store as views.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import itemgetter

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto

from ingot_compiler.frontend.check_nodes import canonical_domain, check_node
from ingot_compiler.frontend.families.ml.ml_attributes import (
    is_tree,
    kept_of_tree,
    makes_wide,
    stored_list,
    tree_attributes,
)
from ingot_compiler.frontend.families.training.gradients import expand_gradients
from ingot_compiler.frontend.families.weights.narrow_weights import factors_and_tables
from ingot_compiler.frontend.find_further import Refused, SmallConstants, find_further
from ingot_compiler.frontend.inputs.default_inputs import COUNT_MAX, default_inputs, with_shape
from ingot_compiler.frontend.inputs.input_profiles import Shapes
from ingot_compiler.frontend.inputs.input_types import has_dtype, input_types
from ingot_compiler.frontend.inputs.input_values import input_form, shapes_of, tensors_of
from ingot_compiler.frontend.inputs.random_seed import add_seed
from ingot_compiler.frontend.model.attribute_values import UnsupportedAttribute, attribute_value
from ingot_compiler.frontend.model.check_functions import check_functions
from ingot_compiler.frontend.model.check_names import check_names
from ingot_compiler.frontend.model.findings import ImportFinding, raise_unsupported, tensor_finding
from ingot_compiler.frontend.model.imported import (
    ABSENT,
    DeclaredType,
    ImportedAttribute,
    ImportedModel,
    ImportedNode,
    ImportedRegion,
    fits_input,
)
from ingot_compiler.frontend.model.live_nodes import live_nodes
from ingot_compiler.frontend.model.onnx_types import dtype_of, onnx_dtype_name
from ingot_compiler.frontend.model.place_marks import place_marks
from ingot_compiler.frontend.model.read_model import expand_functions, parse_model
from ingot_compiler.frontend.model.sort_nodes import (
    all_nodes,
    describe_node,
    names_read,
    node_name,
    regions_of,
    sort_nodes,
)
from ingot_compiler.frontend.model.sparse_tensors import expand_sparse
from ingot_compiler.frontend.model.string_constants import write_strings
from ingot_compiler.frontend.model.tensor_data import ExternalReader, UnsupportedDtype
from ingot_compiler.frontend.model.weights import Weights
from ingot_compiler.frontend.op_files import OpFile, add_op_files
from ingot_compiler.frontend.op_table import OpKey
from ingot_compiler.ir.constants import ConstantWriter
from ingot_compiler.ir.errors import LimitError, ModelError
from ingot_compiler.ir.graph import ConstantSource, Names
from ingot_compiler.ir.message import within
from ingot_compiler.ir.types import TensorType
from ingot_compiler.ir.value_forms import TENSOR
from ingot_runtime.format.limits import NAME_SIZE_BYTES_MAX, TENSOR_COUNT_MAX

_NO_DTYPE = "an element type that Ingot has not"


def import_model(
    source: bytes | memoryview,
    read_external: ExternalReader,
    store: ConstantWriter,
    shapes: Shapes,
    place: Sequence[tuple[str, str]],
    max_bytes: int | None = None,
    *,
    strict_dims: bool = False,
    op_files: Sequence[OpFile] = (),
) -> tuple[ImportedModel, Names]:
    """Read a model file.

    ``shapes`` are the user's sizes by input name (``--shape``); ``place`` are (glob, device name)
    pairs, the last match wins; ``max_bytes`` bounds what the model's own functions become;
    ``strict_dims``: dimensions of one name are one size, whatever the model does with them;
    ``op_files`` define ops of the user (``--op``).
    ModelError for a wrong file, UnsupportedError that lists everything unsupported, LimitError for
    what is too large, UserError for a wrong option.
    """
    model, detached = parse_model(source)
    kept_ops = add_op_files(model, op_files)
    expanded_bytes = check_functions(model, max_bytes)
    small = SmallConstants(store)
    weights = Weights(read_external, small.write)
    expanded = expand_functions(model)
    write_strings(expanded.graph)
    expand_sparse(expanded.graph, read_external)
    expand_gradients(expanded.graph)
    importer = _Importer(expanded, detached, weights, small, kept_ops, strict_dims=strict_dims)
    imported, names = importer.run(shapes, place)
    return replace(imported, expanded_bytes=expanded_bytes), names


class _Importer:
    """One import: the file's tables, what is unsupported so far, ordinals given so far."""

    def __init__(
        self,
        model: ModelProto,
        detached: Mapping[str, memoryview],
        weights: Weights,
        small: SmallConstants,
        kept_ops: frozenset[OpKey],
        *,
        strict_dims: bool,
    ) -> None:
        self.kept_ops = kept_ops
        self.strict_dims = strict_dims
        self.ir_version = model.ir_version
        self.graph: GraphProto = model.graph
        self.seed = add_seed(model.graph)
        self.opsets = {
            canonical_domain(entry.domain): entry.version for entry in model.opset_import
        } or {"": 1}
        self.detached = detached
        self.weights = weights
        self.small = small
        self.dtypes = _dtypes(model.graph)
        self.findings: list[ImportFinding] = []
        self.ignored: list[str] = []
        self.values: Sequence[ValueInfoProto] = ()  # the inputs as callers give them
        self.forms: tuple[str, ...] = ()
        self.optional: dict[str, int] = {}  # inputs with a default -> their position
        self.ordinals: dict[str, int] = {"": ABSENT}
        self.tensor_count = 0
        self.inner_nodes: list[tuple[str, str]] = []  # (name, op) of those inside regions
        self.outer_node_count = 0
        self.marks: dict[str, str] = {}

    def run(self, shapes: Shapes, place: Sequence[tuple[str, str]]) -> tuple[ImportedModel, Names]:
        """The whole import, in the order in which ordinals are given."""
        graph = self.graph
        nodes = self._live(graph, sort_nodes(graph))
        inputs = self._inputs(graph, nodes)
        _check_counts(graph, inputs)
        shapes = shapes_of(shapes, self.values, self.forms)
        typed = input_types(inputs, shapes, self.findings, strict_dims=self.strict_dims)
        self.outer_node_count = len(nodes)
        self._check(nodes)
        self._name(_names(inputs))
        initializers = self._initializers(graph, nodes)
        imported = self._marked_nodes(nodes, place)
        outputs = tuple(self.ordinals[value.name] for value in graph.output)
        declared = tuple(map(_declared, graph.output))
        opsets = self._used_opsets(nodes)
        stored = tuple(constant for _, constant in initializers)
        defaults = () if self.findings else self._defaults(graph, typed.types)
        model = ImportedModel(
            typed.types, stored, imported, outputs, declared, opsets, typed.profiles,
            alike=typed.alike, defaults=defaults, declared_inside=self._declared_inside(graph, imported),
            seed=self._seed(inputs), forms=self.forms if set(self.forms) - {TENSOR} else (),
        )  # fmt: skip
        called = tuple((node_name(node), node.op_type) for node in nodes) + tuple(self.inner_nodes)
        names = Names(
            within(graph.name, NAME_SIZE_BYTES_MAX), _names(inputs), _names(graph.output), called, typed.symbols,
            tuple(self.weights.names.values()), tuple(self.ignored),
        )  # fmt: skip
        if self.findings:
            given = [self.ordinals[value.name] for value in inputs if self._is_read(value.name)]
            found = Refused(model, names, given, [ordinal for ordinal, _ in initializers])
            further = find_further(found, self.findings, self.small.read)
            kept = [each for each in further if (each.domain, each.op) not in self.kept_ops]
            raise_unsupported([*self.findings, *kept], graph.name)
        check_names(names)
        return model, names

    def _seed(self, inputs: Sequence[ValueInfoProto]) -> int | None:
        """The position of the input that is the seed."""
        return None if self.seed is None else len(inputs) - 1

    def _live(self, graph: GraphProto, nodes: Sequence[NodeProto]) -> tuple[NodeProto, ...]:
        """Leave out what no output follows from; say so where Ingot could not have run it."""
        live, dead = live_nodes(nodes, _names(graph.output))
        for node in dead:
            if self._unsupported(node):
                self.ignored.append(f"{describe_node(node)}: no node reads its results")
        return live

    def _unsupported(self, node: NodeProto) -> bool:
        """Whether a node would have been refused."""
        before = len(self.findings)
        try:
            self._check([node])
        except ModelError:
            return True
        found, self.findings[before:] = self.findings[before:], []
        return bool(found)

    def _inputs(self, graph: GraphProto, nodes: Sequence[NodeProto]) -> list[ValueInfoProto]:
        """The inputs that a caller gives: not the constants, which older files list as inputs, and
        not those of a type that Ingot has not where nobody reads them."""
        read = {name for node in nodes for name in names_read(node)} | {*_names(graph.output)}
        optional = default_inputs(graph, self.ir_version, read)
        if len(optional) > COUNT_MAX:
            what = f"that {len(optional)} inputs have defaults"
            self.ignored.append(f"{what}: so many are the weights, which no call gives")
            optional = []
        constants = {tensor.name for tensor in graph.initializer} - {*optional}
        inputs: list[ValueInfoProto] = []
        for value in graph.input:
            if value.name in constants:
                continue
            if value.name in read or has_dtype(value):
                inputs.append(value)
            else:
                self.ignored.append(f"input {value.name!r}: nobody reads it")
        inputs = [with_shape(value, self.graph) for value in inputs]
        if self.seed is not None:
            inputs.append(self.seed)
            optional = [*optional, self.seed.name]
        self.values, self.forms = inputs, tuple(map(input_form, inputs))
        inputs = tensors_of(inputs, self.forms)
        places = {value.name: position for position, value in enumerate(inputs)}
        self.optional = {name: places[name] for name in optional}
        return inputs

    def _defaults(
        self, graph: GraphProto, types: Sequence[TensorType]
    ) -> tuple[tuple[int, ConstantSource], ...]:
        """The values of inputs that a call need not give."""
        found: list[tuple[int, ConstantSource]] = []
        for tensor in graph.initializer:
            if tensor.name in self.optional:
                position, where = self.optional[tensor.name], f"initializer {tensor.name!r}"
                raw = self.detached.get(tensor.name)
                default = self.weights.store(tensor, where, raw)
                if not fits_input(default.type, types[position]):
                    why = f"expected {types[position]} as the input declares, got {default.type}"
                    what, do = "the default of an input contradicts it", "export the model again"
                    raise ModelError(what, where, why, do)
                found.append((position, default))
        return tuple(sorted(found, key=itemgetter(0)))

    def _declared_inside(
        self, graph: GraphProto, nodes: Sequence[ImportedNode]
    ) -> tuple[tuple[int, DeclaredType], ...]:
        """What the file says of tensors between nodes."""
        made = {result for node in nodes for result in node.results}
        declared = {self.ordinals.get(value.name, ABSENT): value for value in graph.value_info}
        outputs = {self.ordinals[value.name] for value in graph.output}
        own = sorted((declared.keys() & made) - outputs - {ABSENT})
        found = ((ordinal, _declared(declared[ordinal])) for ordinal in own)
        return tuple(pair for pair in found if pair[1] != DeclaredType(None, None))

    def _marked_nodes(
        self, nodes: Sequence[NodeProto], place: Sequence[tuple[str, str]]
    ) -> tuple[ImportedNode, ...]:
        """The nodes, each with the device that the user asks for, and the marks of all inside."""
        names = tuple(map(node_name, nodes))
        outer = set(names)
        inside = [name for name in map(node_name, all_nodes(nodes)) if name not in outer]
        every = (*names, *inside)
        self.marks = dict(zip(every, place_marks(every, place), strict=True))
        return tuple(self._node(node, self.marks[node_name(node)]) for node in nodes)

    def _used_opsets(self, nodes: Sequence[NodeProto]) -> tuple[tuple[str, int], ...]:
        """The opsets of ONNX's domain and of the domains that some node uses, sorted by domain."""
        used = {canonical_domain(node.domain) for node in all_nodes(nodes)} | {""}
        return tuple(sorted(entry for entry in self.opsets.items() if entry[0] in used))

    def _name(self, names: Iterable[str]) -> None:
        """Give the next ordinals."""
        for name in names:
            self.ordinals[name] = self.tensor_count
            self.tensor_count += 1

    def _check(self, nodes: Sequence[NodeProto]) -> None:
        """Collect everything unsupported that can be seen without a tensor's bytes."""
        for node in nodes:
            dtype = self.dtypes.get(node.input[0], "") if node.input else ""
            is_kept = (canonical_domain(node.domain), node.op_type) in self.kept_ops
            finding = None if is_kept else check_node(node, self.opsets, dtype)
            self.findings += [finding] if finding else []
            for region in regions_of(node):
                self._check(live_nodes(region.node, _names(region.output))[0])

    def _initializers(
        self, graph: GraphProto, nodes: Sequence[NodeProto]
    ) -> tuple[tuple[int, ConstantSource], ...]:
        """Store the initializers that are used, in the file's order; each with its ordinal."""
        outputs = _names(graph.output)
        used = {name for node in nodes for name in names_read(node)} | {*outputs}
        is_whole = graph is self.graph  # only its own tensors were detached
        stored: list[tuple[int, ConstantSource]] = []
        narrow = factors_and_tables(nodes, outputs)
        for tensor in graph.initializer:
            if tensor.name not in used or (is_whole and tensor.name in self.optional):
                continue
            where = f"initializer {tensor.name!r}"
            try:
                raw = self.detached.get(tensor.name) if is_whole else None
                is_narrow = tensor.name in narrow
                source = self.weights.store(tensor, where, raw, may_narrow=is_narrow)
                stored.append((self.tensor_count, source))
            except UnsupportedDtype as error:
                self.findings.append(tensor_finding(where, error.name, _NO_DTYPE))
            self._name([tensor.name])
        return tuple(stored)

    def _node(self, node: NodeProto, mark: str) -> ImportedNode:
        pairs = self._attributes(node)
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
        nodes = self._live(graph, sort_nodes(graph, outside.keys()))
        first = self.outer_node_count + len(self.inner_nodes)
        self.inner_nodes += [(node_name(node), node.op_type) for node in nodes]
        self._name(_names(graph.input))
        constants = self._initializers(graph, nodes)
        inputs = tuple(self.ordinals[value.name] for value in graph.input)
        made = tuple(self._node(node, self.marks.get(node_name(node), "")) for node in nodes)
        outputs = tuple(self.ordinals[value.name] for value in graph.output)
        self.ordinals = outside
        return ImportedRegion(inputs, constants, made, outputs, first)

    def _attributes(self, node: NodeProto) -> list[tuple[str, ImportedAttribute]]:
        """The attributes of a node; tables where it is a tree ensemble that no finding refuses."""
        # The type of what an optional lacks decides nothing.
        kept = (
            item for item in node.attribute if (node.op_type, item.name) != ("Optional", "type")
        )
        given, tables = list(kept), list[tuple[str, ImportedAttribute]]()
        if is_tree(node):
            given = [attribute for attribute in given if kept_of_tree(attribute)]
            if not self.findings:
                tables = tree_attributes(node, self.weights.keep, has_wide=self._has_wide)
        return [*((each.name, self._attribute(node, each)) for each in given), *tables]

    @cached_property
    def _has_wide(self) -> bool:
        """Whether some value of the model may be f64."""
        return "f64" in self.dtypes.values() or makes_wide(all_nodes(self.graph.node))

    def _attribute(self, node: NodeProto, attribute: AttributeProto) -> ImportedAttribute:
        where = f"{describe_node(node)}, attribute {attribute.name!r}"
        if stored := stored_list(node, attribute, self.weights.keep):
            return stored
        if attribute.type == AttributeProto.GRAPH:
            return self._region(attribute.g)
        try:
            return attribute_value(attribute, lambda tensor: self.weights.store(tensor, where))
        except UnsupportedDtype as error:
            self._refuse(node, error.name, _NO_DTYPE)
        except UnsupportedAttribute as error:
            self._refuse(node, "", error.reason)
        return 0  # never seen: a finding ends the import

    def _is_read(self, name: str) -> bool:
        """Whether an input is one that Ingot reads."""
        return not any(finding.node == f"input {name!r}" for finding in self.findings)

    def _refuse(self, node: NodeProto, dtype: str, reason: str) -> None:
        """Note a finding, one per node."""
        name, domain = f"node {node_name(node)!r}", canonical_domain(node.domain)
        if not any(finding.node == name for finding in self.findings):
            opset = self.opsets[domain]
            finding = ImportFinding(name, node.op_type, domain, opset, dtype, reason)
            self.findings.append(finding)


def _check_counts(graph: GraphProto, inputs: Sequence[ValueInfoProto]) -> None:
    for what, count in (("inputs", len(inputs)), ("outputs", len(graph.output))):
        if count > TENSOR_COUNT_MAX:
            where, why = (
                f"model {graph.name!r}",
                f"expected at most {TENSOR_COUNT_MAX}, got {count}",
            )
            raise LimitError(f"the model has too many {what}", where, why, "join some of them")


def _names(values: Iterable[ValueInfoProto]) -> tuple[str, ...]:
    return tuple(value.name for value in values)


def _dtypes(graph: GraphProto) -> dict[str, str]:
    """Tensor -> name of its element type, as far as the file says it; for messages."""
    values = {value.name: _elem_type(value) for value in (*graph.value_info, *graph.input)}
    tensors = {tensor.name: onnx_dtype_name(tensor.data_type) for tensor in graph.initializer}
    return values | tensors


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
