"""The blocks of a sum: they cover it in order, and kernels add them so, bit by bit.

In: loops of sums, products and convolutions of open and known sizes. Out: counts, bits. Not done
here: errors of whole networks (``bench_errors``), other properties of sums (``test_contraction``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from tests.harness.chains import chain_of_steps, chain_product
from tests.harness.kernels_harness import BEST, LEVELS
from tests.harness.lowering_harness import Builder, compile_graph, f32, normal

import ingot
import ingot_runtime
from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.ir.dims import evaluate, symbol
from ingot_compiler.kernels.sum_blocks import SumBlocks, sum_blocks
from ingot_compiler.targets.target import parse_target

Array = np.ndarray[Any, Any]
NAMES: tuple[str, ...] = ("y", "x", "k")
TARGETS = [level for level in LEVELS if level != "x86-64-v2"]  # which rounds products


def _points(cut: SumBlocks, sizes: Mapping[str, int]) -> list[list[tuple[int, ...]]]:
    """What the loops of each block visit, as the cut says it."""
    around = [range(evaluate(extent, sizes)) for _, extent in cut.around]
    found = list[list[tuple[int, ...]]]()
    for block in itertools.product(*around):
        at = dict(zip((name for name, _ in cut.around), block, strict=True))
        extents = [evaluate(extent, sizes) for _, extent in cut.inside]
        if cut.parts is not None and block[-1] == len(around[-1]) - 1:
            extents[0] = evaluate(cut.parts.whole, sizes) - block[-1] * cut.parts.rounds
        names = [name for name, _ in cut.inside]
        points = list[tuple[int, ...]]()
        for rounds in itertools.product(*map(range, extents)):
            here = {**dict.fromkeys(NAMES, 0), **at, **dict(zip(names, rounds, strict=True))}
            places = [evaluate(cut.index.get(name, symbol(name)), here) for name in NAMES]
            points.append(tuple(places))
        found.append(points)
    return found


@pytest.mark.broad
@given(
    st.lists(st.integers(0, 9), max_size=2), st.integers(0, 900), st.sets(st.sampled_from(NAMES))
)
def test_blocks_cover_a_sum_in_order(taps: list[int], depth: int, unknown: set[str]) -> None:
    """Each product is in one block, in the order of the loops, whichever extents are known; open ones
    make the blocks of known ones, where they are all of the taps or the depth alone."""
    names = NAMES[3 - len(taps) - 1 :]
    sizes = dict(zip(names, (*taps, depth), strict=True))
    loops = [(name, symbol(name) if name in unknown else sizes[name]) for name in names]
    blocks = _points(sum_blocks(loops), sizes)
    ordered = [point for block in blocks for point in block]
    every = itertools.product(*(range(sizes.get(name, 1)) for name in NAMES))
    assert ordered == list(every)
    assert max(map(len, blocks), default=0) <= 425
    if not taps:
        assert [len(b) for b in blocks] == [len(b) for b in _points(sum_blocks([("k", depth)]), {})]


@pytest.mark.parametrize(
    ("loops", "lengths"),
    [
        ([("k", 288)], [288]),
        ([("k", 289)], [192, 97]),
        ([("k", 768)], [192] * 4),
        ([("k", 0)], [0]),
        ([("y", 3), ("x", 0), ("k", 500)], []),
        ([("y", 300), ("k", 0)], [0] * 2),
        ([("y", 3), ("x", 3), ("k", 64)], [192] * 3),
        ([("y", 3), ("x", 3), ("k", 144)], [144] * 9),
        ([("y", 7), ("x", 7), ("k", 3)], [147]),
        ([("y", 7), ("x", 7), ("k", 64)], [192, 256] * 7),
    ],
)
def test_lengths(loops: list[tuple[str, int]], lengths: list[int]) -> None:
    """Blocks have some 192 products."""
    assert [len(block) for block in _points(sum_blocks(loops), {})] == lengths


def _few_bits(seed: int, *shape: int) -> Array:
    """Numbers whose products are exact and whose sums a double holds: one rounding for each step."""
    exponents = np.random.default_rng(seed).integers(-6, 7, shape)
    numbers = np.random.default_rng(seed + 1).integers(-255, 256, shape)
    return (numbers * 2.0**exponents).astype(np.float32)


def _summed(a: Array, b: Array, loops: Sequence[tuple[str, int]]) -> Array:
    """``a[row, k] @ b[k, column]``, each block a chain of multiply-adds."""
    total: Array | None = None
    first = 0
    for block in _points(sum_blocks(loops), {}):
        chain = chain_of_steps(a, b, range(first, first + len(block)))
        first += len(block)
        total = chain if total is None else total + chain
    assert total is not None
    return total


def _run(
    op: str,
    inputs: Mapping[str, Array],
    weights: Mapping[str, Array],
    open_axes: Mapping[str, Mapping[int, str]],
    target: str,
    **attributes: Any,
) -> Array:
    """One node, compiled and run."""
    declared = [
        helper.make_tensor_value_info(
            name,
            TensorProto.FLOAT,
            [open_axes.get(name, {}).get(axis, size) for axis, size in enumerate(value.shape)],
        )
        for name, value in inputs.items()
    ]
    tensors = [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()]
    node = helper.make_node(op, [*inputs, *weights], ["y"], **attributes)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "sum", declared, [result], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    bundle = ingot.compile(model, targets=[target])
    return ingot_runtime.load(bundle.to_bytes()).run(dict(inputs))["y"]


@pytest.mark.sweep(60)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("depth", [7, 288, 289, 500, 768, 1001])
@pytest.mark.parametrize("rows", [1, 9])
def test_bits_of_products(target: str, depth: int, rows: int) -> None:
    """Products by weights with known and open rows, and products of open depth, have the bits of
    chains over blocks that are added in their order."""
    a, b = _few_bits(depth, rows, depth), _few_bits(depth + 1, depth, 37)
    expected = _summed(a, b, [("k", depth)])
    cases: list[tuple[dict[str, Array], dict[str, Array], dict[str, dict[int, str]]]] = [
        ({"a": a}, {"b": b}, {}),
        ({"a": a}, {"b": b}, {"a": {0: "rows"}}),
        ({"a": a, "b": b}, {}, {"a": {1: "depth"}, "b": {0: "depth"}}),
    ]
    for inputs, weights, open_axes in cases:
        found = _run("MatMul", inputs, weights, open_axes, target)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.sweep(20)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("channels", "kernel"), [(144, 3), (64, 7), (40, 3)])
@pytest.mark.parametrize("open_size", [False, True])
def test_bits_of_convolutions(target: str, channels: int, kernel: int, *, open_size: bool) -> None:
    """Convolutions with stride 2 have the bits of chains over blocks of taps and channels."""
    size = kernel + 2
    x, weights = (
        _few_bits(channels, 1, channels, size, size),
        _few_bits(5, 24, channels, kernel, kernel),
    )
    windows = np.lib.stride_tricks.sliding_window_view(x[0], (kernel, kernel), (1, 2))[:, ::2, ::2]
    rows = windows.transpose(1, 2, 3, 4, 0).reshape(4, -1)
    columns = weights.transpose(2, 3, 1, 0).reshape(-1, 24)
    loops = [("y", kernel), ("k", kernel * channels)]  # pixels of a row lie as one
    expected = _summed(rows, columns, loops).T.reshape(1, 24, 2, 2)
    axes = {"x": {2: "height", 3: "width"}} if open_size else {}
    found = _run("Conv", {"x": x}, {"w": weights}, axes, target, strides=[2, 2])
    np.testing.assert_array_equal(found, expected)


def test_error_of_a_deep_product() -> None:
    """A product of open rows over a depth of 3,072 is at most half as far from the true one as chains
    of multiply-adds."""
    random = np.random.default_rng(3)
    a, b = (random.standard_normal(shape, np.float32) for shape in ((5, 3072), (3072, 16)))
    chain = chain_product(a, b)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    found = _run("MatMul", {"a": a}, {"b": b}, {"a": {0: "rows"}}, BEST)
    assert math.dist(found.ravel(), exact.ravel()) < 0.5 * math.dist(chain.ravel(), exact.ravel())


@pytest.mark.parametrize("depth", [200, 384, 768])
def test_panels_are_fetched_ahead_as_a_whole(depth: int) -> None:
    """A panel of 16 columns that does not stay in L1 is fetched ahead, also where each of its blocks
    would; a small one is not."""
    machine = parse_target("x86-64-v4")
    builder = Builder([f32(16, depth)])
    product = builder.op("matmul", 0, builder.constant(normal(1, depth, 16)))
    (program,) = compile_graph(builder.finish([product]), machine).programs
    text = llvm_text(kernel_module(program, machine))
    assert ("@llvm.prefetch" in text) == (depth * 64 >= 16384)
