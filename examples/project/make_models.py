"""Write the demonstration project: three small models, and for each the input and the expected
output of its test.

In: a folder (default ``dist/project``). Out: in it ``ingot.toml``, ``models/*.onnx``,
``data/*.npz``; files that would not change are left alone. ``--edit MODEL`` makes one weight of
that model 1/8 more. Not done here: training.

Weights come from a stated integer generator, so that everyone gets the same: for tensor number t
and element number e, let i = t * 2**32 + e + 1 and, modulo 2**64, z = i * 0x9E3779B97F4A7C15; z =
(z ^ z >> 30) * 0xBF58476D1CE4E5B9;
z = (z ^ z >> 27) * 0x94D049BB133111EB; z = z ^ z >> 31 (SplitMix64). The number is (z >> 40) /
2**23 - 1, in [-1, 1).
"""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

HERE = os.path.dirname(os.path.abspath(__file__))
Array = npt.NDArray[np.float32]
Shape = tuple[int, ...]


def numbers(tensor: int, shape: Shape) -> Array:
    """Return tensor number ``tensor`` by the generator that the module's text states."""
    z = (
        np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) + np.uint64(tensor << 32)
    ) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (
        ((z >> np.uint64(40)).astype(np.float64) / 2.0**23 - 1.0).reshape(shape).astype(np.float32)
    )


def weight(tensor: int, shape: Shape, fan_in: int) -> Array:
    """Return numbers that keep the variance of what they multiply."""
    return np.asarray(numbers(tensor, shape) * np.sqrt(3.0 / fan_in), np.float32)


def bias(tensor: int, size: int, around: float = 0.0) -> Array:
    """Return numbers within 1/8 of ``around``."""
    return np.asarray(numbers(tensor, (size,)) / 8 + around, np.float32)


def model_of(
    name: str,
    nodes: Sequence[onnx.NodeProto],
    shapes: Sequence[Sequence[int | str]],
    weights: Mapping[str, Any],
) -> onnx.ModelProto:
    """Return a model with input ``x`` and output ``y`` of two shapes; a text is a size that is
    open."""
    x, y = (
        helper.make_tensor_value_info(value, onnx.TensorProto.FLOAT, shape)
        for value, shape in zip("xy", shapes, strict=True)
    )
    initializers = [
        numpy_helper.from_array(np.asarray(array), key) for key, array in weights.items()
    ]
    graph = helper.make_graph(nodes, name, [x], [y], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def make_cnn() -> onnx.ModelProto:
    """Three convolutions, the last with a residual, then a classifier: f32[1, 3, 32, 32] to f32[1,
    10]."""
    node = helper.make_node
    nodes = [
        node(
            "Conv",
            ["x", "w0", "b0"],
            ["c0"],
            name="/stem/Conv",
            kernel_shape=[3, 3],
            pads=[1, 1, 1, 1],
        ),
        node("Relu", ["c0"], ["r0"], name="/stem/Relu"),
        node(
            "Conv",
            ["r0", "w1", "b1"],
            ["c1"],
            name="/down/Conv",
            kernel_shape=[3, 3],
            pads=[1] * 4,
            strides=[2, 2],
        ),
        node("Relu", ["c1"], ["r1"], name="/down/Relu"),
        node(
            "Conv",
            ["r1", "w2", "b2"],
            ["c2"],
            name="/block/Conv",
            kernel_shape=[3, 3],
            pads=[1, 1, 1, 1],
        ),
        node("Add", ["c2", "r1"], ["a2"], name="/block/Add"),
        node("Relu", ["a2"], ["r2"], name="/block/Relu"),
        node("GlobalAveragePool", ["r2"], ["p"], name="/head/GlobalAveragePool"),
        node("Flatten", ["p"], ["f"], name="/head/Flatten"),
        node("Gemm", ["f", "w3", "b3"], ["y"], name="/head/Gemm"),
    ]
    shapes: list[Shape] = [(16, 3, 3, 3), (32, 16, 3, 3), (32, 32, 3, 3)]
    weights = {
        f"w{index}": weight(index, shape, int(np.prod(shape[1:])))
        for index, shape in enumerate(shapes)
    }
    weights |= {"w3": weight(3, (32, 10), 32)}
    weights |= {f"b{index}": bias(4 + index, size) for index, size in enumerate((16, 32, 32, 10))}
    return model_of("cnn", nodes, ((1, 3, 32, 32), (1, 10)), weights)


def make_mlp() -> onnx.ModelProto:
    """Three layers and a softmax: f32[batch, 64] to f32[batch, 10]."""
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, Array] = {}
    value = "x"
    for index, (rows, columns) in enumerate([(64, 128), (128, 128), (128, 10)]):
        weights[f"w{index}"] = weight(16 + index, (rows, columns), rows)
        weights[f"b{index}"] = bias(24 + index, columns)
        sums, name = f"g{index}", f"/layer{index}/"
        nodes.append(
            helper.make_node("Gemm", [value, f"w{index}", f"b{index}"], [sums], name=name + "Gemm")
        )
        value = f"h{index}" if index < 2 else "y"
        nodes.append(
            helper.make_node(
                "Gelu" if index < 2 else "Softmax", [sums], [value], name=name + "Activation"
            )
        )
    return model_of("mlp", nodes, (("batch", 64), ("batch", 10)), weights)


