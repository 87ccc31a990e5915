"""Text form of an imported model (``--to imported``); ``parse_imported`` reads it back.

In: an ``ImportedModel``. Out: text that ends with a newline, one tensor or node a line. Not done
here: names (they are beside the model).

The number behind ``#`` is a comment: that of the node. Regions follow the node whose attributes
they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from ingot_compiler.frontend.model.imported import (
    ABSENT,
    DeclaredType,
    ImportedAttribute,
    ImportedModel,
    ImportedNode,
    ImportedRegion,
)
from ingot_compiler.ir.graph import ConstantSource
from ingot_compiler.ir.sizes.profile import profile_text


def print_imported(model: ImportedModel) -> str:
    """Print all of the stage."""
    return "".join(f"{line}\n" for line in _lines(model))


def _lines(model: ImportedModel) -> Iterator[str]:
    opsets = ", ".join(
        f"{json.dumps(domain) if domain else 'onnx'} {version}" for domain, version in model.opsets
    )
    yield f"imported(opset {opsets}) {{"
    if model.expanded_bytes:
        yield f"  expanded {model.expanded_bytes} bytes"
    for ordinal, tensor in enumerate(model.inputs):
        yield f"  input %{ordinal}: {tensor}"
    for profile in model.profiles:
        yield f"  specialisation {profile_text(profile)}"
    for position, constant in model.defaults:
        yield f"  default %{position}: {_attribute(constant)}"
    if model.seed is not None:
        yield f"  seed %{model.seed}"
    if model.forms:
        yield f"  forms {', '.join(model.forms)}"
    for names in model.alike:
        yield f"  alike {', '.join(names)}"
    for ordinal, constant in enumerate(model.initializers, len(model.inputs)):
        yield f"  initializer %{ordinal}: {_attribute(constant)}"
    for ordinal, node in enumerate(model.nodes):
        yield from _node(node, ordinal, "  ")
    for ordinal, declared in zip(model.outputs, model.declared, strict=True):
        yield f"  output %{ordinal}: {_declared(declared)}"
    for ordinal, declared in model.declared_inside:
        yield f"  declares %{ordinal}: {_declared(declared)}"
    yield "}"


def _node(node: ImportedNode, ordinal: int, indent: str) -> Iterator[str]:
    results = f"{_tensors(node.results)} = " if node.results else ""
    attributes = ", ".join(f"{name}={_attribute(value)}" for name, value in node.attributes)
    op = f"{json.dumps(node.domain)}.{node.op}" if node.domain else node.op
    mark = f" on {json.dumps(node.mark)}" if node.mark else ""
    head = f"{indent}{results}{op}({_tensors(node.operands)})"
    yield f"{head}{f' {{{attributes}}}' if attributes else ''}{mark}  # {ordinal}"
    for name, region in node.attributes:
        if isinstance(region, ImportedRegion):
            yield from _region(name, region, indent + "  ")


def _region(name: str, region: ImportedRegion, indent: str) -> Iterator[str]:
    yield f"{indent}{name}({_tensors(region.inputs)}) {{"
    for ordinal, constant in region.initializers:
        yield f"{indent}  initializer %{ordinal}: {_attribute(constant)}"
    for ordinal, node in enumerate(region.nodes, region.first_node):
        yield from _node(node, ordinal, indent + "  ")
    yield f"{indent}  return {_tensors(region.outputs)}".rstrip()
    yield f"{indent}}}"


def _tensors(ordinals: tuple[int, ...]) -> str:
    return ", ".join("_" if ordinal == ABSENT else f"%{ordinal}" for ordinal in ordinals)


def _attribute(value: ImportedAttribute) -> str:
    if isinstance(value, ConstantSource):
        weight = value.weight if value.weight.isdecimal() else json.dumps(value.weight)
        stored = f" as {value.stored}" if value.stored else ""
        return f"{value.type} weight {weight}{stored}"
    if isinstance(value, ImportedRegion):
        return f"region from {value.first_node}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_attribute, value))}]"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _declared(declared: DeclaredType) -> str:
    sizes = (
        None if declared.shape is None else ["?" if dim is None else dim for dim in declared.shape]
    )
    return f"{declared.dtype or '?'}[{'..' if sizes is None else ', '.join(map(str, sizes))}]"
