"""Nodes against ONNX's own schemas, and against what Ingot translates.

In: nodes and opset versions. Out: ModelError for a node that contradicts its schema (operand count,
attribute names and kinds), findings for ops, domains and opsets without a translation. Not done
here: types (``infer_types``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import AttributeProto, NodeProto
from onnx.defs import OpSchema

from ingot_compiler.frontend.build.expand_function import function_opset
from ingot_compiler.frontend.model.findings import ImportFinding
from ingot_compiler.frontend.model.onnx_node import OPSET_MIN
from ingot_compiler.frontend.model.op_schemas import OF_DOMAIN, newest_opset, schema_of
from ingot_compiler.frontend.model.sort_nodes import describe_node, node_name
from ingot_compiler.frontend.op_table import OPS, names_of
from ingot_compiler.frontend.ops import microsoft
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.suggest import nearest


def check_node(node: NodeProto, opsets: Mapping[str, int], dtype: str) -> ImportFinding | None:
    """What is unsupported about ``node``, None when Ingot has a translation; ModelError when it is
    wrong.

    ``opsets`` maps a domain ("" is ONNX's) to its version; ``dtype`` of the first operand is for
    the message.
    """
    domain = canonical_domain(node.domain)
    if domain not in opsets:
        what, why = "a node's domain has no opset version", f"domain {node.domain!r}"
        do = "export again; every domain needs an opset_import"
        raise ModelError(what, describe_node(node), why, do)
    opset = opsets[domain]
    reason = _reason(node, domain, opset)
    if not reason:
        return None
    return ImportFinding(f"node {node_name(node)!r}", node.op_type, domain, opset, dtype, reason)


def canonical_domain(domain: str) -> str:
    """Give one name, the empty one, for both spellings of the ONNX domain."""
    return "" if domain == "ai.onnx" else domain


def _reason(node: NodeProto, domain: str, opset: int) -> str:
    newest = newest_opset(domain)
    if not newest:
        return OF_DOMAIN.get(domain, "no translation for an op of this domain")
    if domain == "com.microsoft" and node.op_type in microsoft.REFUSED:
        return microsoft.REFUSED[node.op_type]
    if opset > newest:
        return f"this build reads opsets 1 to {newest}{' of this domain' if domain else ''}"
    schema = schema_of(domain, node.op_type, opset)
    if schema is None:
        return _unknown(domain, node.op_type, opset)
    check_schema(node, schema)
    op = OPS.get((domain, node.op_type))
    if op is None:
        return "" if function_opset(schema, opset) else "no translation"
    # Nodes of older opsets are brought into the form of this one.
    if not domain and max(schema.since_version, _since(node.op_type, OPSET_MIN)) < op.since:
        return f"only its form of opset {op.since} and later has a translation"
    return ""


def _unknown(domain: str, op: str, opset: int) -> str:
    if schema_of(domain, op, newest_opset(domain)) is not None:
        return f"the op does not exist in opset {opset}"
    close = nearest(op, names_of(domain))
    known = "no translation" if domain == "com.microsoft" else "ONNX has no such op"
    return known + (f"; did you mean {close}?" if close else "")


def _since(op: str, opset: int) -> int:
    schema = schema_of("", op, opset)
    return schema.since_version if schema else 0


def check_schema(node: NodeProto, schema: OpSchema) -> None:
    """ModelError when operand count, result count or an attribute contradicts ``schema``."""
    _check_count(node, "operands", node.input, schema.min_input, schema.max_input)
    _check_count(node, "results", node.output, schema.min_output, schema.max_output)
    for position, (formal, name) in enumerate(zip(schema.inputs, node.input, strict=False)):
        if not name and formal.option == OpSchema.FormalParameterOption.Single:
            why = f"operand {position} ({formal.name}) must be given"
            raise ModelError("a node lacks an operand", describe_node(node), why, _DO)
    for attribute in node.attribute:
        _check_attribute(node, attribute, schema.attributes)
    given = {attribute.name for attribute in node.attribute}
    for name, formal_attribute in sorted(schema.attributes.items()):
        if formal_attribute.required and name not in given:
            why = f"attribute {name!r} must be given"
            raise ModelError("a node lacks an attribute", describe_node(node), why, _DO)


def _check_attribute(
    node: NodeProto, attribute: AttributeProto, formals: Mapping[str, OpSchema.Attribute]
) -> None:
    """The op has it, and its value is of the right kind."""
    name, where = attribute.name, describe_node(node)
    if name not in formals:
        names = sorted(formals)
        close = nearest(name, names)
        has = f"{node.op_type} has {', '.join(names) or 'no attributes'}"
        do = f"did you mean {close!r}?" if close else has
        raise ModelError("a node has an unknown attribute", where, f"attribute {name!r}", do)
    expected, got = _kind(formals[name]), AttributeProto.AttributeType.Name(attribute.type).lower()
    if expected != got:
        why = f"attribute {name!r}: expected {expected}, got {got}"
        raise ModelError("an attribute is of the wrong kind", where, why, _DO)


def _kind(attribute: OpSchema.Attribute) -> str:
    """The member's own name; the type stubs know no enum here."""
    return str(attribute.type).rsplit(".", 1)[-1].lower()


def attribute_kinds(domain: str, op: str, opset: int) -> dict[str, str]:
    """Which kind of value each attribute of an op has, in lower case ("ints"); none where there is
    no such op."""
    schema = schema_of(domain, op, opset)
    return (
        {name: _kind(attribute) for name, attribute in schema.attributes.items()} if schema else {}
    )


def _check_count(node: NodeProto, what: str, names: Sequence[str], least: int, most: int) -> None:
    if not least <= len(names) <= most:
        no_limit = most > 1 << 20
        expected = f"at least {least}" if no_limit else f"{least} to {most}"
        expected = str(least) if least == most else expected
        why = f"expected {expected}, got {len(names)}"
        raise ModelError(f"a node has the wrong number of {what}", describe_node(node), why, _DO)


_DO = "export the model again; the node contradicts the ONNX standard"
