"""Networks of the size of MLPerf Tiny's: keywords (a DS-CNN), images (ResNet-8), anomalies (an
autoencoder).

In: a name. Out: the model, with seeded random weights scaled by fan-in; norms are folded into them,
as they are before a model goes onto a device. Not done here: the fourth, a MobileNet
(``examples/microcontroller``); training; 8 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

F32 = onnx.TensorProto.FLOAT


class Network:
    """A network under construction; each method returns the name of a value."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(0)

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Any node of one output."""
        name = f"{op}{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, inputs, [name], name=f"/{name}", **attributes))
        return name

    def _weight(self, *shape: int, fan_in: int) -> str:
        values = self._random.standard_normal(shape) * np.sqrt(2 / fan_in)
        name = f"w{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def convolution(
        self, x: str, widths: tuple[int, int], size: tuple[int, int] = (3, 3), **attributes: Any
    ) -> str:
        """A convolution with a bias; ``widths``: channels of its input and output."""
        inside, outside = widths[0] // attributes.get("group", 1), widths[1]
        w = self._weight(outside, inside, *size, fan_in=inside * size[0] * size[1])
        bias = self._weight(outside, fan_in=100)
        return self.node("Conv", x, w, bias, auto_pad="SAME_UPPER", **attributes)

    def dense(self, x: str, inside: int, outside: int) -> str:
        """A product with a bias."""
        w = self._weight(inside, outside, fan_in=inside)
        return self.node("Gemm", x, w, self._weight(outside, fan_in=100))

    def classes(self, x: str, channels: int, count: int) -> str:
        """The mean over the image, and a softmax over classes."""
        flat = self.node("Flatten", self.node("GlobalAveragePool", x))
        return self.node("Softmax", self.dense(flat, channels, count))

    def model(self, given: list[int], result: str, made: list[int]) -> onnx.ModelProto:
        """The model from the input ``x`` to a value."""
        x = helper.make_tensor_value_info("x", F32, given)
        y = helper.make_tensor_value_info(result, F32, made)
        graph = helper.make_graph(self._nodes, "tiny", [x], [y], self._weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def ds_cnn() -> onnx.ModelProto:
    """Which of 12 keywords: 49 x 10 coefficients, four depthwise separable blocks of 64."""
    net = Network()
    x = net.node("Relu", net.convolution("x", (1, 64), (10, 4), strides=[2, 2]))
    for _ in range(4):
        x = net.node("Relu", net.convolution(x, (64, 64), group=64))
        x = net.node("Relu", net.convolution(x, (64, 64), (1, 1)))
    return net.model([1, 1, 49, 10], net.classes(x, 64, 12), [1, 12])


def resnet8() -> onnx.ModelProto:
    """Which of 10 classes: 32 x 32 pixels, three residual blocks of 16, 32 and 64."""
    net = Network()
    x = net.node("Relu", net.convolution("x", (3, 16)))
    for inside, outside, stride in ((16, 16, 1), (16, 32, 2), (32, 64, 2)):
        step = [stride, stride]
        y = net.node("Relu", net.convolution(x, (inside, outside), strides=step))
        y = net.convolution(y, (outside, outside))
        if stride > 1:
            x = net.convolution(x, (inside, outside), (1, 1), strides=step)
        x = net.node("Relu", net.node("Add", x, y))
    return net.model([1, 3, 32, 32], net.classes(x, 64, 10), [1, 10])


def autoencoder() -> onnx.ModelProto:
    """What a machine's sound is without what is unusual: 640 numbers through 8."""
    net, x = Network(), "x"
    widths = (640, 128, 128, 128, 128, 8, 128, 128, 128, 128)
    for inside, outside in pairwise(widths):
        x = net.node("Relu", net.dense(x, inside, outside))
    return net.model([1, 640], net.dense(x, 128, 640), [1, 640])


TINY: dict[str, Callable[[], onnx.ModelProto]] = {
    "ds_cnn": ds_cnn,
    "resnet8": resnet8,
    "autoencoder": autoencoder,
}
