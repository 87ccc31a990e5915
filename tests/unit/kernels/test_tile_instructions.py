"""Tile registers (AMX) of the processor itself, where a test machine has them: bit by bit what the
interpreter of loops says.

In: kernels of bytes, of bf16 and of parts of it. Not done here: what functions in the place of the
instructions show on every machine (``test_matrix_tiles``, ``test_split_products``).
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.kernels_harness import Array, Kernel
from tests.harness.lowering_harness import Builder, check_graph, normal
from tests.unit.kernels.test_matrix_tiles import TARGET, bf16_programs
from tests.unit.lowering.test_byte_convolutions import PAIRS, drawn
from tests.unit.lowering.test_split_products import (
    DIRECT,
    EDGES,
    any_size,
    convolution,
    product,
    result,
    sparse,
    wide,
)

from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.oracles.interpret_loops import interpret_loops
from ingot_compiler.targets.host_target import host_target

__all__ = ["any_size"]  # a fixture
HERE = ["this processor"] if set(host_target().features) >= set(TARGET.features) else []
has_tiles = pytest.mark.parametrize("machine", HERE)
"""Nothing runs elsewhere: an instruction that a processor does not have cannot be tried."""


@has_tiles
@pytest.mark.parametrize("seed", range(8))
def test_any_bits_of_bf16(machine: str, seed: int) -> None:
    """Every second seed draws all bit patterns: denormals, infinities, NaN, either zero."""
    del machine
    draw = np.random.default_rng(seed)
    for program, arrays in bf16_programs():
        given = [_drawn(draw, array, any_bits=seed % 2 == 1) for array in arrays]
        expected = [array.copy() for array in given]
        with np.errstate(all="ignore"):
            interpret_loops(program, expected, {}, f32_lanes=TARGET.f32_lanes)
        Kernel(program, TARGET).run(given, parts=2)
        np.testing.assert_array_equal(given[-1], expected[-1])


def _drawn(draw: np.random.Generator, array: Array, *, any_bits: bool) -> Array:
    """Factors of the size of an array of bf16; other arrays are as they are."""
    if array.dtype != np.uint16:
        return array.copy()
    if any_bits:
        return draw.integers(0, 1 << 16, array.shape).astype(np.uint16)
    scale = np.float32(10.0 ** draw.uniform(-3, 3))
    numbers = draw.standard_normal(array.shape, np.float32) * scale
    return (numbers.view(np.uint32) >> 16).astype(np.uint16)


@has_tiles
@pytest.mark.parametrize("dtypes", PAIRS)
@pytest.mark.parametrize(("rows", "depth", "columns"), [(37, 132, 40), (16, 64, 16), (50, 200, 33)])
def test_bytes(
    machine: str, dtypes: tuple[DType, DType], rows: int, depth: int, columns: int
) -> None:
    """Every pair of signs, sums are exact."""
    del machine
    a, b = drawn((rows, depth), dtypes[0], 1), drawn((depth, columns), dtypes[1], 2)
    builder = Builder([TensorType(dtypes[0], a.shape)])
    total = builder.op("matmul_integer", 0, builder.constant(b, dtypes[1]))
    check_graph(builder, [builder.op("add", total, total)], [a], 0.0, [TARGET])


@has_tiles
@pytest.mark.parametrize("seed", range(3))
def test_parts(machine: str, seed: int) -> None:
    """Products and convolutions of parts are near those of multiply-adds, and differ from them."""
    del machine
    draw = (normal, sparse, wide)[seed]
    x, w = draw(seed, 50, 330), normal(seed + 1, 330, 70)
    split, chain = (result(product(x, w), x, target) for target in (TARGET, DIRECT))
    assert not np.array_equal(split, chain)
    np.testing.assert_allclose(split, chain, 0, 1e-5 * float(np.abs(chain).max()))
    x, w = draw(seed, 1, 32, 14, 14), normal(seed + 1, 64, 32, 3, 3)
    split, chain = (result(convolution(x, w), x, target) for target in (TARGET, DIRECT))
    np.testing.assert_allclose(split, chain, 0, 1e-5 * float(np.abs(chain).max()))


@has_tiles
def test_what_parts_cannot_hold(machine: str) -> None:
    """Infinities, NaN and what overflows comes out as from multiply-adds, bit by bit."""
    del machine
    x, w = normal(1, 50, 66), normal(2, 66, 70)
    for number, edge in enumerate(EDGES):
        x[3 * number + 1, 5 * number + 2] = edge
    split, chain = (result(product(x, w), x, target) for target in (TARGET, DIRECT))
    np.testing.assert_array_equal(split, chain)
