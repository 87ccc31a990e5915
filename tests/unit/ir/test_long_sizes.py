"""Sizes whose expressions are long: pads to windows upon pads, products of many sums.

What swin2sr does by the older exporter of PyTorch: pad to a multiple of a window, crop, pad again,
and split both axes into windows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto
from tests.harness.codegen_harness import Array
from tests.harness.end_to_end_harness import check_model, make_model, node, tensor

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mod, evaluate, symbol
from ingot_compiler.ir.sizes.ranges import lower_bound, maximum, minimum

_N, _M = symbol("n"), symbol("m")
_PAD = dim_mod(-_N, 4)


@pytest.mark.parametrize(
    ("dim", "wanted"),
    [
        (dim_mod(-dim_mod(_N, 4), 4), dim_mod(-_N, 4)),
        (dim_mod(_N + dim_mod(-_N, 4), 4), 0),
        (dim_mod(2 * dim_mod(_N, 8) + _M, 4), dim_mod(_M + 2 * _N, 4)),
        (dim_mod(dim_mod(_N, _M) + 3, _M), dim_mod(_N + 3, _M)),
        (maximum(-_PAD, 0), 0),
        (minimum(-_PAD, 0), -_PAD),
    ],
)
def test_remainders_of_remainders(dim: Dim, wanted: Dim) -> None:
    """They are one remainder; an order that can be seen needs no choice."""
    assert dim == wanted


@pytest.mark.parametrize("outer", [-6, -4, -1, 0, 1, 2, 4, 6])
@pytest.mark.parametrize("inner", [-8, -4, -1, 0, 1, 4, 8, 12])
def test_exactness(outer: int, inner: int) -> None:
    """No simplification changes a value, whatever the divisors' signs."""
    dim = dim_mod(3 * dim_mod(_N - 5, inner) + _N, outer)
    for n in range(14):
        rest = (n - 5) % inner if inner else 0
        assert evaluate(dim, {"n": n}) == ((3 * rest + n) % outer if outer else 0)


@pytest.mark.parametrize(
    ("dim", "least"),
    [
        (dim_floordiv(_N - 1, 2) - dim_floordiv(_N - 2, 2), 0),
        (dim_floordiv(_N + 5, 3) - dim_floordiv(_N - 2, 3), 2),
        (2 * dim_floordiv(_N - 2, 2) + 3 - _N, 0),
        (_N - 3 * dim_floordiv(_N - 1, 3), 1),
        (2 * dim_floordiv(dim_floordiv(_N, 2) - 1, 2) - dim_floordiv(_N, 2) + 2, 0),
        (dim_floordiv(_N, 2) - dim_floordiv(_N, 3), None),  # not seen
        (dim_floordiv(_N, 2) - _N, None),
    ],
)
def test_quotients_are_near_what_they_divide(dim: Dim, least: int | None) -> None:
    """Sizes of windows that are rounded up are compared so; no bound is above a value."""
    assert lower_bound(dim) == least
    assert least is None or all(evaluate(dim, {"n": n}) >= least for n in range(40))


@pytest.mark.parametrize("seed", range(40))
def test_bounds_hold(seed: int) -> None:
    """Of sums of quotients by a few numbers, positive and negative, within one another."""
    random = np.random.default_rng(seed)
    dim: Dim = _N
    for _ in range(5):
        left = dim_floordiv(dim + int(random.integers(-4, 5)), int(random.integers(-1, 5)))
        dim = int(random.integers(-4, 5)) * left + int(random.integers(-2, 3)) * dim
        for difference in (dim, left - dim, dim - left, dim_floordiv(_N, 2) - dim):
            bound = lower_bound(difference)
            values = [evaluate(difference, {"n": n}) for n in range(60)]
            assert bound is None or min(values) >= bound


def test_pools_that_round_up(tmp_path: Path) -> None:
    """Pools of squeezenet and googlenet, sizes left open: each is one quotient of the last."""
    nodes: list[NodeProto] = []
    weights: dict[str, Array] = {}
    for index, name in enumerate("abcd"):
        weights[f"w{index}"] = np.full((2, 2, 1, 1), 0.5, np.float32)
        nodes.append(node("Conv", f"{name} w{index}", f"c{index}"))
        window: dict[str, object] = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}
        result = chr(ord(name) + 1)
        nodes.append(node("MaxPool", f"c{index}", result, **window))
    x, y = tensor("a", ["n", 2, "h", "w"]), tensor("e", None)
    model = make_model(nodes, [x], [y], weights)
    random = np.random.default_rng(0)
    sizes = [(1, 2, 33, 40), (2, 2, 64, 51)]
    feeds = [{"a": random.standard_normal(size).astype(np.float32)} for size in sizes]
    check_model(model, feeds, tmp_path)


def _product_of_sums() -> ModelProto:
    """``x`` to four sizes, each the sum of the eight sizes of another input."""
    nodes: list[NodeProto] = []
    inputs = [tensor("x", ["k"])]
    for axis in range(4):
        inputs.append(tensor(f"z{axis}", [f"n{axis}{index}" for index in range(8)]))
        nodes.append(node("Shape", f"z{axis}", f"s{axis}"))
        nodes.append(node("ReduceSum", f"s{axis}", f"d{axis}", keepdims=1))
    nodes.append(node("Constant", "", "minus", value_ints=[-1]))
    nodes.append(node("Concat", "d0 d1 d2 minus", "d", axis=0))
    nodes.append(node("Concat", "d0 d1 d2 d3", "e", axis=0))
    nodes += [node("Reshape", "x d", "y"), node("Reshape", "x e", "v")]
    return make_model(nodes, inputs, [tensor("y", None), tensor("v", None)])


def test_a_product_of_many_sums(tmp_path: Path) -> None:
    """Sizes whose product would be too long an expression are read at run time."""
    feed = {f"z{axis}": np.zeros((1,) * 7 + (axis + 1,), np.float32) for axis in range(4)}
    feed["x"] = np.arange(8 * 9 * 10 * 11, dtype=np.float32)
    check_model(_product_of_sums(), [feed], tmp_path)
