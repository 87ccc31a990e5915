"""Small quantized models as quantizers write them: QuantizeLinear and DequantizeLinear around every
product, weights and biases stored as integers.

In: how it is quantized. Out: an ONNX model. Not done here: running it (``test_quantized_models``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper
from tests.harness.end_to_end_harness import make_model, tensor

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Scheme:
    """Element types of activations and weights; a scale for each output channel or one; zero points
    of weights that are not in the middle."""

    activations: type[np.integer[Any]] = np.uint8
    weights: type[np.integer[Any]] = np.int8
    per_channel: bool = True
    skewed: bool = False

    @property
    def weight_zero(self) -> int:
        """In the middle of the weights' type, or beside it."""
        middle = 128 if self.weights is np.uint8 else 0
        return middle + 5 if self.skewed else middle


@dataclass(slots=True)
class Layers:
    """Collects the nodes and stored tensors of a model."""

    scheme: Scheme
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    stored: dict[str, Array] = field(default_factory=dict[str, Array])
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    def add(self, op: str, inputs: list[str], **attributes: Any) -> str:
        """One node; its result."""
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def constant(self, array: Any) -> str:
        """A stored tensor."""
        name = f"stored_{len(self.stored)}"
        self.stored[name] = np.asarray(array)
        return name

    def quantized(self, x: str, scale: float, zero: int) -> str:
        """The integers of ``x``."""
        parameters = [
            self.constant(np.float32(scale)),
            self.constant(self.scheme.activations(zero)),
        ]
        return self.add("QuantizeLinear", [x, *parameters])

    def requantized(self, x: str, scale: float, zero: int) -> str:
        """``x`` through integers and back, by parameters that both nodes share."""
        integers = self.quantized(x, scale, zero)
        return self.add("DequantizeLinear", [integers, *self.nodes[-1].input[1:]])

    def weights(self, *shape: int, axis: int = 0) -> str:
        """Stored weights behind DequantizeLinear; channels of the result lie along ``axis``."""
        scheme, limits = self.scheme, np.iinfo(self.scheme.weights)
        integers = self.random.integers(limits.min, limits.max + 1, shape)
        count = shape[axis] if scheme.per_channel else ()
        scale = self.random.uniform(0.001, 0.004, count).astype(np.float32)
        zero = np.full(count, scheme.weight_zero, scheme.weights)
        operands = [integers.astype(scheme.weights), scale, zero]
        names = [self.constant(operand) for operand in operands]
        return self.add("DequantizeLinear", names, axis=axis)

    def bias(self, count: int) -> str:
        """Stored i32 behind DequantizeLinear."""
        integers = self.random.integers(-9000, 9000, count).astype(np.int32)
        operands = [integers, np.float32(0.00037), np.int32(0)]
        return self.add("DequantizeLinear", [self.constant(operand) for operand in operands])

    def model(self, x: tuple[int | str, ...], output: str) -> ModelProto:
        """From input ``x`` of floats to integers."""
        dtype = helper.np_dtype_to_tensor_dtype(np.dtype(self.scheme.activations))
        outputs = [tensor(output, None, dtype)]
        return make_model(self.nodes, [tensor("x", x)], outputs, self.stored)


def middle(scheme: Scheme, zero: int) -> int:
    """A zero point of the scheme's activations, ``zero`` of u8."""
    return zero if scheme.activations is np.uint8 else zero - 128


def perceptron(scheme: Scheme) -> ModelProto:
    """Two layers, one with transposed weights, a Relu between."""
    layers = Layers(scheme)
    x = layers.requantized("x", 0.0217, middle(scheme, 121))
    first = layers.add("Gemm", [x, layers.weights(24, 33), layers.bias(24)], transB=1)
    x = layers.requantized(layers.add("Relu", [first]), 0.0531, middle(scheme, 0))
    second = layers.add("MatMul", [x, layers.weights(24, 17, axis=1)])
    return layers.model(("rows", 33), layers.quantized(second, 0.0713, middle(scheme, 130)))


