"""A model in an opset whose quantization has a scale for each channel, its constants all stored in
one place.

In: a ``ModelProto``. Out: one of opset 13 or later, without Constant nodes of tensors. Not done
here: anything else.
"""

from __future__ import annotations

from onnx import ModelProto, NodeProto, TensorProto, version_converter

from ingot_compiler.ir.errors import ModelError

_OPSET_MIN = 13


def prepare_model(model: ModelProto) -> ModelProto:
    """Return the model in the opset that quantization needs, with constants as initializers;
    ModelError where ONNX cannot convert it."""
    changed = ModelProto()
    changed.CopyFrom(_newer(model))
    nodes: list[NodeProto] = []
    for node in changed.graph.node:
        tensor = _tensor(node)
        if tensor is None:
            nodes.append(node)
        else:
            changed.graph.initializer.append(tensor)
            changed.graph.initializer[-1].name = node.output[0]
    kept = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del changed.graph.node[:]
    changed.graph.node.extend(kept)
    return changed


def _tensor(node: NodeProto) -> TensorProto | None:
    """What a Constant gives, if it is a tensor."""
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
        return None
    return next((item.t for item in node.attribute if item.name == "value"), None)


def _newer(model: ModelProto) -> ModelProto:
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    opset = max(versions, default=_OPSET_MIN)
    if opset >= _OPSET_MIN:
        return model
    try:
        return version_converter.convert_version(model, _OPSET_MIN)
    except version_converter.ConvertError as error:
        why = f"expected opset {_OPSET_MIN} or later, got {opset}; ONNX cannot convert it: {error}"
        do = "export the model in a newer opset"
        raise ModelError("scales per channel need a newer opset", "the model", why, do) from None
