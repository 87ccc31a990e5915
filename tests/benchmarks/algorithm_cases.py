"""Single ops for which the algorithm decides: models with inputs, of small, large and odd sizes.

In: nothing. Out: ``ALGORITHMS`` by name. Not done here: measuring (``bench_algorithms``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from tests.benchmarks.single_node import Case, normal, one, opened, random

_I64 = TensorProto.INT64


def pool(
    op: str, shape: Sequence[int], kernel: int, stride: int = 1, pad: int | None = None
) -> Callable[[], Case]:
    """Windows, around each element where no pads are named."""
    rank = len(shape) - 2
    around = kernel // 2 if pad is None else pad
    return one(
        op, {"x": normal(*shape)},
        kernel_shape=[kernel] * rank, strides=[stride] * rank, pads=[around] * 2 * rank,
    )  # fmt: skip


def conv_transpose(
    channels: int, to: int, size: int, kernel: int, stride: int
) -> Callable[[], Case]:
    """A transposed convolution that makes a square image ``stride`` times as large."""
    added = (kernel - stride) % 2
    return one(
        "ConvTranspose", {"x": normal(1, channels, size, size)},
        {"w": normal(channels, to, kernel, kernel)},
        strides=[stride] * 2, pads=[(kernel - stride + added) // 2] * 4, output_padding=[added] * 2,
    )  # fmt: skip


def dilated(channels: int, to: int, size: int, dilation: int) -> Callable[[], Case]:
    """A convolution of 3x3 taps far apart."""
    weights = {"w": normal(to, channels, 3, 3)}
    image = {"x": normal(1, channels, size, size)}
    return one("Conv", image, weights, pads=[dilation] * 4, dilations=[dilation] * 2)


def suppression(
    boxes: int, classes: int = 1, most: int = 100, power: int = 1
) -> Callable[[], Case]:
    """Boxes of a detector, some of which overlap; ``power``: of the scores, so that few are high."""
    numbers = random(1)
    centre, size = numbers.uniform(0, 640, (1, boxes, 2)), numbers.uniform(10, 100, (1, boxes, 2))
    sides = np.concatenate([centre - size / 2, centre + size / 2], -1).astype(np.float32)
    scores = (numbers.uniform(0, 1, (1, classes, boxes)) ** power).astype(np.float32)
    limits = {"most": np.array([most]), "overlap": np.array([0.5], np.float32), "least": np.array([0.1], np.float32)}  # fmt: skip
    return one("NonMaxSuppression", {"boxes": sides, "scores": scores}, limits, _I64)


def compress(shape: Sequence[int], axis: int, part: float) -> Callable[[], Case]:
    """A part of the rows."""
    mask = random().random(shape[axis]) < part
    return one("Compress", {"x": normal(*shape), "mask": mask}, axis=axis)


def resize(
    shape: Sequence[int], scale: float, mode: str, coordinates: str, dtype: Any = np.float32
) -> Callable[[], Case]:
    """An image made larger or smaller."""
    image = (100 * normal(*shape)).astype(dtype)
    scales = np.array([1, 1, scale, scale], np.float32)
    rounding: dict[str, Any] = {"nearest_mode": "floor"} if mode == "nearest" else {}
    return one(
        "Resize", {"x": image}, {"-roi": scales, "scales": scales},
        helper.np_dtype_to_tensor_dtype(image.dtype),
        mode=mode, coordinate_transformation_mode=coordinates, **rounding,
    )  # fmt: skip


def grid_sample(shape: Sequence[int], size: int, mode: str, padding: str) -> Callable[[], Case]:
    """Points anywhere in an image, some outside."""
    grid = random(1).uniform(-1.1, 1.1, (shape[0], size, size, 2)).astype(np.float32)
    return one("GridSample", {"x": normal(*shape), "grid": grid}, mode=mode, padding_mode=padding)


def volume(channels: int, size: int) -> Callable[[], Case]:
    """Points anywhere in a volume, some outside."""
    grid = random(1).uniform(-1.1, 1.1, (1, size, size, size, 3)).astype(np.float32)
    return one("GridSample", {"x": normal(1, channels, size, size, size), "grid": grid})


def top(count: int, *shape: int, axis: int = -1) -> Callable[[], Case]:
    """The greatest along an axis."""
    k = {"k": np.array([count])}
    return one("TopK", {"x": normal(*shape)}, k, more=[_I64], axis=axis)


def labels(count: int, rows: int) -> Callable[[], Case]:
    """A label encoder from integers to integers."""
    numbers = random(3)
    keys = numbers.permutation(10 * count)[:count]
    values = numbers.permutation(count)
    return one(
        "LabelEncoder", {"x": keys[numbers.integers(0, count, rows)]}, result=_I64, domain="ai.onnx.ml",
        keys_int64s=keys.tolist(), values_int64s=values.tolist(),
    )  # fmt: skip


ALGORITHMS: dict[str, Callable[[], Case]] = {
    "max pool 2x2 by 2 64@112": pool("MaxPool", (1, 64, 112, 112), 2, 2, 0),
    "max pool 3x3 by 2 64@112": pool("MaxPool", (1, 64, 112, 112), 3, 2),
    "max pool 3x3 64@56": pool("MaxPool", (1, 64, 56, 56), 3),
    "max pool 3x3 832@7": pool("MaxPool", (1, 832, 7, 7), 3),
    "max pool 3x3 480@14": pool("MaxPool", (1, 480, 14, 14), 3),
    "max pool 3x3 by 2 528@14": pool("MaxPool", (1, 528, 14, 14), 3, 2),
    "max pool 3x3 by 2 288@35": pool("MaxPool", (1, 288, 35, 35), 3, 2, 0),
    "average pool 3x3 768@14": pool("AveragePool", (1, 768, 14, 14), 3),
    "average pool 3x3 192@17": pool("AveragePool", (1, 192, 17, 17), 3),
    "average pool 3x3 192@35": pool("AveragePool", (1, 192, 35, 35), 3),
    "max pool 3x3 192@17": pool("MaxPool", (1, 192, 17, 17), 3),
    "max pool 5x5 by 2 192@17": pool("MaxPool", (1, 192, 17, 17), 5, 2),
    "max pool 3x3 by 2 16@127": pool("MaxPool", (1, 16, 127, 127), 3, 2),
    "max pool 2x2 by 2 1@512": pool("MaxPool", (1, 1, 512, 512), 2, 2, 0),
    "max pool 5x5 64@56": pool("MaxPool", (1, 64, 56, 56), 5),
    "max pool 13x13 64@56": pool("MaxPool", (1, 64, 56, 56), 13),
    "max pool 31x31 64@56": pool("MaxPool", (1, 64, 56, 56), 31),
    "max pool 64 of 16000": pool("MaxPool", (1, 64, 16000), 64, 1, 0),
    "average pool 3x3 64@56": pool("AveragePool", (1, 64, 56, 56), 3),
    "average pool 9x9 64@56": pool("AveragePool", (1, 64, 56, 56), 9),
    "transposed 64-32@64 2x2": conv_transpose(64, 32, 64, 2, 2),
    "transposed 64-32@64 3x3": conv_transpose(64, 32, 64, 3, 2),
    "transposed 64-32@64 4x4": conv_transpose(64, 32, 64, 4, 2),
    "transposed 64-1@64 3x3": conv_transpose(64, 1, 64, 3, 2),
    "dilated by 2 64@64": dilated(64, 64, 64, 2),
    "dilated by 12 256@33": dilated(256, 256, 33, 12),
    "suppression of 20": suppression(20),
    "suppression of 100": suppression(100),
    "suppression of 1000": suppression(1000),
    "suppression of 100 x 80": suppression(100, 80),
    "suppression of 8400 x 80": suppression(8400, 80, 300, 12),
    "suppression of 25200": suppression(25200, 1, 300),
    "suppression of 25200, few": suppression(25200, 1, 300, 30),
    "suppression of 100, open": opened(suppression(100)),
    "top 300 of 8400": top(300, 1, 8400),
    "top 5 of 64x8192 axis 0": top(5, 8192, 64, axis=0),
    "top 100 of 20000": top(100, 1, 20000),
    "top 200 of 20000": top(200, 1, 20000),
    "top 10 of 32x500 axis 0": top(10, 32, 500, axis=0),
    "top 8 of 64x100": top(8, 64, 100),
    "top 20 of 132x200": top(20, 132, 200),
    "top 20 of 132x200, open": opened(top(20, 132, 200)),
    "top 20 of 8x1000, falling": one(
        "TopK", {"x": np.sort(normal(8, 1000))}, {"k": np.array([20])}, more=[_I64]
    ),
    "top 40 of 64x64": top(40, 64, 64),
    "top 100 of 32x150": top(100, 32, 150),
    "top 10 of 64x12, open": opened(top(10, 64, 12)),
    "all of 32x170": top(170, 32, 170),
    "all of 32x100": top(100, 32, 100),
    "all of 32x100, open": opened(top(100, 32, 100)),
    "maxima with positions": one(
        "MaxPool", {"x": normal(1, 64, 112, 112)}, more=[_I64],
        kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1],
    ),
    "max pool 2x2 by 2 512@14": pool("MaxPool", (1, 512, 14, 14), 2, 2, 0),
    "average pool 31x31 64@56": pool("AveragePool", (1, 64, 56, 56), 31),
    "grid sample of a volume": volume(8, 32),
    "cubic 2x 64@64": resize((1, 64, 64, 64), 2, "cubic", "half_pixel"),
    "argmax of 1e6": one("ArgMax", {"x": normal(1, 10**6)}, result=_I64, axis=1),
    "unique of 1e6": one("Unique", {"x": random().integers(0, 1000, 10**6)}, result=_I64),
    "nonzero 4x4": one("NonZero", {"x": np.eye(4, dtype=np.float32)}, result=_I64),
    "compress rows 100x4": compress((100, 4), 0, 0.5),
    "compress rows 1000x128": compress((1000, 128), 0, 0.3),
    "compress rows 10000x64": compress((10000, 64), 0, 0.5),
    "compress rows 8400x85": compress((8400, 85), 0, 0.05),
    "nearest 2x 64@64": resize((1, 64, 64, 64), 2, "nearest", "asymmetric"),
    "nearest 2x 256@20": resize((1, 256, 20, 20), 2, "nearest", "asymmetric"),
    "nearest 3x 16@65": resize((1, 16, 65, 65), 3, "nearest", "asymmetric"),
    "nearest 0.5x 64@64": resize((1, 64, 64, 64), 0.5, "nearest", "asymmetric"),
    "linear 1/3 of 3x1080x1920": resize((1, 3, 1080, 1920), 1 / 3, "linear", "half_pixel"),
    "nearest 2x of 3x480x640": resize((1, 3, 480, 640), 2, "nearest", "asymmetric"),
    "nearest 2x 256@20, open": opened(resize((1, 256, 20, 20), 2, "nearest", "asymmetric")),
    "nearest 2x of 3x480x640, open": opened(resize((1, 3, 480, 640), 2, "nearest", "asymmetric")),
    "linear 2x 64@64": resize((1, 64, 64, 64), 2, "linear", "half_pixel"),
    "grid sample zeros 64@64": grid_sample((1, 64, 64, 64), 64, "linear", "zeros"),
    "grid sample border 64@64": grid_sample((1, 64, 64, 64), 64, "linear", "border"),
    "cumsum 1000x1000 axis 0": one("CumSum", {"x": normal(1000, 1000)}, {"axis": np.array(0)}),
    "cumsum 1000x10 axis 0": one("CumSum", {"x": normal(1000, 10)}, {"axis": np.array(0)}),
    "cumsum 1000x1000 axis 1": one("CumSum", {"x": normal(1000, 1000)}, {"axis": np.array(1)}),
    "cumsum 8x4000x64 axis 1": one("CumSum", {"x": normal(8, 4000, 64)}, {"axis": np.array(1)}),
    "labels 1000, 100000 rows": labels(1000, 100000),
    "labels 10, 10000 rows": labels(10, 10000),
    "argmax 21x128x128 axis 1": one("ArgMax", {"x": normal(1, 21, 128, 128)}, result=_I64, axis=1),
    "nonzero 256x1024": one("NonZero", {"x": normal(256, 1024)}, result=_I64),
    "unique rows 2000x4": one("Unique", {"x": normal(2000, 4)}, axis=0),
    "gather points 10000x16": one(
        "GatherND", {"x": normal(100, 100, 16), "at": random().integers(0, 100, (10000, 2))}
    ),
    "scatter points 5000x16": one(
        "ScatterND",
        {
            "x": normal(100, 100, 16),
            "at": random().integers(0, 100, (5000, 2)),
            "updates": normal(5000, 16),
        },
    ),
}  # fmt: skip
