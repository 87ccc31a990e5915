"""A model file as ONNX's own data, ready to be imported.

In: the file's bytes. Out: a ``ModelProto`` without its large tensors and without functions of its
own. Not done here: what is in it (``import_model``), how large
its functions may become (``check_functions``).
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx.inliner
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # no types there
from onnx import ModelProto

from ingot_compiler.frontend.check_nodes import canonical_domain
from ingot_compiler.frontend.model.detach_tensors import detach_tensors
from ingot_compiler.frontend.model.sort_nodes import all_nodes
from ingot_compiler.ir.errors import ModelError


def parse_model(source: bytes | memoryview) -> tuple[ModelProto, dict[str, memoryview]]:
    """The model without its large tensors, and those by name; ModelError when it is none."""
    parts = detach_tensors(source)
    model = ModelProto()
    try:
        model.ParseFromString(parts.model)
    except DecodeError as error:
        what, do = "the file is not an ONNX model", "give the path of an .onnx file"
        raise ModelError(what, "model file", f"protobuf: {error}", do) from None
    _check_text(model)
    tensors = model.graph.initializer
    return model, {tensors[position].name: data for position, data in parts.tensors.items()}


def _check_text(model: ModelProto) -> None:
    """Protobuf gives bytes for a name that is not UTF-8."""
    wrong = next((name for name in _names(model) if not isinstance(name, str)), None)
    if wrong is not None:
        what = "a name in the model is not UTF-8"
        raise ModelError(what, "model file", f"got {wrong!r}", "export the model again")


def _names(model: ModelProto) -> Iterator[object]:
    graph = model.graph
    nodes = [*all_nodes(graph.node)]
    nodes += [node for function in model.functions for node in all_nodes(function.node)]
    for node in nodes:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
    yield from (attribute.name for node in nodes for attribute in node.attribute)
    values = (*graph.input, *graph.output, *graph.value_info)
    yield graph.name
    yield from (named.name for named in (*values, *graph.initializer))
    yield from (dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim)
    yield from (entry.domain for entry in model.opset_import)


def expand_functions(model: ModelProto) -> ModelProto:
    """The model with the bodies of its own functions in the place of their calls."""
    if not model.functions:
        return model
    _give_defaults(model)
    try:
        return onnx.inliner.inline_local_functions(model, convert_version=_mixes_opsets(model))
    except (RuntimeError, DecodeError, onnx.checker.ValidationError) as error:
        raise ModelError(
            "the model's own functions cannot be expanded", "model file", str(error), ""
        ) from None


def _give_defaults(model: ModelProto) -> None:
    """Write the defaults of attributes into the calls that leave them out: onnx's inliner forgets
    them."""
    defaults = {
        (canonical_domain(function.domain), function.name, function.overload): list(
            function.attribute_proto
        )
        for function in model.functions
        if function.attribute_proto
    }
    bodies = [model.graph.node, *(function.node for function in model.functions)]
    for node in (node for body in bodies for node in all_nodes(body)):
        called = canonical_domain(node.domain), node.op_type, node.overload
        given = {attribute.name for attribute in node.attribute}
        missing = (each for each in defaults.get(called, ()) if each.name not in given)
        node.attribute.extend(missing)


def _mixes_opsets(model: ModelProto) -> bool:
    own = {canonical_domain(entry.domain): entry.version for entry in model.opset_import}
    return any(
        own.get(canonical_domain(entry.domain), entry.version) != entry.version
        for function in model.functions
        for entry in function.opset_import
    )
