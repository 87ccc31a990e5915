"""Falls back on the function body that ONNX gives for an op: its nodes are translated in place of
the op.

In: a context of an op without a translation. Out: its results. Not done here: the model's own
functions (``import_model``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx.defs
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    TensorProto,
    TypeProto,
    helper,
)
from onnx.defs import OpSchema

from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.model.attribute_values import UnsupportedAttribute, attribute_value
from ingot_compiler.frontend.model.imported import ABSENT, ImportedAttribute, ImportedRegion
from ingot_compiler.frontend.model.onnx_node import RegionBody
from ingot_compiler.frontend.model.onnx_types import onnx_number
from ingot_compiler.frontend.model.sort_nodes import names_read
from ingot_compiler.frontend.model.tensor_data import UnsupportedDtype, tensor_bytes
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.message import message, nodes_text
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_runtime.lazy_dataclass import dataclass

TranslateNode = Callable[[OpContext], Sequence[int]]
Environment = dict[str, int | None]
"""Name in a body -> value id, None for what is absent."""


def function_opset(schema: OpSchema, opset: int) -> int:
    """The newest opset <= ``opset`` for which ``schema`` gives a body, 0 when none."""
    bodies = _bodies(schema)
    versions: list[int] = [
        *bodies.function_opset_versions,
        *bodies.context_dependent_function_opset_versions,
    ]
    # A body stays valid until a newer one takes its place.
    return max((version for version in versions if version <= opset), default=0)


def _bodies(schema: OpSchema) -> Any:
    """Return ``schema`` untyped: onnx's type stubs leave out its function bodies."""
    return schema


def expand_function(context: OpContext, translate_node: TranslateNode) -> tuple[int, ...]:
    """Translate the body of ``context``'s op; Unsupported when it has none."""
    body = _body(context)
    environment: Environment = {"": None}
    for position, name in enumerate(body.input):
        environment[name] = context.optional(position)
    opsets = {entry.domain: entry.version for entry in body.opset_import}
    expansion = _Expansion(context, body, opsets, translate_node)
    expansion.translate(body.node, body.output, environment)
    last = max((position for position, wanted in enumerate(context.wanted) if wanted), default=0)
    results = [environment.get(name) for name in body.output[: last + 1]]
    return tuple(ABSENT if result is None else result for result in results)


@dataclass(frozen=True, slots=True)
class _Expansion:
    """A function body under translation; names are those of the body."""

    context: OpContext
    body: FunctionProto
    opsets: Mapping[str, int]
    translate_node: TranslateNode

    def translate(
        self, nodes: Sequence[NodeProto], outputs: Sequence[str], environment: Environment
    ) -> None:
        """Translate nodes in order; ``environment`` gets their results."""
        wanted = {name for node in nodes for name in names_read(node)} | set(outputs)
        for node in nodes:
            inner = self._inner(node, wanted, environment)
            made = zip(node.output, self.translate_node(inner), strict=False)
            environment.update({name: value for name, value in made if name and value != ABSENT})

    def _inner(self, node: NodeProto, wanted: set[str], environment: Environment) -> OpContext:
        """The context of a node of the body."""
        context = self.context
        regions = {
            attribute.name: self._region(attribute.g, environment)
            for attribute in node.attribute
            if attribute.type == AttributeProto.GRAPH
        }
        return replace(
            context,
            op=node.op_type,
            domain=node.domain,
            opset=self.opsets.get(node.domain, context.opset),
            attributes=_attributes(context, node, self.body) | regions,
            operands=tuple(environment.get(name) for name in node.input),
            wanted=tuple(name in wanted for name in node.output),
        )

    def _region(self, graph: GraphProto, outside: Environment) -> RegionBody:
        def translate(inputs: Sequence[int]) -> Sequence[int]:
            environment = dict(outside)
            environment.update(zip((value.name for value in graph.input), inputs, strict=True))
            for tensor in graph.initializer:
                environment[tensor.name] = self.context.constant(_store(self.context, tensor))
            self.translate(graph.node, [value.name for value in graph.output], environment)
            found = [environment[value.name] for value in graph.output]
            return [value for value in found if value is not None]

        return RegionBody(len(graph.input), len(graph.output), translate)


