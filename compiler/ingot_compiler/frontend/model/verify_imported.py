"""Checks that an imported model is well formed: what ``infer_types`` may rely on.

In: an ``ImportedModel``. Out: nothing, or ``InternalError`` that names the node. Not done here:
types of tensors between nodes.

Inputs have types, over sizes that are numbers or symbols. Every tensor is defined once, and before
it is used, where it is seen. Every op is one that Ingot reads in the opset of its domain, with
operands, results and attributes as ONNX's schema of it asks for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field, replace

from onnx import AttributeProto, NodeProto

from ingot_compiler.frontend.check_nodes import attribute_kinds, check_node
from ingot_compiler.frontend.families.ml.ml_attributes import has_tables
from ingot_compiler.frontend.model.imported import (
    ABSENT,
    ImportedAttribute,
    ImportedModel,
    ImportedNode,
    ImportedRegion,
    fits_input,
)
from ingot_compiler.frontend.model.op_schemas import newest_opset
from ingot_compiler.ir.dims import Dim, is_symbol_name, symbol, symbols_of
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.problem import Path, Problem, require_none
from ingot_compiler.ir.value_forms import count_of
from ingot_runtime.lazy_dataclass import dataclass

INPUT, INITIALIZER, OUTPUT, DECLARED, DEFAULT = -1, -2, -3, -4, -5
"""First numbers of paths of what is no node."""


def verify_imported(model: ImportedModel) -> None:
    """Raise InternalError for the first problem."""
    require_none(find_imported_problems(model), "node", "imported model", "imported")


def find_imported_problems(model: ImportedModel) -> Iterator[Problem]:
    """Every problem, in order; later ones may follow from the first."""
    yield from _whole(model)
    for number, tensor_type in enumerate(model.inputs):
        if not all(_is_size(dim) for dim in tensor_type.shape):
            path, name = (INPUT, number), f"input {number}"
            expected = "numbers from 0 on, and symbols"
            yield Problem(path, name, expected, str(tensor_type), "sizes of inputs")
    for number, constant in enumerate(model.initializers):
        yield from _constant(constant, (INITIALIZER, number), f"initializer {number}")
    own = range(len(model.inputs) + len(model.initializers))
    checker = _Checker(dict(model.opsets), set(own), set(range(len(model.nodes))))
    yield from checker.nodes(model.nodes, own, ())
    seen = {*own, *(result for node in model.nodes for result in node.results)} - {ABSENT}
    for number, ordinal in enumerate(model.outputs):
        if ordinal not in seen:
            path, name = (OUTPUT, number), f"output {number}"
            yield Problem(path, name, "a tensor of the model", f"%{ordinal}", "outputs are defined")
    yield from _declared_inside(model)


def _declared_inside(model: ImportedModel) -> Iterator[Problem]:
    made = {result for node in model.nodes for result in node.results}
    for number, (ordinal, _) in enumerate(model.declared_inside):
        if ordinal not in made:
            path, expected = (DECLARED, number), "a result of a node, once"
            yield Problem(path, "declares", expected, f"%{ordinal}", "declared types")
        made.discard(ordinal)


def _whole(model: ImportedModel) -> Iterator[Problem]:
    domains = [domain for domain, _ in model.opsets]
    if domains != sorted(set(domains)):
        yield Problem((), "opsets", "every domain once, in order", repr(domains), "opsets")
    yield from _sizes(model)
    yield from _alike(model)
    if model.seed is not None and not 0 <= model.seed < len(model.inputs):
        yield Problem((), "seed", "an input", f"%{model.seed}", "seeds")
    yield from _defaults(model)
    if model.forms and sum(map(count_of, model.forms)) != len(model.inputs):
        got = f"{', '.join(model.forms)} for {len(model.inputs)} inputs"
        yield Problem((), "forms", "forms of all inputs", got, "forms of inputs")
    if len(model.declared) != len(model.outputs):
        got = f"{len(model.declared)} for {len(model.outputs)}"
        yield Problem((), "outputs", "a declared type for each output", got, "declared types")
    if model.expanded_bytes < 0:
        got, rule = str(model.expanded_bytes), "bytes of expanded functions"
        yield Problem((), "expanded", "at least 0", got, rule)


def _sizes(model: ImportedModel) -> Iterator[Problem]:
    """Problems of the sizes that ``--shape`` binds."""
    free = {
        name
        for tensor_type in model.inputs
        for dim in tensor_type.shape
        for name in symbols_of(dim)
    }
    for profile in model.profiles:
        for item in profile:
            if item.symbol not in free or not 0 <= item.least <= item.most:
                expected = "sizes from 0 on for a symbol of an input"
                yield Problem((), "specialisation", expected, str(item), "sizes given")
        if len({item.symbol for item in profile}) != len(profile):
            yield Problem((), "specialisation", "one size for each symbol", "two", "sizes given")


def _defaults(model: ImportedModel) -> Iterator[Problem]:
    left = set(range(len(model.inputs)))
    for number, (position, constant) in enumerate(model.defaults):
        path = (DEFAULT, number)
        if position not in left:
            yield Problem(path, "default", "an input, once", f"%{position}", "defaults")
            continue
        left.discard(position)
        yield from _constant(constant, path, f"default {number}")
        kind = model.inputs[position]
        if not fits_input(constant.type, kind):
            yield Problem(path, "default", f"a value of {kind}", str(constant.type), "defaults")


def _alike(model: ImportedModel) -> Iterator[Problem]:
    """Problems of the symbols that have one name."""
    free = {
        name
        for tensor_type in model.inputs
        for dim in tensor_type.shape
        for name in symbols_of(dim)
    }
    listed = [name for group in model.alike for name in group]
    if len(set(listed)) != len(listed) or not free.issuperset(listed):
        got = ", ".join(listed)
        yield Problem((), "alike", "symbols of inputs, each once", got, "sizes of one name")


def _is_size(dim: Dim) -> bool:
    if isinstance(dim, int):
        return dim >= 0
    return any(is_symbol_name(name) and dim == symbol(name) for name in symbols_of(dim))


def _constant(constant: ConstantSource, path: Path, name: str) -> Iterator[Problem]:
    if not all(isinstance(dim, int) and dim >= 0 for dim in constant.type.shape):
        yield Problem(path, name, "numbers from 0 on", str(constant.type), "sizes of constants")
    if not constant.weight:
        yield Problem(path, name, "the number of its weight", "none", "constants")


@dataclass(slots=True)
class _Checker:
    """What is taken so far: ordinals of tensors, and of nodes."""

    opsets: dict[str, int]
    defined: set[int] = field(default_factory=set[int])
    numbers: set[int] = field(default_factory=set[int])

    def nodes(
        self, nodes: Sequence[ImportedNode], seen: Collection[int], path: Path
    ) -> Iterator[Problem]:
        """The problems of some nodes, which see the tensors ``seen`` and their own."""
        here = set(seen)
        for index, node in enumerate(nodes):
            yield from self.node(node, here, (*path, index))
            here |= {result for result in node.results if result != ABSENT}

    def node(self, node: ImportedNode, seen: Collection[int], at: Path) -> Iterator[Problem]:
        """The problems of one node and its regions."""
        yield from _schema(node, self.opsets, at)
        yield from self.used(node.operands, seen, at, node.op)
        names = [name for name, _ in node.attributes]
        if names != sorted(set(names)):
            got = ", ".join(names)
            yield Problem(at, node.op, "each once, in order", got, "names of attributes")
        for number, (name, value) in enumerate(node.attributes):
            if isinstance(value, ImportedRegion):
                yield from self.region(value, seen, (*at, number), node.op)
            elif isinstance(value, ConstantSource):
                for problem in _constant(value, at, name):
                    yield replace(problem, name=node.op)
        yield from self.define(node.results, at, node.op)

    def region(
        self, region: ImportedRegion, seen: Collection[int], path: Path, op: str
    ) -> Iterator[Problem]:
        """The problems of a graph that is an attribute; what it defines ends with it."""
        node = path[:-1]
        numbers = set(range(region.first_node, region.first_node + len(region.nodes)))
        if numbers & self.numbers or region.first_node < 0:
            expected, got = "numbers that no other node has", f"from {region.first_node}"
            yield Problem(node, op, expected, got, "numbers of nodes")
        self.numbers |= numbers
        own = (*region.inputs, *(ordinal for ordinal, _ in region.initializers))
        yield from self.define(own, node, op)
        for _, constant in region.initializers:
            yield from _constant(constant, node, op)
        yield from self.nodes(region.nodes, {*seen, *own}, path)
        made = {result for inner in region.nodes for result in inner.results}
        yield from self.used(region.outputs, {*seen, *own, *made}, node, op)

    def define(self, ordinals: Sequence[int], at: Path, op: str) -> Iterator[Problem]:
        """Each is new in the whole model."""
        expected, rule = "a tensor that is new", "tensors are defined once"
        for ordinal in ordinals:
            if ordinal != ABSENT and (ordinal in self.defined or ordinal < 0):
                yield Problem(at, op, expected, f"%{ordinal}", rule)
            self.defined.add(ordinal)

    def used(
        self, ordinals: Sequence[int], seen: Collection[int], at: Path, op: str
    ) -> Iterator[Problem]:
        """Each is there already."""
        expected, rule = "a tensor that is defined before", "tensors are defined before use"
        for ordinal in ordinals:
            if ordinal != ABSENT and ordinal not in seen:
                yield Problem(at, op, expected, f"%{ordinal}", rule)


def _schema(node: ImportedNode, opsets: dict[str, int], at: Path) -> Iterator[Problem]:
    """What the import asks of a node in the file; not of one whose attributes became tables."""
    if has_tables(node):
        return
    try:
        finding = check_node(_proto(node, opsets), opsets, "")
    except ModelError as error:
        got = f"one of which {error.what} ({error.why})"
        yield Problem(at, node.op, "a node of its ONNX schema", got, "ops")
        return
    # An op of a domain that Ingot does not know has a definition of the user's.
    if finding and newest_opset(node.domain):
        got = f"{node.domain}.{node.op}: {finding.reason}"
        yield Problem(at, node.op, "an op that Ingot reads", got, "ops")


def _proto(node: ImportedNode, opsets: dict[str, int]) -> NodeProto:
    """The node as in a file, without the contents of its attributes."""
    made = NodeProto(op_type=node.op, domain=node.domain)
    made.input.extend("" if ordinal == ABSENT else str(ordinal) for ordinal in node.operands)
    made.output.extend("" if ordinal == ABSENT else str(ordinal) for ordinal in node.results)
    kinds = attribute_kinds(node.domain, node.op, opsets.get(node.domain, 0))
    for name, value in node.attributes:
        listed = isinstance(value, ConstantSource) and kinds.get(name) in ("floats", "ints")
        # An empty list may be of any kind, and a long one is stored; strings of a tensor are
        # listed.
        texts = kinds.get(name) == "tensor" and isinstance(value, tuple)
        as_said = listed or texts or (value == () and name in kinds)
        kind = kinds[name].upper() if as_said else _kind(value)
        made.attribute.append(AttributeProto(name=name, type=kind))
    return made


_KINDS: dict[type, AttributeProto.AttributeType] = {
    int: AttributeProto.INT,
    float: AttributeProto.FLOAT,
    str: AttributeProto.STRING,
    ConstantSource: AttributeProto.TENSOR,
    ImportedRegion: AttributeProto.GRAPH,
}
_KINDS_OF_LISTS: dict[type, AttributeProto.AttributeType] = {
    int: AttributeProto.INTS,
    float: AttributeProto.FLOATS,
    str: AttributeProto.STRINGS,
}


def _kind(value: ImportedAttribute) -> AttributeProto.AttributeType:
    if isinstance(value, tuple):
        return _KINDS_OF_LISTS[type(value[0]) if value else int]
    return _KINDS[type(value)]
