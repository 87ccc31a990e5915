"""Convolutions, matrix products and attention with what is fused around them: compiled code against
the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.codegen_harness import RUNNABLE
from tests.harness.lowering_harness import (
    Builder,
    check_graph,
    compile_graph,
    f32,
    normal,
    run_compiled,
)

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.loops.program import Contraction
from ingot_compiler.targets.target import Target, parse_target

RELATIVE = 1e-4  # DESIGN's limit for networks; chains of a few hundred multiply-adds stay far below


def conv(
    builder: Builder,
    operands: tuple[int, ...],
    strides: int = 1,
    pad: int = 1,
    dilations: int = 1,
    groups: int = 1,
    rank: int = 2,
) -> int:
    """A convolution that is alike along all axes."""
    return builder.op(
        "conv", *operands, strides=(strides,) * rank, pads_before=(pad,) * rank, pads_after=(pad,) * rank,
        dilations=(dilations,) * rank, groups=groups,
    )  # fmt: skip


@pytest.mark.broad
@pytest.mark.parametrize(
    ("channels", "filters", "kernel", "strides", "pad", "dilations", "groups"),
    [
        (3, 16, 7, 2, 3, 1, 1), (8, 24, 3, 1, 1, 1, 1), (16, 40, 1, 1, 0, 1, 1), (8, 8, 3, 2, 1, 1, 8),
        (8, 16, 3, 1, 2, 2, 1), (8, 12, 3, 1, 1, 1, 2), (33, 70, 1, 2, 0, 1, 1), (8, 16, 3, 1, 1, 1, 8),
    ],
)  # fmt: skip
@pytest.mark.parametrize("constant", [True, False])
def test_conv(
    channels: int,
    filters: int,
    kernel: int,
    strides: int,
    pad: int,
    dilations: int,
    groups: int,
    constant: bool,
) -> None:
    """Any stride, pad, dilation and grouping, weights packed at compile time or given at run
    time."""
    shape = (filters, channels // groups, kernel, kernel)
    builder = Builder([f32(2, channels, 14, 13), f32(*shape), f32(filters)])
    inputs = [normal(0, 2, channels, 14, 13), normal(1, *shape), normal(2, filters)]
    weights = tuple(builder.constant(x) for x in inputs[1:]) if constant else (1, 2)
    result = builder.op("relu", conv(builder, (0, *weights), strides, pad, dilations, groups))
    check_graph(builder, [result], inputs, RELATIVE, RUNNABLE)


@pytest.mark.parametrize("rank", [1, 3])
def test_conv_of_other_ranks(rank: int) -> None:
    """One and three spatial axes."""
    builder = Builder([f32(2, 5, *(7,) * rank)])
    w = builder.constant(normal(1, 6, 5, *(3,) * rank))
    check_graph(
        builder,
        [conv(builder, (0, w), rank=rank)],
        [normal(0, 2, 5, *(7,) * rank)],
        RELATIVE,
        RUNNABLE,
    )


@pytest.mark.broad
def test_conv_transpose() -> None:
    """Strides, pads and output padding, in groups."""
    for groups in (1, 2):
        builder = Builder([f32(1, 4, 6, 6)])
        w = builder.constant(normal(1, 4, 3, 3, 3))
        result = builder.op(
            "conv_transpose", 0, w, strides=(2, 2), pads_before=(1, 1), pads_after=(1, 1), dilations=(1, 1),
            groups=groups, output_padding=(1, 1),
        )  # fmt: skip
        check_graph(
            builder, [builder.op("relu", result)], [normal(0, 1, 4, 6, 6)], RELATIVE, RUNNABLE
        )


@pytest.mark.broad
def test_residual_block() -> None:
    """A value that a convolution reads (with a halo) and an addition reads again (without)."""
    builder = Builder([f32(1, 3, 12, 12)])
    w, w2 = builder.constant(normal(1, 8, 3, 3, 3)), builder.constant(normal(2, 8, 8, 3, 3))
    first = builder.op("relu", conv(builder, (0, w)))
    second = conv(builder, (first, w2))
    result = builder.op("relu", builder.op("add", second, first))
    check_graph(builder, [result, first], [normal(0, 1, 3, 12, 12)], RELATIVE, RUNNABLE)


@pytest.mark.sweep(8)
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 64, 100), (5, 7, 9), (128, 96, 64), (17, 33, 130), (49, 128, 48)]
)
def test_matmul(m: int, k: int, n: int) -> None:
    """A packed constant with an epilogue; batches of products that broadcast."""
    builder = Builder([f32(m, k), f32(2, 3, m, k), f32(3, k, n)])
    w, b = builder.constant(normal(1, k, n)), builder.constant(normal(2, n))
    first = builder.op("gelu", builder.op("add", builder.op("matmul", 0, w), b), approximate="none")
    second = builder.op("matmul", 1, 2)
    inputs = [normal(3, m, k), normal(4, 2, 3, m, k), normal(5, 3, k, n)]
    check_graph(builder, [first, second], inputs, RELATIVE, RUNNABLE)


@pytest.mark.parametrize("swap", [(True, False), (False, True), (True, True)])
def test_matmul_of_transposes(swap: tuple[bool, bool]) -> None:
    """Operands that do not lie row-major."""
    shapes = [(2, 7, 5) if swap[0] else (2, 5, 7), (9, 7) if swap[1] else (7, 9)]
    builder = Builder([f32(*shape) for shape in shapes])
    a = builder.op("transpose", 0, permutation=(0, 2, 1)) if swap[0] else 0
    b = builder.op("transpose", 1, permutation=(1, 0)) if swap[1] else 1
    inputs = [normal(seed, *shape) for seed, shape in enumerate(shapes)]
    check_graph(builder, [builder.op("matmul", a, b)], inputs, RELATIVE, RUNNABLE)


def test_integer_matmul() -> None:
    """Products of integers are exact."""
    draw = np.random.default_rng(0)
    builder = Builder([TensorType("i64", (3, 4)), TensorType("i64", (4, 5))])
    inputs = [draw.integers(-5, 5, (3, 4)), draw.integers(-5, 5, (4, 5))]
    check_graph(builder, [builder.op("matmul", 0, 1)], inputs, 0.0, RUNNABLE)


@pytest.mark.broad
@pytest.mark.parametrize("guarded", [False, True])
def test_transformer_block(guarded: bool) -> None:
    """Attention between products and a normalisation, for any batch and length, also of rows
    without any key."""
    batch, length = symbol("s1"), symbol("s0")
    builder = Builder(
        [TensorType("f32", (batch, length, 32)), TensorType("f32", (batch, 1, length, length))]
    )
    weights = [builder.constant(normal(seed, 32, 32)) for seed in range(4)]
    parts = [
        builder.op("reshape", builder.op("matmul", 0, w), shape=(batch, length, 4, 8))
        for w in weights[:3]
    ]
    q, k, v = (builder.op("transpose", part, permutation=(0, 2, 1, 3)) for part in parts)
    heads = builder.op("attention", q, k, v, 1, scale=0.35, causal=False, nan_to_zero=guarded)
    joined = builder.op(
        "reshape",
        builder.op("transpose", heads, permutation=(0, 2, 1, 3)),
        shape=(batch, length, 32),
    )
    total = builder.op("add", builder.op("matmul", joined, weights[3]), 0)
    scale = builder.constant(normal(9, 32))
    result = builder.op("layer_norm", total, scale, scale, axis=2, epsilon=1e-5)
    for b, s in ((1, 5), (2, 17), (1, 130)):
        mask = normal(7, b, 1, s, s)
        if guarded:
            mask = np.where(mask > 1, -np.inf, 0).astype(np.float32)
            mask[:, :, 0] = -np.inf
        check_graph(builder, [result], [normal(8, b, s, 32), mask], RELATIVE, RUNNABLE)


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_weights_of_attention_are_no_denormals(target: Target) -> None:
    """A mask of -80 to -110, as windows have it: what is multiplied is a normal number or 0, since a
    product of a denormal takes some processors a hundred cycles. The value of a key is its
    weight."""
    keys = 33
    builder = Builder(
        [f32(1, 1, 1, 16), f32(1, 1, keys, 16), f32(1, 1, keys, keys), f32(1, 1, 1, keys)]
    )
    heads = builder.op("attention", 0, 1, 2, 3, scale=1.0, causal=False, nan_to_zero=False)
    graph = builder.finish([heads])
    mask = np.linspace(0, -110, keys, dtype=np.float32).reshape(1, 1, 1, keys)
    zero = np.zeros((1, 1, 1, 16), np.float32)
    inputs = [
        zero,
        np.zeros((1, 1, keys, 16), np.float32),
        np.eye(keys, dtype=np.float32)[None, None],
        mask,
    ]
    (found,) = run_compiled(compile_graph(graph, target), graph, inputs, builder.read)
    weights = np.exp(mask.astype(np.float64))
    tiny = np.finfo(np.float32).tiny
    assert not np.any((found > 0) & (found < tiny))
    assert not np.any(found[weights < tiny])
    np.testing.assert_allclose(found, weights / weights.sum(), 1e-5, 2.0**-125)


@pytest.mark.broad
def test_an_epilogue_reads_what_the_kernel_reads_in_another_layout() -> None:
    """A kernel that works on a copy of x in its own layout may add x itself: image, pool,
    transposed matrix, heads."""
    image, square = normal(0, 2, 8, 6, 6), normal(1, 9, 9)
    builder = Builder([f32(2, 8, 6, 6), f32(9, 9), f32(1, 2, 5, 5)])
    w, depthwise = builder.constant(normal(2, 8, 8, 3, 3)), builder.constant(normal(3, 8, 1, 3, 3))
    outputs = [
        builder.op("sub", conv(builder, (0, w)), 0),
        builder.op("sub", conv(builder, (0, depthwise), groups=8), 0),
    ]
    window: dict[str, Attribute] = {
        "pads_before": (1, 1),
        "pads_after": (1, 1),
        "strides": (1, 1),
        "dilations": (1, 1),
    }
    outputs.append(builder.op("sub", builder.op("max_pool", 0, kernel=(3, 3), **window), 0))
    turned = builder.op("transpose", 1, permutation=(1, 0))
    outputs.append(
        builder.op("sub", builder.op("matmul", turned, builder.constant(normal(4, 9, 9))), turned)
    )
    outputs.append(builder.op("sub", builder.op("matmul", 1, turned), turned))
    heads = builder.op("transpose", 2, permutation=(0, 1, 3, 2))
    attention = builder.op(
        "attention", heads, heads, heads, scale=0.4, causal=False, nan_to_zero=False
    )
    outputs.append(builder.op("sub", attention, heads))
    check_graph(builder, outputs, [image, square, normal(5, 1, 2, 5, 5)], RELATIVE, RUNNABLE)


@pytest.mark.parametrize(("depth", "rows"), [(1024, 8), (2048, 8), (1008, 14)])
def test_rows_that_share_a_set_of_the_cache_are_few(depth: int, rows: int) -> None:
    """Where rows of A begin a multiple of 4096 bytes apart, a tile has no more than a set has
    places; elsewhere 32 columns get 14 rows."""
    builder = Builder([f32(784, depth)])
    graph = builder.finish([builder.op("matmul", 0, builder.constant(normal(1, depth, 32)))])
    (program,) = compile_graph(graph, parse_target("x86-64-v4")).programs
    (statement,) = program.body
    assert isinstance(statement, Contraction)
    assert statement.tile.rows <= rows
    assert (statement.tile.rows > 8) == (rows > 8)
