"""Models of opsets 1 to 6: rewritten to opset 7 by the onnx package's own converter.

In: a model (large weights may be taken out). Out: the same model at ``OPSET_MIN``, or as it was
when the converter does not know an op; then the import lists what is too old. Not done here: newer
opsets (each op's translation knows its versions).

The converter leaves the slopes of a PRelu as they are, which before opset 7 lay along axis 1: they
get the axes behind it.
"""

from __future__ import annotations

import onnx.shape_inference
import onnx.version_converter
from onnx import ModelProto, NodeProto, helper

from ingot_compiler.frontend.check_nodes import OPSET_MIN, canonical_domain


def upgrade_opset(model: ModelProto) -> ModelProto:
    """Bring an old model to the oldest opset that translations know."""
    versions = [
        entry.version for entry in model.opset_import if canonical_domain(entry.domain) == ""
    ]
    if not versions or versions[0] >= OPSET_MIN:
        return model
    spread = _with_spread_slopes(model)
    if spread is None:
        return model
    try:
        return onnx.version_converter.convert_version(spread, OPSET_MIN)
    except (RuntimeError, onnx.version_converter.ConvertError):
        return model


def _with_spread_slopes(model: ModelProto) -> ModelProto | None:
    """The model with one slope per channel shaped [C, 1, ..]; None when a PRelu's rank is not
    known."""
    if not any(node.op_type == "PRelu" for node in model.graph.node):
        return model
    ranks = _ranks(model)
    changed = ModelProto()
    changed.CopyFrom(model)
    del changed.graph.node[:]
    for node in model.graph.node:
        if node.op_type == "PRelu" and len(node.input) == 2:
            rank = ranks.get(node.input[0])
            if rank is None:
                return None
            node = _spread(node, rank, changed)  # noqa: PLW2901
        changed.graph.node.append(node)
    return changed


def _spread(node: NodeProto, rank: int, model: ModelProto) -> NodeProto:
    """The node reading its slopes through an Unsqueeze, which goes before it."""
    if rank <= 2:
        return node
    x, slopes = node.input
    spread = f"{node.output[0]}/slopes"
    model.graph.node.append(
        helper.make_node("Unsqueeze", [slopes], [spread], axes=list(range(1, rank - 1)))
    )
    other = NodeProto()
    other.CopyFrom(node)
    other.input[:] = [x, spread]
    return other


def _ranks(model: ModelProto) -> dict[str, int]:
    """Tensor -> rank, where the onnx package's shape inference finds it."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    values = (*graph.input, *graph.value_info, *graph.output)
    typed = [value for value in values if value.type.tensor_type.HasField("shape")]
    return {value.name: len(value.type.tensor_type.shape.dim) for value in typed}
