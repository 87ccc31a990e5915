"""Exponentials of the next tile between the multiply-adds of a tile's results."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.kernels_harness import BEST, LEVELS, Array, Kernel, empty
from tests.unit.frontend.test_attention import attention_program, inputs, reference

from ingot_compiler.codegen.function_code import Code, FunctionCode
from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.kernels.attention_layout import attention_layout, attention_query_block
from ingot_compiler.targets.target import parse_target

WIDE, TEMPORARIES = "x86-64-v4", 5
QUERIES, KEYS, DEPTH = 29, 37, 8


def test_code_is_spread_evenly() -> None:
    """All stands there, each piece in its order, the shorter one's parts as far apart as can be."""
    code = FunctionCode(parse_target(WIDE))
    many: Code = [f"m{number}" for number in range(7)]
    few: Code = ["a", "b", "c"]
    code.interleave(many, few)
    _, *labels = (block.label for block in code.kernel("k", ()).blocks)
    assert labels == ["m0", "m1", "m2", "a", "m3", "m4", "b", "m5", "m6", "c"]


@pytest.mark.parametrize("level", LEVELS)
def test_an_exponential_has_registers(level: str) -> None:
    """Results of tiles that overlap leave registers beside a row of values and a broadcast; on
    machines with few registers none overlaps."""
    target, found = parse_target(level), set[bool]()
    for length in range(1, 200, 3):
        for width in (16, 32, 64, 80, 128):
            block = attention_query_block(length, target)
            layout = attention_layout(
                length, 64, width, block, target, in_place=False, packs_values=True
            )
            found.add(layout.overlaps)
            needed = (layout.rows + 1) * layout.value_vectors + 1 + TEMPORARIES
            assert not layout.overlaps or needed <= target.vector_register_count
    assert found == ({False, True} if level == WIDE else {False})


@pytest.mark.sweep(6)
@pytest.mark.parametrize("width", [16, 80])
@pytest.mark.parametrize("mode", ["plain", "causal"])
def test_panels_share_the_exponentials(width: int, mode: str) -> None:
    """However many panels take rows of the next tile, weights and bits are those of attention whose
    tiles come one after the other."""
    target, offset = parse_target(BEST), KEYS - QUERIES
    q, k, v, mask = inputs(2, QUERIES, KEYS, DEPTH, width)

    def run(queries: Dim, keys: Dim, symbols: tuple[int, ...]) -> bytes:
        program = attention_program(
            target, 2, queries, keys, DEPTH, width, block=attention_query_block(queries, target),
            mask=False, causal=mode == "causal", offset=offset,
        )  # fmt: skip
        result = empty((QUERIES, 2, width))
        Kernel(program, target).run([q, k, v, mask, result], symbols, 1)
        exact = reference(q, k, v, None, offset if mode == "causal" else None)
        np.testing.assert_allclose(result, exact, rtol=0, atol=5e-6)
        return result.tobytes()

    assert run(QUERIES, KEYS, ()) == run(symbol("Q"), symbol("T"), (QUERIES, KEYS))


@pytest.mark.sweep(60)
@pytest.mark.parametrize("mode", ["plain", "mask"])
@pytest.mark.parametrize(
    ("heads", "depth", "width"), [(2, 32, 32), (160, 32, 32), (2, 16, 48), (160, 16, 48)]
)
@pytest.mark.parametrize("keys", [17, 32, 49])
def test_the_first_tile_packs(keys: int, heads: int, depth: int, width: int, mode: str) -> None:
    """A head that its first tile packs, keys alone or values too, in one part or cut inside of a
    head, has the bits of one that is packed before: whole blocks of keys and such of one key."""
    target, queries = parse_target(BEST), 100
    q, k, v, mask = inputs(heads, queries, keys, depth, width)
    sizes: tuple[tuple[Dim, tuple[int, ...]], ...] = ((keys, ()), (symbol("T"), (keys,)))
    kernels = [
        Kernel(
            attention_program(
                target, heads, queries, size, depth, width,
                block=attention_query_block(queries, target), mask=mode == "mask",
            ),
            target,
        )
        for size, _ in sizes
    ]  # fmt: skip
    results: list[Array] = []
    for kernel, (_, symbols) in zip(kernels, sizes, strict=True):
        for parts in (1, 3 * heads // 2):
            results.append(empty((queries, heads, width)))
            kernel.run([q, k, v, mask, results[-1]], symbols, parts)
    exact = reference(q, k, v, mask if mode == "mask" else None)
    np.testing.assert_allclose(results[0], exact, rtol=0, atol=5e-6)
    assert len({result.tobytes() for result in results}) == 1
