"""Single ops that took longer than ONNX Runtime's when they were first tried: models with inputs.

In: nothing. Out: ``FURTHER`` by name. Not done here: ops of other sizes (``algorithm_cases``,
``everyday_cases``), measuring (``bench_algorithms``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto
from tests.benchmarks.algorithm_cases import conv_transpose, grid_sample, resize
from tests.benchmarks.single_node import Array, Case, normal, one, opened, random

_I64, _BOOL, _STRING = TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING


def _words(count: int, seed: int = 0) -> Array:
    """Words of 1 to 7 small letters."""
    numbers = random(seed)
    words = (numbers.integers(ord("a"), ord("z") + 1, numbers.integers(1, 8)) for _ in range(count))
    return np.array(["".join(map(chr, word)) for word in words])


def _labels(rows: int) -> Callable[[], Case]:
    """Places of words among 100."""
    keys = sorted(set(_words(100).tolist()))
    return one(
        "LabelEncoder", {"x": _words(rows)}, result=_I64, domain="ai.onnx.ml",
        keys_strings=keys, values_int64s=list(range(len(keys))),
    )  # fmt: skip


def _padded(mode: str, shape: tuple[int, ...], pads: tuple[int, ...]) -> Callable[[], Case]:
    return one("Pad", {"x": normal(*shape)}, {"pads": np.array(pads * 2)}, mode=mode)


def _open_image(case: Callable[[], Case]) -> Callable[[], Case]:
    """The same with open height and width."""

    def open_case() -> Case:
        model, inputs = case()
        for axis, dim in enumerate(model.graph.input[0].type.tensor_type.shape.dim):
            if axis > 1:
                dim.dim_param = f"size{axis}"
        return model, inputs

    return open_case


def _fold(
    image: tuple[int, int], block: tuple[int, int], channels: int, **attributes: Any
) -> Callable[[], Case]:
    """Blocks added into an image."""
    pads, strides = attributes.get("pads", [0] * 4), attributes.get("strides", [1, 1])
    blocks = 1
    for axis in range(2):
        room = image[axis] + pads[axis] + pads[2 + axis] - block[axis]
        blocks *= room // strides[axis] + 1
    x = normal(1, channels * block[0] * block[1], blocks)
    return one("Col2Im", {"x": x}, {"n": np.array(image), "k": np.array(block)}, **attributes)


def _signal(channels: int, to: int, length: int, kernel: int) -> Callable[[], Case]:
    """A convolution along one axis that keeps its length."""
    weights = {"w": normal(to, channels, kernel)}
    return one("Conv", {"x": normal(1, channels, length)}, weights, pads=[kernel // 2] * 2)


def _depthwise(
    channels: int, size: int, kernel: int, stride: int = 1, dilation: int = 1
) -> Callable[[], Case]:
    """A depthwise convolution that keeps a square image of open size."""
    case = one(
        "Conv", {"x": normal(1, channels, size, size)}, {"w": normal(channels, 1, kernel, kernel)},
        group=channels, pads=[kernel // 2 * dilation] * 4, strides=[stride] * 2,
        dilations=[dilation] * 2,
    )  # fmt: skip
    return _open_image(case)


def _convolution(
    channels: int, to: int, size: int, kernel: int, stride: int = 1
) -> Callable[[], Case]:
    """A convolution of an image, as a network begins with."""
    weights = {"w": normal(to, channels, kernel, kernel), "b": normal(to)}
    image = {"x": normal(1, channels, size, size)}
    return one("Conv", image, weights, strides=[stride] * 2, pads=[kernel // 2] * 4)


def _of_open_batch(case: Callable[[], Case]) -> Callable[[], Case]:
    """The same of as many images as a call gives."""

    def open_case() -> Case:
        model, inputs = case()
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
        return model, inputs

    return open_case


def _features(rows: int, length: int, count: int) -> Callable[[], Case]:
    """Columns of a table."""
    at = random().integers(0, length, count)
    table = {"x": normal(rows, length), "at": at}
    return one("ArrayFeatureExtractor", table, domain="ai.onnx.ml")


FURTHER: dict[str, Callable[[], Case]] = {
    "1x1 convolution 144-48@28": one(
        "Conv", {"x": normal(1, 144, 28, 28)}, {"w": normal(48, 144, 1, 1)}
    ),
    "convolution 3-16@224 by 2": _convolution(3, 16, 224, 3, 2),
    "convolution 3-16@224 by 2, batch": _of_open_batch(_convolution(3, 16, 224, 3, 2)),
    "convolution 3-32@224 by 2, batch": _of_open_batch(_convolution(3, 32, 224, 3, 2)),
    "convolution 3-32@300 by 2": _convolution(3, 32, 300, 3, 2),
    "convolution 3-24@112 by 2, batch": _of_open_batch(_convolution(3, 24, 112, 3, 2)),
    "convolution 3-16@224 by 2, open": _open_image(_convolution(3, 16, 224, 3, 2)),
    "convolution 3-64@64, open": _open_image(_convolution(3, 64, 64, 3)),
    "convolution 16-32@60 by 2, open": _open_image(_convolution(16, 32, 60, 3, 2)),
    "product 400x64 of 64x48": one("MatMul", {"x": normal(400, 64)}, {"w": normal(64, 48)}),
    "einsum abc,cd->abd": one(
        "Einsum", {"x": normal(8, 50, 64), "z": normal(64, 48)}, equation="abc,cd->abd"
    ),
    "einsum ii->i": one("Einsum", {"x": normal(300, 300)}, equation="ii->i"),
    "dilated depthwise 96@28, open": _depthwise(96, 28, 3, 1, 2),
    "depthwise 3x3 32@112, open": _depthwise(32, 112, 3),
    "depthwise 3x3 by 2 144@56, open": _depthwise(144, 56, 3, 2),
    "depthwise 3x3 512@7, open": _depthwise(512, 7, 3),
    "depthwise 5x5 240@14, open": _depthwise(240, 14, 5),
    "depthwise 7x7 96@56, open": _depthwise(96, 56, 7),
    "reflected pad 32x1000, open": opened(_padded("reflect", (1, 32, 1000), (0, 0, 20))),
    "reflected pad 64@16, open": opened(_padded("reflect", (1, 64, 16, 16), (0, 0, 1, 1))),
    "wrapped pad 16@60, open": opened(_padded("wrap", (1, 16, 60, 60), (0, 0, 4, 4))),
    "eye like 300x300": one("EyeLike", {"x": normal(300, 300)}, k=1),
    "affine grid 2x64x64": one(
        "AffineGrid", {"theta": normal(2, 2, 3)}, {"size": np.array([2, 3, 64, 64])}
    ),
    "array features 8 of 500x30": _features(500, 30, 8),
    "array features 30 of 500x30": _features(500, 30, 30),
    "array features 10 of 1000x100": _features(1000, 100, 10),
    "array features 3 of 10000x10": _features(10000, 10, 3),
    "col2im 8@10": _fold((10, 10), (3, 3), 8, pads=[1] * 4),
    "col2im 16@28": _fold((28, 28), (3, 3), 16, pads=[1] * 4),
    "col2im patches of 16 3@224": _fold((224, 224), (16, 16), 3, strides=[16, 16]),
    "col2im windows of 400 by 160": _fold((1, 16240), (1, 400), 1, strides=[1, 160]),
    "col2im 11x11 4@40": _fold((40, 40), (11, 11), 4),
    "gather slices 300 of 1000x7x7": one(
        "Gather", {"x": normal(1000, 7, 7), "at": random().integers(0, 1000, 300)}
    ),
    "gather slices 50 of 100x7x7x16, open": opened(
        one("GatherND", {"x": normal(100, 7, 7, 16), "at": random().integers(0, 100, (50, 1))})
    ),
    "tile 3x16x69x3": one(
        "Tile", {"x": normal(3, 16, 69, 3)}, {"repeats": np.array([1, 3, 3, 5])}
    ),
    "tile 3x5x163x7, open": opened(
        one("Tile", {"x": normal(3, 5, 163, 7)}, {"repeats": np.array([3, 5, 5, 2])})
    ),
    "convolution 32-1@4000 of 7": _signal(32, 1, 4000, 7),
    "convolution 150-1@371 of 5, open": opened(_signal(150, 1, 371, 5)),
    "convolution 1-16@4000 of 15": _signal(1, 16, 4000, 15),
    "convolution 64-1@56": _convolution(64, 1, 56, 3),
    "convolution 103-22@512 of 1": _signal(103, 22, 512, 1),
    "affine grid 8x32x32, open": opened(
        one("AffineGrid", {"theta": normal(8, 2, 3)}, {"size": np.array([8, 3, 32, 32])})
    ),
    "nearest 2x of bytes 3x480x640": resize((1, 3, 480, 640), 2, "nearest", "asymmetric", np.uint8),
    "transposed 231 3@640": one("Transpose", {"x": normal(1, 3, 640, 640)}, perm=[0, 2, 3, 1]),
    "transposed 021 2x4x4096": one("Transpose", {"x": normal(2, 4, 4096)}, perm=[0, 2, 1]),
    "transposed truths 300x300": one(
        "Transpose", {"x": normal(300, 300) > 0}, result=_BOOL, perm=[1, 0]
    ),
    "top 20 of 4x200x33 axis 1": one(
        "TopK", {"x": normal(4, 200, 33)}, {"k": np.array([20])}, more=[_I64], axis=1
    ),
    "grid sample 4x8@32, open": opened(grid_sample((4, 8, 32, 32), 32, "linear", "zeros")),
    "transposed convolution 16-8@33 5x5": conv_transpose(16, 8, 33, 5, 1),
    "transposed convolution 64-3@64 3x3 by 2": conv_transpose(64, 3, 64, 3, 2),
    "transposed convolution 64-3@64 4x4 by 2, open": opened(conv_transpose(64, 3, 64, 4, 2)),
    "transposed convolution 128-3@64 2x2 by 2": conv_transpose(128, 3, 64, 2, 2),
    "transposed convolution 64-8@64 3x3 by 2": conv_transpose(64, 8, 64, 3, 2),
    "transposed convolution 8-8@33 5x5": conv_transpose(8, 8, 33, 5, 1),
    "transposed convolution 16-8@33 7x7": conv_transpose(16, 8, 33, 7, 1),
    "transposed convolution 32-5@40 5x5": conv_transpose(32, 5, 40, 5, 1),
    "convolution 64-8@40 5x5": _convolution(64, 8, 40, 5),
    "convolution 64-4@41 by 2": _convolution(64, 4, 41, 3, 2),
    "strings joined, 200": one(
        "StringConcat", {"x": _words(200), "z": _words(200, 1)}, result=_STRING
    ),
    "strings split, 200": one(
        "StringSplit", {"x": np.array(["a bc d e"] * 200)}, result=_STRING, more=[_I64]
    ),
    "strings matched, 200": one(
        "RegexFullMatch", {"x": _words(200)}, result=_BOOL, pattern="[a-m]+"
    ),
    **{
        f"{op.lower()} of {count}": one(op, {"x": random().uniform(-1, 1, count).astype(np.float32)})
        for op in ("Acos", "Asin", "Atan", "Cos", "Sin")
        for count in (1000, 1000000)
    },
    **{
        f"power {power} of 30000": one(
            "Pow", {"x": np.abs(normal(30000))}, {"power": np.array(power, np.float32)}
        )
        for power in (0.5, 1.7, 2.0, 3.0)
    },
    "labels of 10 strings": _labels(10),
    "labels of 1000 strings": _labels(1000),
}  # fmt: skip