def network(scheme: Scheme) -> ModelProto:
    """Convolutions with pads, one of each channel alone, a residual sum, pools, a concatenation of
    two scales, a product at the end."""
    layers = Layers(scheme)
    zero = middle(scheme, 119)
    x = layers.requantized("x", 0.0243, zero)
    bias = layers.bias(8)
    image = layers.add("Conv", [x, layers.weights(8, 3, 3, 3), bias], pads=[1] * 4, strides=[2, 2])
    image = layers.requantized(layers.add("Relu", [image]), 0.0287, middle(scheme, 0))
    each = layers.add("Conv", [image, layers.weights(8, 1, 3, 3)], pads=[1] * 4, group=8)
    each = layers.requantized(each, 0.0491, zero)
    total = layers.requantized(layers.add("Add", [image, each]), 0.0613, zero)
    pooled = layers.add("MaxPool", [total], kernel_shape=[2, 2], strides=[2, 2])
    pooled = layers.requantized(pooled, 0.0613, zero)
    other = layers.add("AveragePool", [each], kernel_shape=[2, 2], strides=[2, 2])
    other = layers.requantized(other, 0.0391, zero)
    both = layers.requantized(layers.add("Concat", [pooled, other], axis=1), 0.0613, zero)
    flat = layers.requantized(layers.add("Flatten", [both]), 0.0613, zero)
    result = layers.add("MatMul", [flat, layers.weights(16 * 9, 10, axis=1)])
    return layers.model(("batch", 3, 12, 12), layers.quantized(result, 0.211, zero))


def attention(scheme: Scheme) -> ModelProto:
    """Scores and values of one head: products of two quantized activations, softmax between."""
    layers = Layers(scheme)
    zero = middle(scheme, 127)
    x = layers.requantized("x", 0.0193, zero)
    parts = [
        layers.requantized(layers.add("MatMul", [x, layers.weights(16, 16, axis=1)]), 0.0377, zero)
        for _ in range(3)
    ]
    query, key, value = parts
    key = layers.requantized(layers.add("Transpose", [key], perm=[0, 2, 1]), 0.0377, zero)
    scores = layers.requantized(layers.add("MatMul", [query, key]), 0.193, zero)
    shares = layers.add("Softmax", [scores], axis=-1)
    shares = layers.requantized(shares, 1 / 251, middle(scheme, 0))
    mixed = layers.add("MatMul", [shares, value])
    return layers.model(("batch", "length", 16), layers.quantized(mixed, 0.0171, zero))


def dynamic(weights: type[np.integer[Any]] = np.int8) -> ModelProto:
    """A layer whose operand is quantized by its own range when the model runs."""
    layers = Layers(Scheme(weights=weights))
    limits = np.iinfo(weights)
    w = layers.random.integers(limits.min, limits.max + 1, (20, 12)).astype(weights)
    zero = np.array(0 if weights is np.int8 else 131, weights)
    names = [layers.constant(operand) for operand in (w, zero, np.float32(0.0041))]
    layers.nodes.append(helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]))
    total = layers.add("MatMulInteger", ["q", names[0], "z", names[1]])
    wide = layers.add("Cast", [total], to=TensorProto.FLOAT)
    scaled = layers.add("Mul", [wide, layers.add("Mul", ["s", names[2]])])
    bias = layers.constant(layers.random.normal(size=12).astype(np.float32))
    layers.add("Add", [scaled, bias])
    name = layers.nodes[-1].output[0]
    return make_model(
        layers.nodes, [tensor("x", ("rows", 20))], [tensor(name, None)], layers.stored
    )


def dynamic_convolution(groups: int = 1) -> ModelProto:
    """A convolution with pads whose image is quantized by its own range; weights of u8."""
    layers = Layers(Scheme())
    w = layers.random.integers(0, 256, (6, 4 // groups, 3, 3)).astype(np.uint8)
    names = [layers.constant(operand) for operand in (w, np.uint8(131), np.float32(0.0041))]
    layers.nodes.append(helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]))
    operands = ["q", names[0], "z", names[1]]
    total = layers.add("ConvInteger", operands, pads=[1] * 4, group=groups)
    wide = layers.add("Cast", [total], to=TensorProto.FLOAT)
    name = layers.add("Mul", [wide, layers.add("Mul", ["s", names[2]])])
    x = tensor("x", ("batch", 4, 7, 6))
    return make_model(layers.nodes, [x], [tensor(name, None)], layers.stored)
