"""A model whose large weights are integers of 4 or 8 bits in blocks: ``MatMulNBits`` of ONNX
Runtime, which needs no newer opset of the model.

In: a ``ModelProto``, its layers, perhaps their activations. Out: bytes of a model, the error of
each layer. Not done here: running the model (``ingot quantize``), static quantization of
activations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ingot_compiler.frontend.model.model_bytes import drop_unread, model_bytes
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.quantizer.round_weights import Matrix, RoundedWeights, round_weights
from ingot_compiler.quantizer.weight_layers import WeightLayer
from ingot_runtime.lazy_dataclass import dataclass

_DOMAIN = "com.microsoft"


@dataclass(frozen=True, slots=True)
class LayerError:
    """``weights``: rms of what rounding changed by the rms of the weights, as seen by the
    activations where they are known."""

    name: str
    depth: int
    columns: int
    weights: float


Squares = npt.NDArray[np.float64]


def quantize_model(
    model: ModelProto,
    layers: Sequence[WeightLayer],
    bits: int,
    block: int,
    squares: Mapping[str, Squares],
) -> tuple[bytes, list[LayerError]]:
    """Replace the weights of ``layers``; ``squares``: activation -> mean square along its last axis
    (none: not known)."""
    changed = ModelProto()
    changed.CopyFrom(model)
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    errors: list[LayerError] = []
    nodes = dict(enumerate([node] for node in model.graph.node))
    for layer in layers:
        tensor = tensors[layer.weights]
        known = squares.get(layer.activation)
        rounded = round_weights(_matrix(tensor, layer), bits, block, known)
        errors.append(LayerError(layer.name, layer.depth, layer.columns, rounded.error))
        stored = _stored(layer, tensor, rounded, bits)
        changed.graph.initializer.extend(stored)
        names = [part.name for part in stored]
        nodes[layer.node] = _product(model.graph.node[layer.node], layer, names, bits, block)
    del changed.graph.node[:]
    changed.graph.node.extend(node for made in nodes.values() for node in made)
    drop_unread(changed)
    if all(entry.domain != _DOMAIN for entry in changed.opset_import):
        changed.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    return model_bytes(changed), errors


def _stored(
    layer: WeightLayer, tensor: TensorProto, rounded: RoundedWeights, bits: int
) -> list[TensorProto]:
    """Numbers and scales of a layer; scales have the type that the weights had."""
    name = f"{layer.weights}_q{layer.node}"
    scales = rounded.scales.astype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
    return [
        numpy_helper.from_array(_packed(rounded.codes, bits), name),
        numpy_helper.from_array(scales.reshape(-1), f"{name}_scales"),
    ]


def _matrix(tensor: TensorProto, layer: WeightLayer) -> Matrix:
    array = numpy_helper.to_array(tensor).astype(np.float32)
    if not np.isfinite(array).all():
        why = "expected finite numbers, got NaN or infinity"
        do = "repair the weights; a scale cannot hold them"
        raise ModelError("weights cannot be quantized", f"tensor {tensor.name!r}", why, do)
    return array.T if layer.is_turned else array


def _packed(codes: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.uint8]:
    """Two codes of 4 bits in a byte, the first in the low bits."""
    return codes if bits == 8 else codes[..., ::2] + codes[..., 1::2] * np.uint8(16)


def _product(
    node: NodeProto, layer: WeightLayer, names: Sequence[str], bits: int, block: int
) -> list[NodeProto]:
    """``MatMulNBits`` in the place of a product, and the sum with the bias of a Gemm."""
    bias = node.input[2] if len(node.input) > 2 else ""
    result = f"{node.output[0]}_product" if bias else node.output[0]
    product = helper.make_node(
        "MatMulNBits", [layer.activation, *names], [result], node.name, domain=_DOMAIN,
        K=layer.depth, N=layer.columns, bits=bits, block_size=block,
    )  # fmt: skip
    if not bias:
        return [product]
    name = f"{node.name}/bias" if node.name else ""
    return [product, helper.make_node("Add", [result, bias], [node.output[0]], name)]
