"""Products of each row by the matrix of its group: kernels against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.codegen_harness import RUNNABLE, Array
from tests.unit.lowering_harness import Builder, check_graph, f32, normal

from ingot_compiler.backends.host.targets.target import Target
from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.types import TensorType

_SHAPES = ((3, 1, 24, 5), (4, 7, 40, 33), (2, 70, 100, 130), (5, 3, 300, 272), (1, 4, 8, 16))
"""Groups, rows, depth, columns."""


def _groups(kind: str, rows: int, count: int) -> Array:
    rng = np.random.default_rng(rows)
    if kind == "one":
        return np.full(rows, count - 1)
    if kind == "outside":
        return rng.integers(-2, count + 3, rows)
    return rng.integers(0, count, rows)


def _graph(
    shape: tuple[int, int, int, int], *, constant: bool, is_open: bool
) -> tuple[Builder, int]:
    """A product, a number for each row and one for each column, an activation."""
    count, rows, depth, columns = shape
    size: Dim = symbol("rows") if is_open else rows
    inputs = [f32(size, depth), TensorType("i64", (size,)), f32(size, 1)]
    if not constant:
        inputs.append(f32(count, depth, columns))
    builder = Builder(inputs)
    b = builder.constant(normal(2, count, depth, columns)) if constant else 3
    scaled = builder.op("mul", builder.op("grouped_matmul", 0, 1, b), 2)
    bias = builder.constant(normal(3, columns))
    return builder, builder.op("relu", builder.op("add", scaled, bias))


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("kind", ["any", "one", "outside"])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.sweep(12)
def test_kernels_give_what_the_interpreter_does(
    target: Target, shape: tuple[int, int, int, int], kind: str, *, constant: bool, is_open: bool
) -> None:
    """Groups of no, one and many rows, columns beyond whole panels, what follows in the kernel."""
    builder, result = _graph(shape, constant=constant, is_open=is_open)
    count, rows, depth, columns = shape
    feeds = [normal(0, rows, depth), _groups(kind, rows, count), normal(1, rows, 1)]
    if not constant:
        feeds.append(normal(2, count, depth, columns))
    check_graph(builder, (result,), feeds, targets=[target])


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("rounded", [True, False])
@pytest.mark.parametrize("has_zero", [True, False])
@pytest.mark.parametrize("rows", [1, 9, 200])
@pytest.mark.sweep(12)
def test_matrices_in_blocks(
    target: Target, bits: int, rows: int, *, rounded: bool, has_zero: bool
) -> None:
    """Matrices that end in the middle of a panel, with and without zero points."""
    count, block, depth, columns = 3, 32, 96, 37
    rng = np.random.default_rng(bits + rows)
    builder = Builder([f32(rows, depth), TensorType("i64", (rows,))])
    per_block = count, columns, depth // block
    numbers = rng.integers(0, 256, (count, columns, depth * bits // 8)).astype(np.uint8)
    weights = [builder.constant(numbers), builder.constant(normal(1, *per_block))]
    if has_zero:
        zero = rng.integers(0, 1 << bits, per_block).astype(np.uint8)
        weights.append(builder.constant(zero))
    table = {"bits": bits, "block": block, "signed": False, "rounded": rounded}
    product = builder.op("grouped_matmul_blocks", 0, 1, *weights, **table)
    result = builder.op("silu", product)
    feeds = [normal(0, rows, depth), _groups("outside", rows, count)]
    check_graph(builder, (result,), feeds, 2e-4, targets=[target])
