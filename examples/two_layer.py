"""Write a model of two layers for the pages of ``docs``: small enough to read every stage of it.

In: nothing. Out: ``dist/two_layer.onnx`` and ``dist/two_layer.npz`` with three rows of input. Not
done here: training; the weights are the sines of whole numbers, scaled by fan-in, so that everyone
gets the same.

``probabilities = Softmax(Gelu(x @ w0 + b0) @ w1 + b1)``, x: f32[batch, 16], batch any number, 16 ->
32 -> 4.
"""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

FOLDER = "dist"
WIDTHS = (16, 32, 4)


def wave(shape: tuple[int, ...], phase: float) -> npt.NDArray[np.float32]:
    """Return sin(phase + 0), sin(phase + 1), ... divided by the square root of the first size."""
    count = int(np.prod(shape))
    values = np.sin(phase + np.arange(count)) / np.sqrt(shape[0])
    return np.asarray(values.reshape(shape), np.float32)


def make_model() -> onnx.ModelProto:
    """Return the model; its nodes are named like an exporter names them."""
    inner, outer = "/layer0/", "/layer1/"
    nodes = [
        helper.make_node("Gemm", ["x", "w0", "b0"], ["h0"], name=inner + "Gemm"),
        helper.make_node("Gelu", ["h0"], ["h1"], name=inner + "Gelu"),
        helper.make_node("Gemm", ["h1", "w1", "b1"], ["h2"], name=outer + "Gemm"),
        helper.make_node("Softmax", ["h2"], ["probabilities"], name=outer + "Softmax"),
    ]
    shapes = {"w0": WIDTHS[:2], "b0": WIDTHS[1:2], "w1": WIDTHS[1:], "b1": WIDTHS[2:]}
    weights = [
        numpy_helper.from_array(wave(shape, number), name)
        for number, (name, shape) in enumerate(shapes.items())
    ]
    f32 = onnx.TensorProto.FLOAT
    x = helper.make_tensor_value_info("x", f32, ["batch", WIDTHS[0]])
    y = helper.make_tensor_value_info("probabilities", f32, ["batch", WIDTHS[-1]])
    graph = helper.make_graph(nodes, "two_layer", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def main() -> None:
    """Write both files."""
    os.makedirs(FOLDER, exist_ok=True)
    model = os.path.join(FOLDER, "two_layer.onnx")
    inputs = os.path.join(FOLDER, "two_layer.npz")
    with open(model, "wb") as file:
        file.write(make_model().SerializeToString())
    np.savez(inputs, x=wave((3, WIDTHS[0]), 9.0))
    print(f"{model}, {inputs}")


if __name__ == "__main__":
    main()