def make_transformer() -> onnx.ModelProto:
    """One block, attention with 4 heads and a feed-forward layer, each after a norm: f32[1, 16, 64]
    to the same."""
    width, heads, inner = 64, 4, 256
    weights: dict[str, Any] = {
        "norm0.scale": bias(32, width, around=1),
        "norm0.bias": bias(33, width),
        "in": weight(34, (width, 3 * width), width),
        "out": weight(35, (width, width), width),
        "norm1.scale": bias(36, width, around=1),
        "norm1.bias": bias(37, width),
        "up": weight(38, (width, inner), width),
        "down": weight(39, (inner, width), inner),
        "scale": np.float32(np.sqrt(width / heads)),
        "split": np.array([1, 16, 3, heads, width // heads]),
        "joined": np.array([1, 16, width]),
        **{f"at{index}": np.array(index) for index in range(3)},
    }
    names = iter(range(100))

    def node(op: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
        return helper.make_node(
            op, inputs.split(), [output], name=f"/block/{op}_{next(names)}", **attributes
        )

    nodes = [
        node("LayerNormalization", "x norm0.scale norm0.bias", "n0"),
        node("MatMul", "n0 in", "p"),
        node("Reshape", "p split", "s"),
        node("Transpose", "s", "t", perm=[2, 0, 3, 1, 4]),
        *(node("Gather", f"t at{index}", name, axis=0) for index, name in enumerate("qkv")),
        node("Transpose", "k", "kt", perm=[0, 1, 3, 2]),
        node("MatMul", "q kt", "products"),
        node("Div", "products scale", "scaled"),
        node("Softmax", "scaled", "shares", axis=-1),
        node("MatMul", "shares v", "mixed"),
        node("Transpose", "mixed", "m", perm=[0, 2, 1, 3]),
        node("Reshape", "m joined", "j"),
        node("MatMul", "j out", "o"),
        node("Add", "x o", "r"),
        node("LayerNormalization", "r norm1.scale norm1.bias", "n1"),
        node("MatMul", "n1 up", "u"),
        node("Gelu", "u", "g", approximate="tanh"),
        node("MatMul", "g down", "d"),
        node("Add", "r d", "y"),
    ]
    return model_of("transformer", nodes, ((1, 16, width), (1, 16, width)), weights)


MODELS = {"cnn": make_cnn, "mlp": make_mlp, "transformer": make_transformer}
INPUTS: dict[str, Shape] = {"cnn": (1, 3, 32, 32), "mlp": (8, 64), "transformer": (1, 16, 64)}


def edit(model: onnx.ModelProto) -> None:
    """Make the first element of the first weight 1/8 more."""
    tensor = model.graph.initializer[0]
    array = numpy_helper.to_array(tensor).copy()
    array.flat[0] += 0.125
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def npz(name: str, array: npt.NDArray[Any]) -> bytes:
    """Return the bytes of an ``.npz`` file of one array; no time is in them."""
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **{name: array})
    return stream.getvalue()


def write(path: str, content: bytes) -> bool:
    """Write a file unless it has these bytes already; return whether it was written."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() == content:
                return False
    with open(path, "wb") as file:
        file.write(content)
    return True


def write_project(folder: str, edited: str | None = None) -> list[str]:
    """Write everything, one model with a weight edited; return the paths that changed."""
    files: dict[str, bytes] = {}
    with open(os.path.join(HERE, "ingot.toml"), "rb") as file:
        files["ingot.toml"] = file.read()
    for number, (name, make) in enumerate(MODELS.items()):
        model = make()
        if edited == name:
            edit(model)
        x = numbers(64 + number, INPUTS[name])
        evaluator: Any = ReferenceEvaluator(model)
        files[f"models/{name}.onnx"] = model.SerializeToString()
        files[f"data/{name}.npz"] = npz("x", x)
        files[f"data/{name}.out.npz"] = npz("y", evaluator.run(["y"], {"x": x})[0])
    return [
        os.path.join(folder, path)
        for path, content in files.items()
        if write(os.path.join(folder, path), content)
    ]


def main() -> None:
    """Write the project, tell what changed."""
    parser = argparse.ArgumentParser(
        description="Write the models and data of the demonstration project."
    )
    parser.add_argument("folder", nargs="?", default=os.path.join("dist", "project"))
    parser.add_argument("--edit", choices=sorted(MODELS), help="change one weight of this model")
    arguments = parser.parse_args()
    for path in write_project(arguments.folder, arguments.edit):
        print(path)


if __name__ == "__main__":
    main()
