"""The nine light models of the ``onnx`` package with generated weights;
``python tests/conformance/light.py [NAME]...``.

In: names. Out: models, their answers by ``onnx.reference``, and how far the bundle's are from them.
Not done here: models as shipped, whose weights are all equal and hide mistakes.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import ModelProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

import ingot
import ingot_runtime

NAMES = (
    "bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19",
    "zfnet512",
)  # fmt: skip
RELATIVE_ERROR_MAX = 1e-4
Array = npt.NDArray[Any]
_FOLDER = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light")


class LRN(OpRun):
    """Local response normalisation; the package's own counts channels by the size of the batch."""

    op_domain = ""

    def _run(self, x: Array, alpha: float, beta: float, bias: float, size: int) -> tuple[Array]:
        before, after = (size - 1) // 2, size // 2
        channels = x.shape[1]
        squares = [
            (x[:, max(0, c - before) : min(channels, c + after + 1)] ** 2).sum(axis=1)
            for c in range(channels)
        ]
        return ((x / (bias + alpha / size * np.stack(squares, axis=1)) ** beta).astype(x.dtype),)


class BatchNormalization(OpRun):
    """By the stored statistics; the package's own takes models before opset 14 as training."""

    op_domain = ""

    def _run(
        self,
        x: Array,
        scale: Array,
        bias: Array,
        mean: Array,
        variance: Array,
        epsilon: float,
        **_: Any,
    ) -> tuple[Array]:
        shape = (1, -1, *(1,) * (x.ndim - 2))
        factor = scale / np.sqrt(variance + np.float32(epsilon))
        return (x * factor.reshape(shape) + (bias - mean * factor).reshape(shape),)


class Softmax(OpRun):
    """As before opset 13: over all axes from 1 on; the package's own takes the last axis."""

    op_domain = ""

    def _run(self, x: Array, axis: int | None = None) -> tuple[Array]:
        assert axis in (None, 1, -1)
        rows = x.reshape(len(x), -1)
        powers = np.exp(rows - rows.max(axis=1, keepdims=True))
        return ((powers / powers.sum(axis=1, keepdims=True)).reshape(x.shape),)


def shipped_path(name: str) -> str:
    """Where the package has the model."""
    return os.path.join(_FOLDER, f"light_{name}.onnx")


def make_light(name: str) -> ModelProto:
    """The network with random weights that keep activations moderate; the numbers before a last
    Softmax are outputs too."""
    with open(shipped_path(name), "rb") as file:
        model = ModelProto()
        model.ParseFromString(file.read())
    model.ir_version = 8  # initializers need not be inputs
    graph = model.graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    shapes = {
        name: list(array.shape) for name, array in constants.items() if array.dtype == np.float32
    }
    for node in [node for node in graph.node if node.op_type == "ConstantOfShape"]:
        shapes[node.output[0]] = [int(size) for size in constants[node.input[0]]]
        graph.node.remove(node)
    del graph.initializer[:]
    roles = _roles(model, shapes)
    used = {operand for node in graph.node for operand in node.input}
    random = np.random.default_rng(len(name))
    for tensor in sorted(used & (set(shapes) | set(constants))):
        array = (
            _weight(random, shapes[tensor], roles.get(tensor, "bias"))
            if tensor in shapes
            else constants[tensor]
        )
        graph.initializer.append(numpy_helper.from_array(array, tensor))
    for value in [
        value for value in graph.input if value.name in shapes or value.name in constants
    ]:
        graph.input.remove(value)
    if graph.node[-1].op_type == "Softmax":
        graph.output.insert(
            0, helper.make_tensor_value_info(graph.node[-1].input[0], onnx.TensorProto.FLOAT, None)
        )
    return model


def _roles(model: ModelProto, shapes: dict[str, list[int]]) -> dict[str, str]:
    """What a weight is for, by the op that reads it, through Unsqueeze."""
    roles: dict[str, str] = {}
    sources = {
        node.output[0]: node.input[0] for node in model.graph.node if node.op_type == "Unsqueeze"
    }
    for node in model.graph.node:
        for position, operand in enumerate(node.input):
            name = sources.get(operand, operand)
            if name in shapes:
                roles[name] = _ROLES.get((node.op_type, position), roles.get(name, "bias"))
    return roles


_ROLES = {
    ("BatchNormalization", 1): "factor", ("BatchNormalization", 4): "factor", ("Mul", 0): "factor", ("Mul", 1): "factor",
    ("Conv", 1): "weight", ("Gemm", 1): "weight",
}  # fmt: skip


def _weight(random: np.random.Generator, shape: Sequence[int], role: str) -> Array:
    values = random.uniform(-1, 1, shape)
    if role == "factor":
        values = 1 + values / 2
    elif role == "weight":
        values *= np.sqrt(3 * 2 / np.prod(shape[1:]))  # keeps the variance through Relu
    else:
        values /= 10
    return values.astype(np.float32)


def relative_error(name: str) -> float:
    """Compile, save, load, run; the largest error of any output by the largest magnitude of that
    output."""
    model = make_light(name)
    info = model.graph.input[0]
    shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
    x = np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)
    with tempfile.TemporaryDirectory(prefix="ingot-light-") as folder:
        path = os.path.join(folder, "light.ingot")
        ingot.compile(model, workers=2).save(path)
        outputs = ingot_runtime.load(path, threads=2).run({info.name: x})
    evaluator: Any = ReferenceEvaluator(model, new_ops=[LRN, BatchNormalization, Softmax])
    expected = evaluator.run(None, {info.name: x})
    errors: list[float] = []
    for value, want in zip(model.graph.output, expected, strict=True):
        right = np.asarray(want, np.float64)
        errors.append(float(np.abs(outputs[value.name] - right).max() / np.abs(right).max()))
    return max(errors)


def main(names: Sequence[str]) -> int:
    """Print a line for each model; exit 1 when one is too far off."""
    worst = 0.0
    for name in names or NAMES:
        started = time.monotonic()
        error = relative_error(name)
        worst = max(worst, error)
        print(f"{name}: relative error {error:.2e}, {time.monotonic() - started:.0f} s", flush=True)
    return int(not worst < RELATIVE_ERROR_MAX)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
