"""Attention kernels against float64 softmax attention, on every level that the machine runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.harness.kernels_harness import LEVELS, Array, Kernel, aligned, empty, normal

from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.object import compile_object
from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mod, symbol
from ingot_compiler.kernels.attention_layout import (
    attention_query_block,
    attention_scratch_bytes,
)
from ingot_compiler.kernels.attention_values import packs_values
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Load, Local, Value
from ingot_compiler.lowering.loops.program import Attention, Buffer, LoopProgram, Store
from ingot_compiler.targets.target import Target, parse_target

P, Q, K, D, E = symbol("p"), symbol("q"), symbol("k"), symbol("d"), symbol("e")


def attention_program(
    target: Target,
    heads: int,
    queries: Dim,
    keys: Dim,
    depth: int,
    width: int,
    *,
    block: int = 7,
    mask: bool = False,
    causal: bool = False,
    offset: Dim = 0,
    nan_to_zero: bool = False,
    transposed: bool = False,
    in_place: bool = False,
) -> LoopProgram:
    """Buffers q [Q, heads, D], k [T, heads, D] ([heads, D, T] if ``transposed``), v [T, heads, E],
    mask [Q, T], result."""
    blocks = dim_floordiv(queries + block - 1, block)
    head = dim_floordiv(P, blocks)
    k_index = (
        (head * depth + D) * keys + K if transposed else K * (heads * depth) + head * depth + D
    )
    added: Value | None = Load(3, Q * keys + K) if mask else None
    statement = Attention(
        "q", queries, dim_mod(P, blocks) * block, block, "k", keys, "d", depth, "e", width, head,
        0, Q * (heads * depth) + head * depth + D, 1, k_index, 2, K * (heads * width) + head * width + E,
        depth**-0.5, added, causal, offset, nan_to_zero, in_place, "acc",
        (Store(4, Q * (heads * width) + head * width + E, Local("acc", "f32")),),
    )  # fmt: skip
    buffers = tuple(Buffer("f32", number == 4) for number in range(5))
    scalars = tuple(
        name for name, size in (("Q", queries), ("T", keys)) if not isinstance(size, int)
    )
    scratch = attention_scratch_bytes(
        keys, depth, width, block, target,
        in_place=in_place, packs_values=packs_values(statement, target),
    )  # fmt: skip
    return LoopProgram(buffers, scalars, "p", blocks * heads, 1, (statement,), scratch)


def reference(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    offset: int | None = None,
    *,
    nan_to_zero: bool = False,
) -> Array:
    """Unfused attention in float64; ``offset`` makes it causal."""
    q, k, v = (part.astype(np.float64).transpose(1, 0, 2) for part in (q, k, v))
    with np.errstate(all="ignore"):
        scores = q @ k.transpose(0, 2, 1) * q.shape[2] ** -0.5
        scores = scores if mask is None else scores + mask
        if offset is not None:
            keys, queries = np.indices((k.shape[1], q.shape[1]))
            visible: Array = np.less_equal(keys, queries + offset).T
            scores = np.where(visible, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        result = weights / weights.sum(-1, keepdims=True) @ v
    if nan_to_zero:
        result = np.where(np.isneginf(scores).all(-1, keepdims=True), 0, result)
    transposed: Array = result.transpose(1, 0, 2)
    return transposed


def inputs(
    heads: int, queries: int, keys: int, depth: int, width: int
) -> tuple[Array, Array, Array, Array]:
    """q, k, v and mask."""
    return (
        normal((queries, heads, depth), 1), normal((keys, heads, depth), 2), normal((keys, heads, width), 3),
        normal((queries, keys), 4),
    )  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mode", ["plain", "mask", "causal"])
@pytest.mark.parametrize(
    ("heads", "queries", "keys", "depth", "width"),
    [
        (3, 20, 64, 16, 64),
        (2, 7, 13, 20, 24),
        (1, 1, 1, 1, 1),
        (2, 5, 33, 17, 100),
        (1, 6, 130, 64, 3),
        (4, 13, 65, 3, 16),
    ],
)
@pytest.mark.sweep(16)
def test_heads_of_all_tails(
    level: str, mode: str, heads: int, queries: int, keys: int, depth: int, width: int
) -> None:
    """Queries, keys, depth and values that no tile divides give softmax attention, masked and
    causal too."""
    q, k, v, mask = inputs(heads, queries, keys, depth, width)
    target, result = parse_target(level), empty((queries, heads, width))
    offset = keys - queries
    program = attention_program(
        target,
        heads,
        queries,
        keys,
        depth,
        width,
        mask=mode == "mask",
        causal=mode == "causal",
        offset=offset,
    )
    Kernel(program, target).run([q, k, v, mask, result])
    exact = reference(
        q, k, v, mask if mode == "mask" else None, offset if mode == "causal" else None
    )
    assert np.abs(result - exact).max() < 5e-6


@pytest.mark.broad
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mode", ["plain", "mask", "causal", "both"])
@pytest.mark.parametrize(("queries", "keys"), [(49, 49), (50, 50), (10, 36), (25, 20)])
def test_several_tiles_of_a_unit(level: str, mode: str, queries: int, keys: int) -> None:
    """Scores of one tile stand before results of the one before: of two tiles and more, with the
    half vector of keys inside of a tile and alone, masks too; what a mask computes at length is
    applied in memory, and has the same bits."""
    target, heads = parse_target(level), 2
    q, k, v, mask = inputs(heads, queries, keys, 20, 24)
    is_causal, is_masked = mode in ("causal", "both"), mode in ("mask", "both")
    program = attention_program(
        target, heads, queries, keys, 20, 24,
        block=attention_query_block(queries, target), mask=is_masked, causal=is_causal,
    )  # fmt: skip
    result, again = empty((queries, heads, 24)), empty((queries, heads, 24))
    Kernel(program, target).run([q, k, v, mask, result])
    exact = reference(q, k, v, mask if is_masked else None, 0 if is_causal else None)
    assert np.abs(result - exact).max() < 5e-6
    if is_masked:
        Kernel(_with_long_mask(program), target).run([q, k, v, mask, again])
        assert result.tobytes() == again.tobytes()


def _with_long_mask(program: LoopProgram) -> LoopProgram:
    """The same mask, with numbers added that are 0."""
    (statement,) = program.body
    assert isinstance(statement, Attention)
    assert statement.mask is not None
    value = statement.mask
    for _ in range(100):
        value = Apply("add", (value, Constant(0.0, "f32")), "f32")
    return replace(program, body=(replace(statement, mask=value),))


@pytest.mark.sweep(32)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("causal", [False, True])
def test_symbolic_sizes_and_cuts_of_the_range(level: str, causal: bool) -> None:
    """One kernel serves any number of queries and keys; blocks and threads do not change a bit."""
    target, heads = parse_target(level), 3
    general = [
        Kernel(
            attention_program(
                target, heads, symbol("Q"), symbol("T"), 24, 40, block=block, causal=causal
            ),
            target,
        )
        for block in (6, 16)
    ]
    for queries, keys in ((1, 1), (19, 50), (33, 33), (0, 5)):
        q, k, v, mask = inputs(heads, queries, keys, 24, 40)
        known = Kernel(
            attention_program(target, heads, queries, keys, 24, 40, block=9, causal=causal), target
        )
        results: list[Array] = []
        for kernel, scalars, parts in (
            (general[0], (queries, keys), 1),
            (general[1], (queries, keys), 4),
            (known, (), 2),
        ):
            results.append(empty((queries, heads, 40)))
            kernel.run([q, k, v, mask, results[-1]], scalars, parts)
        assert len({result.tobytes() for result in results}) == 1
        assert (
            np.abs(results[0] - reference(q, k, v, offset=0 if causal else None)).max(initial=0)
            < 5e-6
        )


@pytest.mark.parametrize("level", LEVELS)
def test_transposed_keys(level: str) -> None:
    """Keys whose depth is not contiguous are gathered."""
    target = parse_target(level)
    q, k, v, mask = inputs(2, 9, 37, 10, 16)
    result = empty((9, 2, 16))
    program = attention_program(target, 2, 9, 37, 10, 16, transposed=True)
    Kernel(program, target).run([q, aligned(k.transpose(1, 2, 0)), v, mask, result])
    assert np.abs(result - reference(q, k, v)).max() < 5e-6


@pytest.mark.sweep(7)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("nan_to_zero", [False, True])
def test_rows_without_keys(level: str, nan_to_zero: bool) -> None:
    """A row whose scores are all -inf gives NaN, or 0 if asked; by the mask or by causality."""
    target = parse_target(level)
    q, k, v, mask = inputs(2, 11, 30, 16, 20)
    mask[4], mask[5, 3:] = -np.inf, -np.inf
    for causal, offset in ((False, None), (True, -3)):
        result = empty((11, 2, 20))
        program = attention_program(
            target,
            2,
            11,
            30,
            16,
            20,
            mask=True,
            causal=causal,
            offset=offset or 0,
            nan_to_zero=nan_to_zero,
        )
        Kernel(program, target).run([q, k, v, mask, result])
        exact = reference(q, k, v, mask, offset, nan_to_zero=nan_to_zero)
        np.testing.assert_allclose(result, exact, atol=5e-6, equal_nan=True)
        assert np.isnan(result[4]).all() != nan_to_zero


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("where", ["q", "k", "v"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.sweep(28)
def test_infinities_and_nan(level: str, causal: bool, where: str, value: float) -> None:
    """NaN and inf end where the unfused form has them, also values that causality hides: 0 * inf is
    NaN."""
    target = parse_target(level)
    q, k, v, mask = inputs(2, 11, 30, 16, 20)
    {"q": q, "k": k, "v": v}[where][7, 1, 2] = value
    result = empty((11, 2, 20))
    program = attention_program(target, 2, 11, 30, 16, 20, causal=causal)
    Kernel(program, target).run([q, k, v, mask, result])
    exact = reference(q, k, v, offset=0 if causal else None)
    np.testing.assert_allclose(result, exact, atol=5e-6, equal_nan=True)


@pytest.mark.parametrize("level", LEVELS)
def test_extreme_scores(level: str) -> None:
    """Masks of -1e30 and scores far apart neither overflow nor give NaN."""
    target = parse_target(level)
    q, k, v, mask = inputs(1, 12, 40, 8, 16)
    mask[:, 20:] = -1e30
    q *= 100
    result = empty((12, 1, 16))
    Kernel(attention_program(target, 1, 12, 40, 8, 16, mask=True), target).run(
        [q, k, v, mask, result]
    )
    assert np.abs(result - reference(q, k, v, mask)).max() < 2e-4


@pytest.mark.sweep(4)
@pytest.mark.parametrize("level", LEVELS)
def test_thousands_of_keys(level: str) -> None:
    """The scores of a tile may leave L1: long sequences stay exact."""
    target = parse_target(level)
    q, k, v, mask = inputs(1, 7, 5003, 32, 32)
    result = empty((7, 1, 32))
    Kernel(attention_program(target, 1, 7, 5003, 32, 32), target).run([q, k, v, mask, result])
    assert np.abs(result - reference(q, k, v)).max() < 5e-6


@pytest.mark.parametrize("level", LEVELS)
def test_computed_masks(level: str) -> None:
    """A mask may be any value over query and key, also one that all keys of a row share."""
    target = parse_target(level)
    q, k, v, mask = inputs(1, 9, 21, 8, 16)
    program = attention_program(target, 1, 9, 21, 8, 16, mask=True)
    statement = program.body[0]
    assert isinstance(statement, Attention)
    value = Apply(
        "mul", (Load(3, Q * 21 + K), Apply("add", (Load(3, Q), Constant(2.0, "f32")), "f32")), "f32"
    )
    body = replace(statement, mask=value)
    result = empty((9, 1, 16))
    changed = LoopProgram(
        program.buffers, (), "p", program.extent, 1, (body,), program.scratch_bytes
    )
    Kernel(changed, target).run([q, k, v, mask, result])
    assert np.abs(result - reference(q, k, v, mask * (mask.reshape(-1)[:9, None] + 2))).max() < 5e-6


def test_query_blocks_are_even() -> None:
    """Blocks cover the queries with less than a tile of waste each."""
    for name in (*LEVELS, "aarch64"):
        target = parse_target(name)
        assert attention_query_block(symbol("n"), target) > 0
        for queries in (1, 5, 6, 7, 64, 128, 197, 1024, 1504):
            block = attention_query_block(queries, target)
            assert 1 <= block <= 102
            assert -(-queries // block) * block - queries < 6 * -(-queries // block)


def test_rows_of_the_next_head_are_prefetched() -> None:
    """Two lines of 20 elements, of each of six queries, keys and values; none of many keys,
    and none of numbers that only a call tells."""
    target = parse_target("x86-64-v3")
    for queries, keys, block, count in (
        (13, 13, 6, 6 * 3 * 2),
        (2000, 2000, 96, 0),
        (13, 14, 6, 0),
        (symbol("Q"), symbol("T"), 96, 0),
    ):
        program = attention_program(target, 2, queries, keys, 20, 20, block=block)
        text = llvm_text(kernel_module(program, target))
        assert text.count("i32 0, i32 2, i32 1)") == count


@pytest.mark.broad
def test_foreign_targets_compile() -> None:
    """Kernels for machines that are not this one become objects."""
    for name in ("aarch64", "riscv64"):
        target = parse_target(name)
        module = kernel_module(
            attention_program(target, 2, 9, 30, 20, 24, mask=True, causal=True), target
        )
        assert compile_object(llvm_text(module), target, verify=True)[:4] == b"\x7fELF"


@pytest.mark.sweep(12)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mode", ["plain", "mask", "causal"])
@pytest.mark.parametrize(
    ("heads", "queries", "keys", "depth", "width"),
    [(2, 1, 64, 16, 64), (1, 7, 13, 48, 32), (3, 4, 33, 128, 96), (1, 8, 1, 80, 16)],
)
def test_keys_and_values_in_place(
    level: str, mode: str, heads: int, queries: int, keys: int, depth: int, width: int
) -> None:
    """Without repacking, few queries give softmax attention over any number of keys."""
    q, k, v, mask = inputs(heads, queries, keys, depth, width)
    target, result = parse_target(level), empty((queries, heads, width))
    program = attention_program(
        target, heads, queries, keys, depth, width, block=8, mask=mode == "mask",
        causal=mode == "causal", offset=keys - queries, in_place=True,
    )  # fmt: skip
    Kernel(program, target).run([q, k, v, mask, result])
    exact = reference(
        q, k, v, mask if mode == "mask" else None, keys - queries if mode == "causal" else None
    )
    np.testing.assert_allclose(result, exact, rtol=2e-5, atol=2e-6)