def _body(context: OpContext) -> FunctionProto:
    schema = onnx.defs.get_schema(context.op, context.opset, context.domain)
    version = function_opset(schema, context.opset)
    body = FunctionProto()
    if version:
        body.ParseFromString(_serialised_body(context, _bodies(schema), version))
    if not body.node:
        raise Unsupported("no translation")
    return body


def _serialised_body(context: OpContext, bodies: Any, version: int) -> bytes:
    """What ONNX gives: the same body for every node, or one for this node and its types."""
    if version in bodies.function_opset_versions:
        return bytes(bodies.get_function_with_opset_version(version))
    types = [_type_proto(context, operand).SerializeToString() for operand in context.operands]
    node = _as_node(context).SerializeToString()
    made = bodies.get_context_dependent_function_with_opset_version(version, node, types)
    return bytes(made)


def _as_node(context: OpContext) -> NodeProto:
    """The node, as ONNX wants it to build a body."""
    operands = [
        "" if value is None else f"x{position}" for position, value in enumerate(context.operands)
    ]
    results = [f"y{position}" if wanted else "" for position, wanted in enumerate(context.wanted)]
    node = helper.make_node(context.op, operands, results)
    for name, value in context.attributes.items():
        if not isinstance(value, (ConstantSource, ImportedRegion, RegionBody)):
            node.attribute.append(helper.make_attribute(name, value))
    return node


def _type_proto(context: OpContext, operand: int | None) -> TypeProto:
    """The type of an operand; an empty one where it is absent."""
    if operand is None:
        return TypeProto()
    shape = [dim if isinstance(dim, int) else str(dim) for dim in context.shape_of(operand)]
    return helper.make_tensor_type_proto(onnx_number(context.dtype_of(operand)), shape)


def _attributes(
    context: OpContext, node: NodeProto, body: FunctionProto
) -> dict[str, ImportedAttribute | RegionBody]:
    """Attributes of a node of the body; references take the op's own value, or the body's
    default."""
    defaults = _defaults(context, body)
    values: dict[str, ImportedAttribute | RegionBody] = {}
    for attribute in node.attribute:
        reference = attribute.ref_attr_name
        if attribute.type == AttributeProto.GRAPH:
            continue
        if not reference:
            values[attribute.name] = _value(context, attribute)
        elif reference in context.attributes:
            values[attribute.name] = context.attributes[reference]
        elif reference in defaults:
            values[attribute.name] = _value(context, defaults[reference])
    return values


def _defaults(context: OpContext, body: FunctionProto) -> dict[str, AttributeProto]:
    """Default values of the op's attributes: the body's, else the schema's."""
    formals = onnx.defs.get_schema(context.op, context.opset, context.domain).attributes
    of_schema = {
        name: formal.default_value
        for name, formal in formals.items()
        if formal.default_value.type != AttributeProto.UNDEFINED
    }
    return of_schema | {attribute.name: attribute for attribute in body.attribute_proto}


def _value(context: OpContext, attribute: AttributeProto) -> ImportedAttribute:
    try:
        return attribute_value(attribute, lambda tensor: _store(context, tensor))
    except UnsupportedDtype as error:
        raise Unsupported(f"its function body uses {error.name}") from None
    except UnsupportedAttribute as error:
        raise Unsupported(message("its function body: ", error.reason)) from None


def _store(context: OpContext, tensor: TensorProto) -> ConstantSource:
    type_, data = tensor_bytes(tensor, None, _no_external, nodes_text(context.source[:1]))
    digest = hashlib.sha256(data).hexdigest()
    context.translation.local[digest] = data
    return ConstantSource(digest, type_)


def _no_external(location: str, *_: int | None) -> memoryview:
    raise OpTypeError("a function body without external data", location)
