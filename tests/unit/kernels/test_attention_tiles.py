"""Attention where tiles end: of queries, of keys, before the last key that causality shows."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.harness.end_to_end_harness import check_model, make_model, node, tensor
from tests.harness.kernels_harness import LEVELS, Array, Kernel, empty, normal
from tests.unit.frontend.test_attention import attention_program, inputs, reference

from ingot_compiler.ir.dims import Dim, evaluate, symbol
from ingot_compiler.kernels.attention_layout import attention_layout, attention_query_block
from ingot_compiler.targets.target import parse_target

DEPTH, WIDTH, WINDOW = 9, 40, 6
MODES = ("plain", "mask", "causal", "window")
# Windows of 49; each height of a tile; up to 8 keys behind the last whole vector of 16, or more;
# fewer keys than a vector; panels that are whole.
SIZES = (
    (49, 49), (5, 17), (6, 24), (7, 40), (8, 56), (8, 57), (13, 3), (50, 50), (1, 8), (6, 136),
    (10, 96), (64, 64), (0, 5), (4, 0),
)  # fmt: skip


@cache
def of_any_size(level: str, mode: str) -> Kernel:
    """The kernel whose queries and keys only a call tells."""
    target = parse_target(level)
    program = attention_program(
        target, 2, symbol("Q"), symbol("T"), DEPTH, WIDTH,
        block=attention_query_block(symbol("Q"), target), mask=mode in {"mask", "window"},
        causal=mode == "causal", offset=3,
    )  # fmt: skip
    return Kernel(program, target)


def masked(mode: str, mask: Array) -> Array:
    """The mask, of which a window hides what is far from the diagonal."""
    if mode == "window":
        query, key = np.indices(mask.shape)
        mask[np.abs(query - key) > WINDOW] = -np.inf
    return mask


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("queries", "keys"), SIZES)
@pytest.mark.sweep(60)
def test_ends_of_tiles(level: str, mode: str, queries: int, keys: int) -> None:
    """It is softmax attention, and has the same bits where sizes are known and where not, in one
    part and in three."""
    target = parse_target(level)
    q, k, v, mask = inputs(2, queries, keys, DEPTH, WIDTH)
    mask = masked(mode, mask)
    known = Kernel(
        attention_program(
            target, 2, queries, keys, DEPTH, WIDTH, block=attention_query_block(queries, target),
            mask=mode in {"mask", "window"}, causal=mode == "causal", offset=3,
        ),
        target,
    )  # fmt: skip
    results = [empty((queries, 2, WIDTH)) for _ in range(4)]
    for result, later, parts in zip(results[:2], results[2:], (1, 3), strict=True):
        known.run([q, k, v, mask, result], (), parts)
        of_any_size(level, mode).run([q, k, v, mask, later], (queries, keys), parts)
    assert len({result.tobytes() for result in results}) == 1
    if queries and keys:
        exact = reference(
            q, k, v, mask if mode in {"mask", "window"} else None, 3 if mode == "causal" else None
        )
        np.testing.assert_allclose(results[0], exact, rtol=0, atol=5e-6, equal_nan=True)


@pytest.mark.parametrize("name", [*LEVELS, "aarch64"])
def test_a_tile_fits(name: str) -> None:
    """Accumulators fit the registers beside a row of B and a broadcast or an element's vector for each row, blocks are whole tiles, and
    every part of scratch holds what is written to it in whole vectors."""
    target, heights = parse_target(name), set[int]()
    for length in range(200):
        block = attention_query_block(length, target)
        layout = attention_layout(
            length, DEPTH, length, block, target, in_place=False, packs_values=True
        )
        heights.add(layout.rows)
        for vectors in (layout.vectors, layout.value_vectors):
            needed = (layout.rows + 1) * vectors + target.multiplies_by_element * layout.rows
            assert needed < target.vector_register_count
        assert block % layout.rows == 0
        whole = -(-length // layout.lanes) * layout.lanes
        assert isinstance(layout.keys_padded, int)
        assert layout.keys_padded % layout.panel == 0 <= layout.keys_padded - whole < layout.panel
        assert layout.value_padded >= whole
    assert max(heights) == (8 if name == "x86-64-v4" else 7 if name == "aarch64" else 6)
    assert heights == set(range(1, max(heights) + 1))


@pytest.mark.parametrize("level", LEVELS[1:])
@pytest.mark.parametrize("length", [49, "n"])
@pytest.mark.sweep(60)
def test_windows_of_a_model(level: str, length: int | str, tmp_path: Path) -> None:
    """Windows of a model, masked and causal, have the same bits with one thread and two, native and
    stepped, and are what ONNX says; also where only the call tells how many keys there are."""
    nodes = [
        node("Attention", "q k v mask", "masked"),
        node("Attention", "q k v", "causal", is_causal=1),
    ]
    tensors = [tensor("q", [1, 3, 49, 8]), tensor("mask", [49, length])]
    tensors += [tensor(part, [1, 3, length, 8]) for part in "kv"]
    model = make_model(nodes, tensors, [tensor(name, None) for name in ("masked", "causal")])
    model.opset_import[0].version = 23
    feeds = [
        {
            "q": normal((1, 3, 49, 8), 1), "k": normal((1, 3, keys, 8), 2),
            "v": normal((1, 3, keys, 8), 3), "mask": masked("window", normal((49, keys), 4)),
        }
        for keys in ((49,) if length == 49 else (49, 56, 57))
    ]  # fmt: skip
    check_model(model, feeds, tmp_path, targets=(level,))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("rows", "width"), [(1, 64), (2, 64), (2, 128), (4, 64), (5, 128)])
def test_values_in_place_take_the_registers_that_few_rows_leave(
    level: str, rows: int, width: int
) -> None:
    """Values that are read where they lie are read in as few passes as a tile has registers for,
    never more passes than repacked ones take."""
    target = parse_target(level)
    keys = symbol("T")
    placed, packed = (
        attention_layout(keys, 64, width, rows, target, in_place=flag, packs_values=not flag)
        for flag in (True, False)
    )
    vectors = width // target.f32_lanes
    assert placed.rows == rows
    assert packed.value_vectors <= placed.value_vectors <= vectors
    assert rows * placed.value_vectors <= 3 * target.vector_register_count // 4
    if rows <= 2 and target.vector_register_count == 32:
        assert placed.value_vectors == vectors


@pytest.mark.sweep(14)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("heads", "mode", "is_near"),
    [(2, "plain", True), (2, "mask", True), (2, "causal", False), (40, "plain", False)],
)
def test_values_near_each_other_are_not_copied(
    level: str, heads: int, mode: str, *, is_near: bool
) -> None:
    """Values that are read where they lie give the bits of a copy, for which scratch then has no
    room; a causal tile needs one, and so do values whose rows are far apart."""
    target, length, width = parse_target(level), 50, 48
    q, k, v, mask = inputs(heads, length, length, DEPTH, width)
    block = attention_query_block(symbol("Q"), target)
    sizes: tuple[tuple[Dim, tuple[int, ...]], ...] = ((length, ()), (symbol("T"), (length,)))
    results: list[bytes] = []
    scratch: list[int] = []
    for keys, symbols in sizes:
        program = attention_program(
            target, heads, length, keys, DEPTH, width, block=block, mask=mode == "mask",
            causal=mode == "causal",
        )  # fmt: skip
        result = empty((length, heads, width))
        Kernel(program, target).run([q, k, v, mask, result], symbols)
        results.append(result.tobytes())
        scratch.append(evaluate(program.scratch_bytes, dict.fromkeys(program.scalars, length)))
    assert results[0] == results[1]
    copy_bytes = 4 * length * width
    assert (scratch[0] < scratch[1] - copy_bytes // 2) == (is_near and target.f32_lanes == 16)
