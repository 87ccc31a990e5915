"""Write a MobileNet for small machines: width 0.25, 96 x 96 pixels, two classes, as MLPerf Tiny has
it for "is there a person?".

In: perhaps a width, a size and a number of classes. Out: ``dist/person.onnx``, ``dist/person.npz``
with one picture. Not done here: training; the weights are seeded random numbers, scaled by fan-in.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

FOLDER = "dist"
# Channels at width 1, stride: of the blocks of MobileNet (version 1).
BLOCKS = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
    (512, 1), (512, 1), (512, 1), (512, 1), (512, 1), (1024, 2), (1024, 1),
)  # fmt: skip


class Graph:
    """Nodes and weights of a model under construction."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.random = np.random.default_rng(0)

    def weight(self, name: str, *shape: int, fan_in: int) -> str:
        """Return the name of a new weight."""
        values = self.random.standard_normal(shape) * np.sqrt(2 / fan_in)
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def node(self, op: str, name: str, *inputs: str, **attributes: Any) -> str:
        """Return the name of the output of a new node."""
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"/{name}", **attributes))
        return name

    def convolution(
        self, name: str, x: str, widths: tuple[int, int], stride: int, group: int
    ) -> str:
        """Return a convolution, 3 x 3 where it has a stride or groups, and its ReLU."""
        inside, outside = widths
        size = 3 if group > 1 or stride > 1 else 1
        fan_in = inside // group * size * size
        w = self.weight(f"{name}.weight", outside, inside // group, size, size, fan_in=fan_in)
        b = self.weight(f"{name}.bias", outside, fan_in=10000)
        pads = {"pads": [size // 2] * 4, "strides": [stride] * 2, "group": group}
        return self.node("Relu", f"{name}.relu", self.node("Conv", name, x, w, b, **pads))


def make_model(width: float = 0.25, size: int = 96, class_count: int = 2) -> onnx.ModelProto:
    """Return the network."""
    graph, channels = Graph(), int(32 * width)
    x = graph.convolution("conv", "image", (3, channels), 2, 1)
    for number, (full, stride) in enumerate(BLOCKS):
        x = graph.convolution(f"depth{number}", x, (channels, channels), stride, channels)
        x = graph.convolution(f"point{number}", x, (channels, int(full * width)), 1, 1)
        channels = int(full * width)
    x = graph.node("Flatten", "flat", graph.node("GlobalAveragePool", "pool", x))
    w = graph.weight("head.weight", channels, class_count, fan_in=channels)
    graph.node("Softmax", "scores", graph.node("MatMul", "head", x, w))
    f32 = onnx.TensorProto.FLOAT
    image = helper.make_tensor_value_info("image", f32, [1, 3, size, size])
    scores = helper.make_tensor_value_info("scores", f32, [1, class_count])
    made = helper.make_graph(graph.nodes, "person", [image], [scores], graph.weights)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def main() -> None:
    """Write both files."""
    width, size, classes = (sys.argv[1:] + ["0.25", "96", "2"][len(sys.argv) - 1 :])[:3]
    os.makedirs(FOLDER, exist_ok=True)
    model, inputs = os.path.join(FOLDER, "person.onnx"), os.path.join(FOLDER, "person.npz")
    with open(model, "wb") as file:
        file.write(make_model(float(width), int(size), int(classes)).SerializeToString())
    image = np.random.default_rng(1).standard_normal((1, 3, int(size), int(size)))
    np.savez(inputs, image=image.astype(np.float32))
    print(f"{model}, {inputs}")


if __name__ == "__main__":
    main()
