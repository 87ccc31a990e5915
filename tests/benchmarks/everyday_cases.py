"""Single ops of the sizes that people run, around the products of a network: models with inputs.

In: nothing. Out: ``EVERYDAY`` by name. Not done here: ops for which the algorithm decides
(``algorithm_cases``), measuring (``bench_algorithms``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto
from tests.benchmarks.single_node import Array, Case, normal, one, opened, random

_I64, _F16, _BOOL = TensorProto.INT64, TensorProto.FLOAT16, TensorProto.BOOL


def _ints(most: int, *shape: int) -> Array:
    return random().integers(0, most, shape)


def _top(count: int, *shape: int) -> Callable[[], Case]:
    return one("TopK", {"x": normal(*shape)}, {"k": np.array([count])}, more=[_I64])


def _gru(steps: int, width: int) -> Callable[[], Case]:
    weights = {"w": normal(1, 3 * width, width) / 16, "r": normal(1, 3 * width, width) / 16}
    return one("GRU", {"x": normal(steps, 1, width)}, weights, hidden_size=width)


def _rois(count: int, ratio: int = 2) -> Callable[[], Case]:
    corners = random().uniform(0, 400, (count, 2))
    boxes = np.concatenate([corners, corners + random(1).uniform(16, 300, (count, 2))], -1)
    inputs = {"x": normal(1, 64, 50, 50), "rois": boxes.astype(np.float32)}
    batch = {"batch": np.zeros(count, np.int64)}
    return one(
        "RoiAlign", inputs, batch,
        output_height=7, output_width=7, sampling_ratio=ratio, spatial_scale=0.0625,
    )  # fmt: skip


_FIXED: dict[str, Callable[[], Case]] = {
    "top 5 of 1000": _top(5, 1, 1000),
    "top 50 of 32000": _top(50, 1, 32000),
    "top 100 of 8400x80": _top(100, 80, 8400),
    "unique 10000": one("Unique", {"x": _ints(1000, 10000)}, result=_I64),
    "argmax 32x1000": one("ArgMax", {"x": normal(32, 1000)}, result=_I64, axis=1),
    "argmax 1x32000": one("ArgMax", {"x": normal(1, 32000)}, result=_I64, axis=-1),
    "scatter rows 1000x64": one(
        "ScatterElements",
        {"x": normal(1000, 64), "at": _ints(1000, 200, 64), "u": normal(200, 64)},
    ),
    "scatter added 1000x64": one(
        "ScatterElements",
        {"x": normal(1000, 64), "at": _ints(1000, 200, 64), "u": normal(200, 64)},
        reduction="add",
    ),
    "gather rows 32000x64": one("Gather", {"x": normal(32000, 64), "at": _ints(32000, 512)}),
    "gather columns 512x512": one("Gather", {"x": normal(512, 512), "at": _ints(512, 256)}, axis=1),
    "gather elements 512x512": one(
        "GatherElements", {"x": normal(512, 512), "at": _ints(512, 512, 128)}, axis=1
    ),
    "where 8x128x128": one(
        "Where",
        {"mask": normal(1, 1, 128, 128) > 0, "x": normal(1, 8, 128, 128), "y0": normal(1)},
    ),
    "reflected pad 32@128": one(
        "Pad", {"x": normal(1, 32, 128, 128)}, {"pads": np.array([0, 0, 3, 3, 0, 0, 3, 3])},
        mode="reflect",
    ),
    "edge pad 32@128": one(
        "Pad", {"x": normal(1, 32, 128, 128)}, {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1])},
        mode="edge",
    ),
    "zero pad 32@127": one(
        "Pad", {"x": normal(1, 32, 127, 127)}, {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1])}
    ),
    "lower triangle 8x256x256": one("Trilu", {"x": normal(8, 256, 256)}, upper=0),
    "one hot 512 of 1000": one(
        "OneHot", {"x": _ints(1000, 512)},
        {"depth": np.array([1000]), "values": np.array([0, 1], np.float32)},
    ),
    "tile 64x64 by 4x5": one("Tile", {"x": normal(64, 64)}, {"repeats": np.array([4, 5])}),
    "expand 1x1x512 to 8x64x512": one(
        "Expand", {"x": normal(1, 1, 512)}, {"shape": np.array([8, 64, 512])}
    ),
    "expand 512x1 to 512x127": one("Expand", {"x": normal(512, 1)}, {"shape": np.array([512, 127])}),
    "rois 100 of 64@50": _rois(100),
    "rois 100 of 64@50, own ratio": _rois(100, 0),
    "gru 10 steps of 128": _gru(10, 128),
    "gru 50 steps of 64": _gru(50, 64),
    "layer norm 16x64": one(
        "LayerNormalization", {"x": normal(16, 64)}, {"s": normal(64), "b": normal(64)}
    ),
    "layer norm 128x768": one(
        "LayerNormalization", {"x": normal(128, 768)}, {"s": normal(768), "b": normal(768)}
    ),
    "instance norm 8@14": one(
        "InstanceNormalization", {"x": normal(1, 8, 14, 14)}, {"s": normal(8), "b": normal(8)}
    ),
    "instance norm 64@64": one(
        "InstanceNormalization", {"x": normal(1, 64, 64, 64)}, {"s": normal(64), "b": normal(64)}
    ),
    "softmax 21@128 axis 1": one("Softmax", {"x": normal(1, 21, 128, 128)}, axis=1),
    "softmax 8x77x77": one("Softmax", {"x": normal(8, 77, 77)}),
    "mean over 256@14": one("ReduceMean", {"x": normal(1, 256, 14, 14)}, {"axes": np.array([2, 3])}),
    "mean over 2048@7": one("ReduceMean", {"x": normal(1, 2048, 7, 7)}, {"axes": np.array([2, 3])}),
    "mean over rows 128x768": one("ReduceMean", {"x": normal(1, 128, 768)}, {"axes": np.array([1])}),
    "largest over 64@56 axis 1": one("ReduceMax", {"x": normal(1, 64, 56, 56)}, {"axes": np.array([1])}),
    "l2 over 512x256": one("ReduceL2", {"x": normal(512, 256)}, {"axes": np.array([-1])}),
    "transposed 0213 128x12x64": one("Transpose", {"x": normal(1, 128, 12, 64)}, perm=[0, 2, 1, 3]),
    "transposed 0231 64@56": one("Transpose", {"x": normal(1, 64, 56, 56)}, perm=[0, 2, 3, 1]),
    "transposed 0312 56x56x64": one("Transpose", {"x": normal(1, 56, 56, 64)}, perm=[0, 3, 1, 2]),
    "transposed 3@640": one("Transpose", {"x": normal(1, 640, 640, 3)}, perm=[0, 3, 1, 2]),
    "transposed 2130 17x31x29x13": one("Transpose", {"x": normal(17, 31, 29, 13)}, perm=[2, 1, 3, 0]),
    "transposed 021543": one("Transpose", {"x": normal(2, 7, 9, 8, 5, 6)}, perm=[0, 2, 1, 5, 4, 3]),
    "transposed bytes 3@320": one(
        "Transpose", {"x": random().integers(0, 255, (1, 320, 320, 3)).astype(np.uint8)},
        result=TensorProto.UINT8, perm=[0, 3, 1, 2],
    ),
    "split 400x255 by 85": one("Split", {"x": normal(400, 255)}, more=[1, 1], axis=1, num_outputs=3),
    "split 8400x85": one(
        "Split", {"x": normal(8400, 85)}, {"split": np.array([4, 1, 80])},
        more=[1, 1], axis=1,
    ),
    "concat 8400x(4,1,80)": one(
        "Concat", {"x": normal(8400, 4), "z": normal(8400, 1), "c": normal(8400, 80)}, axis=1
    ),
    "slice every second 64@128": one(
        "Slice", {"x": normal(1, 64, 128, 128)},
        {"starts": np.array([0, 0]), "ends": np.array([128, 128]), "axes": np.array([2, 3]), "steps": np.array([2, 2])},
    ),
    "space to depth 3@640": one("SpaceToDepth", {"x": normal(1, 3, 640, 640)}, blocksize=2),
    "depth to space 64@64": one("DepthToSpace", {"x": normal(1, 64, 64, 64)}, blocksize=2),
    "cast to half 262144": one("Cast", {"x": normal(512, 512)}, result=_F16, to=_F16),
    "cast from half 262144": one("Cast", {"x": normal(512, 512).astype(np.float16)}, to=1),
    "cast to integers 262144": one("Cast", {"x": 50 * normal(512, 512)}, result=_I64, to=_I64),
    "cast from integers 262144": one("Cast", {"x": _ints(1000, 512, 512)}, to=1),
    "cast from bytes 3@320": one(
        "Cast", {"x": random().integers(0, 255, (1, 3, 320, 320)).astype(np.uint8)}, to=1
    ),
    "mod of integers 65536": one(
        "Mod", {"x": _ints(100000, 65536), "z": 1 + _ints(100, 65536)}, result=_I64
    ),
    "mod of floats 65536": one("Mod", {"x": 9 * normal(65536), "z": normal(65536)}, fmod=1),
    "shift 65536": one(
        "BitShift",
        {"x": _ints(100000, 65536).astype(np.uint32), "z": _ints(20, 65536).astype(np.uint32)},
        result=TensorProto.UINT32, direction="RIGHT",
    ),
    "einsum bhid,bhjd->bhij": one(
        "Einsum", {"x": normal(1, 8, 64, 32), "z": normal(1, 8, 64, 32)},
        equation="bhid,bhjd->bhij",
    ),
    "einsum bij,bjk->bik": one(
        "Einsum", {"x": normal(4, 64, 64), "z": normal(4, 64, 64)}, equation="bij,bjk->bik"
    ),
    "einsum bchw,cd->bdhw": one(
        "Einsum", {"x": normal(1, 64, 32, 32), "z": normal(64, 32)}, equation="bchw,cd->bdhw"
    ),
    "einsum i,j->ij": one("Einsum", {"x": normal(512), "z": normal(512)}, equation="i,j->ij"),
    "power 262144": one("Pow", {"x": abs(normal(512, 512)), "e": np.array(1.7, np.float32)}),
    "prelu 64@56": one("PRelu", {"x": normal(1, 64, 56, 56)}, {"slope": normal(64, 1, 1)}),
    "hard swish 64@56": one("HardSwish", {"x": normal(1, 64, 56, 56)}),
    "erf 128x3072": one("Erf", {"x": normal(128, 3072)}),
    "is close 65536": one("Less", {"x": normal(65536), "z": normal(65536)}, result=_BOOL),
    "max of two 1x512 over 512x1": one("Max", {"x": normal(1, 512), "z": normal(512, 1)}),
    "added channels 64@56": one("Add", {"x": normal(1, 64, 56, 56), "b": normal(64, 1, 1)}),
    "lrn 64@28": one("LRN", {"x": normal(1, 64, 28, 28)}, size=5),
    "lp norm 128x768": one("LpNormalization", {"x": normal(128, 768)}, axis=-1, p=2),
    "global max pool 64@56": one("GlobalMaxPool", {"x": normal(1, 64, 56, 56)}),
    "cumsum of integers 4x300x20": one(
        "CumSum", {"x": _ints(2, 4, 300, 20).astype(np.int32)}, {"axis": np.array(1)},
        TensorProto.INT32,
    ),
    "cumsum of integers 8x128": one("CumSum", {"x": _ints(2, 8, 128)}, {"axis": np.array(1)}, _I64),
    "range to mask 512": one(
        "Less", {"x": np.arange(512).reshape(1, 512), "z": np.array([[100], [512], [7], [300]])},
        result=_BOOL,
    ),
}  # fmt: skip


def _product(rows: int) -> Callable[[], Case]:
    """A product of an open number of rows."""
    case = one("MatMul", {"x": normal(rows, 768)}, {"w": normal(768, 768)})

    def open_rows() -> Case:
        model, inputs = case()
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"
        return model, inputs

    return open_rows


_OPENED = (
    "top 5 of 1000", "top 50 of 32000", "argmax 32x1000", "gather rows 32000x64",
    "gather elements 512x512", "where 8x128x128", "reflected pad 32@128", "zero pad 32@127",
    "lower triangle 8x256x256", "one hot 512 of 1000", "tile 64x64 by 4x5", "rois 100 of 64@50",
    "gru 10 steps of 128", "layer norm 16x64", "instance norm 64@64", "softmax 21@128 axis 1",
    "softmax 8x77x77", "mean over 256@14", "mean over rows 128x768", "transposed 0213 128x12x64",
    "transposed 3@640", "transposed 2130 17x31x29x13", "split 8400x85", "concat 8400x(4,1,80)",
    "slice every second 64@128", "depth to space 64@64", "cast to integers 262144",
    "einsum bhid,bhjd->bhij", "einsum bchw,cd->bdhw", "added channels 64@56",
)  # fmt: skip
_PRODUCTS = {f"{rows} open rows of 768x768": _product(rows) for rows in (*range(1, 9), 10)}
EVERYDAY = {**_FIXED, **_PRODUCTS, **{f"{name}, open": opened(_FIXED[name]) for name in _OPENED}}
