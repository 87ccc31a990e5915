"""The products of a model that can run on integers of 8 bits.

In: a ``ModelView``, a product with its epilogue. Out: a ``ProductLayer``, or why it stays in
floats. Not done here: rounding weights (``channel_weights``).
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from ingot_compiler.ir.errors import ModelError
from ingot_compiler.quantizer.epilogues import Epilogue
from ingot_compiler.quantizer.model_view import ModelView
from ingot_compiler.quantizer.op_classes import FLOAT_PRODUCTS
from ingot_compiler.quantizer.weight_layers import number_attribute
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.option_ref import OptionRef

_KEEP = OptionRef("keep")


@dataclass(frozen=True, slots=True)
class ProductLayer:
    """Node ``node`` multiplies ``activations`` by stored ``weights`` (empty: by each other), whose
    outputs lie along ``axis``; ``bias``: stored, one number for each output, or empty. ``result``
    is what its epilogue gives."""

    node: int
    name: str
    activations: tuple[str, ...]
    weights: str
    shape: tuple[int, ...]
    axis: int
    bias: str
    result: str


def find_layer(
    view: ModelView, epilogue: Epilogue, kept: Sequence[str]
) -> ProductLayer | str | None:
    """A layer, why the product is none, or None for one that computes no floats of 32 bits."""
    node, name = view.nodes[epilogue.start], view.name(epilogue.start)
    if node.domain not in ("", "ai.onnx"):
        return None
    if any(fnmatchcase(name, pattern) for pattern in kept):
        return f"{_KEEP} names it"
    if node.op_type in FLOAT_PRODUCTS:
        return "it has no kernel for integers"
    own = tuple(dict.fromkeys(view.activations(node)[:2]))
    if node.input[0] in view.constants:
        return "its first operand is constant"
    if node.input[1] not in view.constants:
        return _of_activations(view, epilogue, own)
    weights = view.stored.get(node.input[1])
    if weights is None:
        return "its weights are computed from others"
    why = _reason(node, weights)
    if why:
        return why
    axis = 1 if node.op_type == "MatMul" or not number_attribute(node, "transB", 0) else 0
    axis = 0 if node.op_type == "Conv" else axis
    shape = tuple(weights.dims)
    bias = _bias(view, node, shape[axis])
    return ProductLayer(
        epilogue.start, name, own[:1], weights.name, shape, axis, bias, epilogue.exit
    )


def finite_weights(model: ModelProto, name: str) -> npt.NDArray[np.float32]:
    """A stored tensor of floats; ModelError where it holds NaN or infinity."""
    (found,) = [tensor for tensor in model.graph.initializer if tensor.name == name]
    array = numpy_helper.to_array(found).astype(np.float32)
    if not np.isfinite(array).all():
        why = "expected finite numbers, got NaN or infinity"
        do = ("repair the weights, or leave their node in floats (", _KEEP, ")")
        raise ModelError("weights cannot be quantized", f"tensor {name!r}", why, do)
    return array


def _of_activations(
    view: ModelView, epilogue: Epilogue, own: tuple[str, ...]
) -> ProductLayer | str:
    name = view.name(epilogue.start)
    if view.nodes[epilogue.start].op_type != "MatMul":
        return "its weights are computed when the model runs"
    dtype = view.types.get(own[0], TensorProto.FLOAT)
    if dtype != TensorProto.FLOAT:
        return f"operands of type {TensorProto.DataType.Name(dtype).lower()}"
    return ProductLayer(epilogue.start, name, own, "", (), 0, "", epilogue.exit)


def _reason(node: NodeProto, weights: TensorProto) -> str:
    """Why a product with stored weights stays in floats; empty where it need not."""
    if weights.data_type != TensorProto.FLOAT:
        return f"weights of type {TensorProto.DataType.Name(weights.data_type).lower()}"
    if node.op_type != "Conv" and len(weights.dims) != 2:
        return f"weights of {len(weights.dims)} axes"
    if node.op_type == "Gemm" and (
        number_attribute(node, "transA", 0)
        or number_attribute(node, "alpha", 1) != 1
        or number_attribute(node, "beta", 1) != 1
    ):
        return "a Gemm that is transposed or scaled"
    return "" if all(weights.dims) else "weights without numbers"


def _bias(view: ModelView, node: NodeProto, count: int) -> str:
    """The stored bias, if it has one number for each output."""
    tensor = view.stored.get(node.input[2]) if len(node.input) > 2 else None
    fits = tensor is not None and tuple(tensor.dims) == (count,)
    return tensor.name if tensor is not None and fits else ""
