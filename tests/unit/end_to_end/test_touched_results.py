"""An infinity or NaN in one place of an operand touches the results that depend on that place, and
no other.

In: linear ops, an image for each place that holds a one, an infinity or NaN. Out: the results that
are not finite, compared with those that the one reaches. Not done here: rounding; places that count
for nothing because a weight is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import make_model, node, tensor

import ingot
import ingot_runtime

_PLACES_MAX = 600  # of larger operands, a sample


@dataclass(frozen=True, slots=True)
class Linear:
    """A node of one open operand [images, *shape]; ``weights`` is the shape of the constant one."""

    op: str
    shape: Sequence[int]
    weights: Sequence[int] = ()
    attributes: Mapping[str, Any] | None = None
    dtype: Any = np.float32
    more: Mapping[str, Array] | None = None

    def __str__(self) -> str:
        """What the test is called."""
        said = " ".join(f"{name}={value}" for name, value in (self.attributes or {}).items())
        return f"{self.op} {list(self.shape)} {list(self.weights)} {said} {np.dtype(self.dtype)}"


def _conv(shape: Sequence[int], weights: Sequence[int], **attributes: Any) -> Linear:
    return Linear("Conv", shape, weights, attributes)


def _transposed(shape: Sequence[int], weights: Sequence[int], **attributes: Any) -> Linear:
    return Linear("ConvTranspose", shape, weights, attributes)


CONVOLUTIONS = [
    _conv((1, 9), (1, 1, 3), pads=[1, 1]),
    _conv((3, 9), (16, 3, 3), pads=[1, 1]),
    _conv((3, 7, 7), (5, 3, 3, 3), pads=[1, 1, 1, 1]),
    _conv((4, 8, 8), (8, 4, 3, 3), pads=[1, 1, 1, 1], strides=[2, 2]),
    _conv((1, 8, 8), (16, 1, 5, 5), pads=[2, 2, 2, 2]),
    _conv((6, 8, 8), (6, 1, 3, 3), pads=[1, 1, 1, 1], group=6),
    _conv((16, 8, 8), (16, 1, 3, 3), pads=[1, 1, 1, 1], group=16, strides=[2, 2]),
    _conv((8, 7, 7), (8, 2, 3, 3), pads=[1, 1, 1, 1], group=4),
    _conv((6, 7, 7), (12, 1, 3, 3), pads=[1, 1, 1, 1], group=6),
    _conv((12, 6, 6), (8, 3, 1, 1), group=4),
    _conv((16, 8, 8), (32, 16, 1, 1)),
    _conv((5, 9, 9), (7, 5, 3, 3), dilations=[3, 3], pads=[3, 3, 3, 3]),
    _conv((4, 5, 5), (4, 4, 3, 3), dilations=[4, 4], pads=[4, 4, 4, 4]),
    _conv((64, 8, 8), (64, 64, 3, 3), pads=[1, 1, 1, 1]),
    _conv((64, 9, 7), (64, 64, 5, 5), pads=[2, 2, 2, 2]),
    _conv((64, 24), (64, 64, 3), pads=[1, 1]),
    _conv((128, 8, 8), (128, 64, 3, 3), pads=[1, 1, 1, 1], group=2),
    _conv((3, 12, 12), (16, 3, 7, 7), pads=[3, 3, 3, 3], strides=[2, 2]),
    _conv((2, 4, 5, 5), (3, 2, 3, 3, 3), pads=[1] * 6),
]
TRANSPOSED = [
    *(
        _transposed((depth, 6), (depth, own, kernel), strides=[stride])
        for depth, own in ((1, 1), (3, 2), (9, 3), (8, 16))
        for stride in (1, 2, 3, 4)
        for kernel in (1, 2, 3, 4, 5)
    ),
    _transposed((4, 5, 4), (4, 2, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1]),
    _transposed((4, 5, 4), (4, 2, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]),
    _transposed((4, 5, 4), (4, 2, 3, 3), strides=[2, 2], pads=[0, 0, 1, 1], output_padding=[1, 1]),
    _transposed((4, 5, 4), (4, 2, 2, 3), strides=[2, 3], pads=[1, 2, 0, 1]),
    _transposed((4, 5, 4), (4, 1, 3, 3), strides=[2, 2], group=4),
    _transposed((4, 5, 4), (4, 1, 3, 3), strides=[2, 2], group=4, pads=[1, 1, 0, 0]),
    _transposed((4, 5, 4), (4, 3, 3, 2), strides=[2, 3], group=2),
    _transposed((8, 5, 4), (8, 17, 3, 3), strides=[2, 2]),
    _transposed((16, 5, 4), (16, 2, 3, 3), strides=[2, 2]),
    _transposed((16, 5, 4), (16, 2, 5, 5), strides=[3, 2], pads=[2, 2, 2, 2]),
    _transposed((3, 5, 4), (3, 2, 3, 3), dilations=[2, 2]),
    _transposed((3, 5, 4), (3, 2, 3, 3), dilations=[2, 1], strides=[1, 3]),
    _transposed((3, 5, 4), (3, 2, 3, 3), dilations=[2, 2], strides=[3, 3]),
    _transposed((3, 3, 4, 2), (3, 2, 3, 2, 3), strides=[2, 2, 2]),
    _transposed((64, 6, 6), (64, 64, 3, 3), pads=[1, 1, 1, 1]),
    *(
        Linear("ConvTranspose", (3, 5, 4), (3, 2, 3, 3), {"strides": [2, 2]}, dtype)
        for dtype in (np.float64, np.float16)
    ),
]  # fmt: skip
OTHERS = [
    Linear("MatMul", (3, 5), (5, 7)),
    Linear("MatMul", (33, 40), (40, 70)),
    Linear("MatMul", (17, 40), (40, 33), None, np.float16),
    Linear("MatMul", (64, 768), (768, 128)),
    Linear(
        "AveragePool", (2, 7, 6), (),
        {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 1, 1, 0]},
    ),
    Linear(
        "AveragePool", (2, 7, 6), (),
        {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1},
    ),
    Linear("GlobalAveragePool", (3, 5, 5)),
    Linear("ReduceSum", (4, 6, 3), (), {"keepdims": 0}, more={"axes": np.array([2])}),
    Linear("ReduceMean", (4, 6, 3), (), None, more={"axes": np.array([1, 3])}),
    Linear("CumSum", (5, 9), (), {"reverse": 1}, more={"axis": np.array(2)}),
    Linear("Col2Im", (12, 20), more={"size": np.array([6, 5]), "block": np.array([2, 2])}),
    Linear(
        "Col2Im", (27, 16), (), {"pads": [1] * 4, "strides": [2, 2]},
        more={"size": np.array([7, 7]), "block": np.array([3, 3])},
    ),
    Linear("Pad", (2, 5), (), {"mode": "reflect"}, more={"pads": np.array([0, 0, 2, 0, 0, 3])}),
    Linear("Einsum", (4, 5), (5, 4, 3), {"equation": "bij,jik->bik"}),
]  # fmt: skip


def _bundle(case: Linear, folder: Path, **options: Any) -> ingot_runtime.Session:
    random = np.random.default_rng(1)
    constants = dict(case.more or {})
    if case.weights:
        drawn = random.integers(1, 9, case.weights) * random.choice((-1, 1), case.weights)
        constants = {"w": (drawn / 8).astype(case.dtype), **constants}
    made = node(case.op, " ".join(("x", *constants)), "y", **(case.attributes or {}))
    kind = {np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE}.get(
        case.dtype, TensorProto.FLOAT16
    )
    x, y = tensor("x", ("images", *case.shape), kind), tensor("y", None, kind)
    path = folder / "model.ingot"
    ingot.compile(make_model([made], [x], [y], constants), **options).save(path)
    return ingot_runtime.load(path)


def _is_touched(session: ingot_runtime.Session, case: Linear) -> Array:
    """A fact for each image and result: whether the image's place reaches the result; compared
    along the way."""
    count = prod(case.shape)
    places = np.random.default_rng(2).permutation(count)[:_PLACES_MAX]
    x = np.zeros((len(places), count), case.dtype)
    x[np.arange(len(places)), places] = 1
    reached = session.run({"x": x.reshape(-1, *case.shape)})["y"]
    touched: Array = np.abs(reached) > 1 / 64  # Winograd's algorithm rounds
    for number in (np.inf, -np.inf, np.nan):
        x = np.random.default_rng(3).integers(1, 4, (len(places), count)).astype(case.dtype)
        x[np.arange(len(places)), places] = number
        found = session.run({"x": x.reshape(-1, *case.shape)})["y"]
        np.testing.assert_array_equal(~np.isfinite(found), touched)
        if not np.isnan(number):
            assert not np.isnan(found).any()
    return touched


@pytest.mark.sweep(60)
@pytest.mark.parametrize("target", ["native", "x86-64-v3", "x86-64-v2"])
@pytest.mark.parametrize("case", [*CONVOLUTIONS, *TRANSPOSED, *OTHERS], ids=str)
def test_only_what_depends_on_a_number_is_touched(
    case: Linear, target: str, tmp_path: Path
) -> None:
    """Results that a place reaches are infinite or NaN with it, of its own sign; all others are
    numbers, in each place."""
    assert _is_touched(_bundle(case, tmp_path, targets=(target,)), case).any()


@pytest.mark.sweep(30)
@pytest.mark.parametrize("precision", ["fast", "bf16x3", "bf16"])
@pytest.mark.parametrize("case", [*CONVOLUTIONS[13:17], *OTHERS[1:4]], ids=str)
def test_no_precision_touches_more(case: Linear, precision: str, tmp_path: Path) -> None:
    """So it is with tiles of other algorithms, and with factors in parts."""
    session = _bundle(case, tmp_path, targets=("x86-64-v4+avx512bf16",), precision=precision)
    assert _is_touched(session, case).any()
