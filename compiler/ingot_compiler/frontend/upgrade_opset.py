"""Models of opsets 1 to 6: rewritten to opset 7 by the onnx package's own converter.

In: a model (large weights may be taken out). Out: the same model at ``OPSET_MIN``, or as it was when the converter does
not know an op; then the import lists what is too old. Not done here: newer opsets (each op's translation knows its versions).
"""

from __future__ import annotations

import math

import onnx.version_converter
from onnx import ModelProto

from ingot_compiler.frontend.check_nodes import OPSET_MIN, canonical_domain


def upgrade_opset(model: ModelProto) -> ModelProto:
    """Bring an old model to the oldest opset that translations know."""
    versions = [entry.version for entry in model.opset_import if canonical_domain(entry.domain) == ""]
    if not versions or versions[0] >= OPSET_MIN or _has_slopes_per_channel(model):
        return model
    try:
        return onnx.version_converter.convert_version(model, OPSET_MIN)
    except (RuntimeError, onnx.version_converter.ConvertError):
        return model


def _has_slopes_per_channel(model: ModelProto) -> bool:
    """Whether a PRelu has more than one slope: before opset 7 they lay along axis 1, and the converter leaves them as they are."""
    counts = {tensor.name: math.prod(tensor.dims) for tensor in model.graph.initializer}
    return any(
        node.op_type == "PRelu" and counts.get(node.input[1], 2) > 1 for node in model.graph.node if len(node.input) > 1
    )
