"""Falls back on the function body that ONNX gives for an op: its nodes are translated in place of
the op.

In: a context of an op without a translation. Out: its results. Not done here: the model's own
functions (``import_model``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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

from ingot_compiler.frontend.attribute_values import UnsupportedAttribute, attribute_value
from ingot_compiler.frontend.context import OpContext, RegionBody, Unsupported
from ingot_compiler.frontend.imported import ABSENT, ImportedAttribute, ImportedRegion
from ingot_compiler.frontend.onnx_types import onnx_number
from ingot_compiler.frontend.sort_nodes import names_read
from ingot_compiler.frontend.tensor_data import UnsupportedDtype, tensor_bytes
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.message import message, nodes_text
from ingot_compiler.ir.op_type_error import OpTypeError

TranslateNode = Callable[[OpContext], Sequence[int]]


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
    """The same object: onnx's type stubs leave out what it says of function bodies."""
    return schema


def expand_function(context: OpContext, translate_node: TranslateNode) -> tuple[int, ...]:
    """Translate the body of ``context``'s op; Unsupported when it has none."""
    body = _body(context)
    environment: dict[str, int | None] = {"": None}
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
        self, nodes: Sequence[NodeProto], outputs: Sequence[str], environment: dict[str, int | None]
    ) -> None:
        """Translate nodes in order; ``environment`` gets their results."""
        context = self.context
        wanted_names = {name for node in nodes for name in names_read(node)} | set(outputs)
        for node in nodes:
            attributes = _attributes(context, node, self.body) | {
                attribute.name: self._region(attribute.g, environment)
                for attribute in node.attribute
                if attribute.type == AttributeProto.GRAPH
            }
            inner = OpContext(
                context.translation, node.op_type, node.domain, self.opsets.get(node.domain, context.opset),
                attributes, tuple(environment.get(name) for name in node.input),
                tuple(name in wanted_names for name in node.output), context.source, context.mark,
            )  # fmt: skip
            made = zip(node.output, self.translate_node(inner), strict=False)
            environment.update({name: value for name, value in made if name and value != ABSENT})

    def _region(self, graph: GraphProto, outside: Mapping[str, int | None]) -> RegionBody:
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
    schema = onnx.defs.get_schema(context.op, context.opset, "")
    version = function_opset(schema, context.opset)
    if not version:
        raise Unsupported("no translation")
    body = FunctionProto()
    bodies = _bodies(schema)
    if version in bodies.function_opset_versions:
        body.ParseFromString(bodies.get_function_with_opset_version(version))
        return body
    node, types = _as_node(context)
    body.ParseFromString(
        bodies.get_context_dependent_function_with_opset_version(
            version, node.SerializeToString(), types
        )
    )
    if not body.node:
        raise Unsupported("no translation")
    return body


def _as_node(context: OpContext) -> tuple[NodeProto, list[bytes]]:
    """The node and its operands' types, as ONNX wants them to build a body."""
    operands = [
        "" if value is None else f"x{position}" for position, value in enumerate(context.operands)
    ]
    results = [f"y{position}" if wanted else "" for position, wanted in enumerate(context.wanted)]
    node = helper.make_node(context.op, operands, results)
    for name, value in context.attributes.items():
        if not isinstance(value, (ConstantSource, ImportedRegion, RegionBody)):
            node.attribute.append(helper.make_attribute(name, value))
    types: list[bytes] = []
    for operand in context.operands:
        type_ = TypeProto()
        if operand is not None:
            tensor = context.type_of(operand)
            shape = [dim if isinstance(dim, int) else str(dim) for dim in tensor.shape]
            type_ = helper.make_tensor_type_proto(onnx_number(tensor.dtype), shape)
        types.append(type_.SerializeToString())
    return node, types


def _attributes(
    context: OpContext, node: NodeProto, body: FunctionProto
) -> dict[str, ImportedAttribute | RegionBody]:
    """Attributes of a node of the body; references take the op's own value, or the body's
    default."""
    defaults = {attribute.name: attribute for attribute in body.attribute_proto}
    schema_defaults = {
        name: formal.default_value
        for name, formal in onnx.defs.get_schema(context.op, context.opset, "").attributes.items()
        if formal.default_value.type != AttributeProto.UNDEFINED
    }
    values: dict[str, ImportedAttribute | RegionBody] = {}
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            continue
        reference = attribute.ref_attr_name
        if not reference:
            values[attribute.name] = _value(context, attribute)
        elif reference in context.attributes:
            values[attribute.name] = context.attributes[reference]
        elif reference in defaults or reference in schema_defaults:
            values[attribute.name] = _value(
                context, defaults.get(reference) or schema_defaults[reference]
            )
    return values


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
