"""Ops that the user defines by graphs of core ops: inlined where a node is one.

In: the context of such a node, the definition. Out: value ids of its results. Not done here: ONNX
functions (``op_files``), the text form of definitions (``ingot_compiler.programs``).

A parameter behind those of the operands is an attribute of its name. Sizes that parameters call by
names are those of the operands; a name that stands for several is one size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.custom_op import CustomOp
from ingot_compiler.frontend.build.known_values import as_known_values
from ingot_compiler.frontend.build.operand_sizes import require_dim
from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Dim, Sum, dim_add, dim_mul, substitute, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.message import message
from ingot_compiler.ir.op_type_error import OpTypeError
from ingot_compiler.ir.sizes.symbol_terms import bare_symbol
from ingot_compiler.ir.types import FLOATS, TensorType


def inline(context: OpContext, op: CustomOp) -> Sequence[int]:
    """The graph in the place of a node."""
    if None in context.operands:
        raise OpTypeError(f"{len(op.parameters)} operands, each given", "one that is absent")
    operands = [*context.given(), *_from_attributes(context, op)]
    bindings: dict[str, Dim] = {}
    for name, operand, tensor_type in zip(op.parameters, operands, op.types, strict=True):
        _bind(context.type_of(operand), tensor_type, name, bindings)
    for name, operand, tensor_type in zip(op.parameters, operands, op.types, strict=True):
        _compare(context, operand, tensor_type, name, bindings)
    values = dict(zip(op.graph.inputs, operands, strict=True))
    for node in op.graph.nodes:
        made = _node(context, node, values, bindings)
        values.update(zip(node.results, made, strict=False))
    return [values[value] for value in op.graph.outputs]


def _from_attributes(context: OpContext, op: CustomOp) -> list[int]:
    """Values of the parameters behind those of operands."""
    count = len(context.operands)
    if count > len(op.parameters):
        expected = f"at most {len(op.parameters)} operands, as {context.op} is defined"
        raise OpTypeError(expected, count)
    names = op.parameters[count:]
    missing = [name for name in names if name not in context.attributes]
    if missing:
        operands = "operand" if count == 1 else "operands"
        expected = f"attribute {missing[0]}, or an operand {count} in its place"
        raise OpTypeError(expected, f"{count} {operands}, and {_listed(context.attributes)}")
    unknown = sorted(context.attributes.keys() - set(names))
    if unknown:
        raise OpTypeError(f"attributes {', '.join(names) or 'none'}", unknown[0])
    types = op.types[count:]
    return [_as_value(context, *entry) for entry in zip(names, types, strict=True)]


def _listed(attributes: Mapping[str, object]) -> str:
    return f"attributes {', '.join(sorted(attributes))}" if attributes else "no attributes"


def _as_value(context: OpContext, name: str, tensor_type: TensorType) -> int:
    """An attribute as a number or a vector of the parameter's element type."""
    given = context.attributes[name]
    items = given if isinstance(given, tuple) else (given,)
    numbers = [item for item in items if isinstance(item, int | float)]
    if len(numbers) < len(items):
        raise OpTypeError(
            f"attribute {name} to be numbers, for a parameter {tensor_type}", repr(given)
        )
    is_list = isinstance(given, tuple)
    if tensor_type.dtype in FLOATS:
        vector = [float(item) for item in numbers]
        if is_list:
            return context.float_vector(tensor_type.dtype, vector)
        return context.scalar(tensor_type.dtype, vector[0])
    whole = [int(item) for item in numbers]
    if whole != numbers:
        raise OpTypeError(
            f"attribute {name} to be whole, for a parameter {tensor_type}", repr(given)
        )
    return context.known(
        tensor_type.dtype, as_known_values(whole, (len(whole),) if is_list else ())
    )


def _bind(own: TensorType, tensor_type: TensorType, name: str, bindings: dict[str, Dim]) -> None:
    """Note what the names of sizes stand for."""
    if own.dtype != tensor_type.dtype or own.rank != tensor_type.rank:
        raise OpTypeError(message(tensor_type, " as parameter ", name, " is defined"), own)
    for wanted, size in zip(tensor_type.shape, own.shape, strict=True):
        found = bare_symbol(wanted)
        if found is not None:
            bindings.setdefault(found, size)


def _compare(
    context: OpContext,
    operand: int,
    tensor_type: TensorType,
    name: str,
    bindings: Mapping[str, Dim],
) -> None:
    """Refuse sizes other than the definition says, now or at run time."""
    for wanted, size in zip(tensor_type.shape, context.shape_of(operand), strict=True):
        bound = substitute(wanted, bindings)
        expected = message("size ", wanted, " of parameter ", name, " to be ", bound)
        require_dim(context, dim_add(bound, dim_mul(size, -1)), expected, size)


def _node(
    context: OpContext, node: Node, values: Mapping[int, int], bindings: dict[str, Dim]
) -> Sequence[int]:
    if node.regions or node.op == "constant":
        what = "control flow" if node.regions else "stored weights"
        raise Unsupported(f"its definition has {what}: write it as an ONNX function")
    table = {name: _attribute(value, bindings) for name, value in node.attributes}
    if node.op == "read_dim":
        own = str(table["symbol"])
        (fresh,) = context.fresh_symbols(1)
        bindings[own], table["symbol"] = symbol(fresh), fresh
    operands = [values[operand] for operand in node.operands]
    if node.op == "literal" or len(node.results) > 1:
        builder = context.translation.builder
        return builder.add_many(node.op, operands, table, context.source, context.mark)
    return (context.add(node.op, *operands, **table),)


def _attribute(value: Attribute, bindings: Mapping[str, Dim]) -> Attribute:
    if isinstance(value, tuple):
        return tuple(_attribute(item, bindings) for item in value)
    return substitute(value, bindings) if isinstance(value, Sum) else value
