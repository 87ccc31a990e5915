"""The products of a model whose weights can be stored in blocks of a few bits.

In: a ``ModelProto`` with its tensors inside. Out: ``WeightLayer``s, and what was left out and why.
Not done here: rounding (``round_weights``), rewriting (``quantize_model``).
"""

from __future__ import annotations

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # no types there
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from ingot_compiler.ir.errors import ModelError, UserError
from ingot_runtime.lazy_dataclass import dataclass

Model = ModelProto
"""A model file as ONNX's own data, for those outside of the frontend."""
_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16)


@dataclass(frozen=True, slots=True)
class WeightLayer:
    """Node ``node`` of the graph multiplies ``activation`` by [depth, columns] weights, which lie
    turned in the file if ``is_turned``."""

    node: int
    name: str
    activation: str
    weights: str
    depth: int
    columns: int
    is_turned: bool


def load_model(path: str) -> ModelProto:
    """A model with all of its tensors; UserError, ModelError when it cannot be read."""
    try:
        return onnx.load(path)  # pyright: ignore[reportUnknownMemberType]  # half typed
    except OSError as error:
        raise UserError("cannot read the model", path, error.strerror or str(error)) from error
    except (DecodeError, onnx.checker.ValidationError) as error:
        what, do = "the file is not an ONNX model", "give the path of an .onnx file"
        raise ModelError(what, path, f"protobuf: {error}", do) from None


def find_layers(graph: GraphProto, block: int) -> tuple[list[WeightLayer], list[tuple[str, str]]]:
    """Products with a constant matrix of floats, and (node, why) of those that stay as they are."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    given = {value.name for value in graph.input}
    layers: list[WeightLayer] = []
    left: list[tuple[str, str]] = []
    for number, node in enumerate(graph.node):
        tensor = tensors.get(node.input[1]) if _is_product(node) else None
        if tensor is None or tensor.name in given or len(tensor.dims) != 2:
            continue
        layer = _layer(number, node, tensor)
        why = _reason(node, tensor, layer, block)
        if why:
            left.append((layer.name, why))
        else:
            layers.append(layer)
    return layers, left


def _is_product(node: NodeProto) -> bool:
    return node.domain in ("", "ai.onnx") and node.op_type in ("MatMul", "Gemm")


def _layer(number: int, node: NodeProto, tensor: TensorProto) -> WeightLayer:
    is_turned = bool(number_attribute(node, "transB", 0))
    depth, columns = tensor.dims[::-1] if is_turned else tensor.dims
    name = node.name or node.output[0]
    return WeightLayer(number, name, node.input[0], tensor.name, depth, columns, is_turned)


def number_attribute(node: NodeProto, name: str, default: float) -> float:
    """An attribute that is a number, whole or not."""
    for attribute in node.attribute:
        if attribute.name == name:
            return float(attribute.i if attribute.type == attribute.INT else attribute.f)
    return default


def _reason(node: NodeProto, tensor: TensorProto, layer: WeightLayer, block: int) -> str:
    """Why a product stays as it is; empty where it need not."""
    if tensor.data_type not in _FLOATS:
        return f"weights of type {TensorProto.DataType.Name(tensor.data_type).lower()}"
    if layer.depth % block or not layer.depth:
        return f"blocks of {block} do not divide a depth of {layer.depth}"
    if node.op_type == "Gemm" and (
        number_attribute(node, "transA", 0)
        or number_attribute(node, "alpha", 1) != 1
        or number_attribute(node, "beta", 1) != 1
    ):
        return "a Gemm that is transposed or scaled"
    return ""
