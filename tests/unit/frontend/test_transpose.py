"""Transposing copies against numpy, on every level that the machine runs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.kernels_harness import BEST, LEVELS, Kernel, aligned, empty, normal

from ingot_compiler.ir.dims import Dim, symbol
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops.loop_values import Apply, Load, Local, Value
from ingot_compiler.lowering.loops.program import Buffer, LoopProgram, Store, Transpose
from ingot_compiler.oracles.interpret_loops import interpret_loops
from ingot_compiler.targets.target import parse_target

P, R, C = symbol("p"), symbol("r"), symbol("c")


def transpose_program(
    rows: int,
    columns: int,
    blocks: tuple[int, int],
    *,
    symbolic: bool = False,
    dtype: DType = "f32",
    heavy: int = 0,
) -> LoopProgram:
    """b1[r, c] = b0[c, r] (+ b2[c], then ``heavy`` times exp(-|x|)); units are blocks of rows, then
    of columns."""
    height: Dim = symbol("R") if symbolic else rows
    width: Dim = symbol("C") if symbolic else columns
    strips = (width + blocks[1] - 1) // blocks[1]
    value: Value = Apply("add", (Local("x", dtype), Load(2, C)), dtype)
    for _ in range(heavy):
        value = Apply("exp", (Apply("neg", (Apply("abs", (value,), dtype),), dtype),), dtype)
    statement = Transpose(
        "r", height, P // strips * blocks[0], blocks[0], "c", width, P % strips * blocks[1], blocks[1],
        (("x", 0, C * height + R),), (Store(1, R * width + C, value),),
    )  # fmt: skip
    buffers = tuple(Buffer(dtype, number == 1) for number in range(3))
    extent = (height + blocks[0] - 1) // blocks[0] * strips
    return LoopProgram(buffers, ("R", "C") if symbolic else (), "p", extent, 1, (statement,))


SHAPES = [(16, 16), (5, 3), (1, 40), (33, 1), (56, 144), (70, 37), (32, 64)]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("rows", "columns"), SHAPES)
@pytest.mark.parametrize("blocks", [(16, 16), (64, 32)])
@pytest.mark.sweep(16)
def test_tails_of_rows_and_columns(
    level: str, rows: int, columns: int, blocks: tuple[int, int]
) -> None:
    """Every element arrives, whatever is left over beside whole tiles; nothing else is written."""
    x, bias = normal((columns, rows), 1), normal((columns,), 2)
    results = [empty((rows, columns)) for _ in range(2)]
    kernel = Kernel(transpose_program(rows, columns, blocks), parse_target(level))
    kernel.run([x, results[0], bias], parts=2)
    general = Kernel(transpose_program(0, 0, blocks, symbolic=True), parse_target(level))
    general.run([x, results[1], bias], (rows, columns), parts=3)
    np.testing.assert_array_equal(results[0], x.T + bias)
    np.testing.assert_array_equal(results[1], results[0])


@pytest.mark.sweep(3)
@pytest.mark.parametrize("dtype", ["f64", "i64", "i32", "i16", "u8"])
@pytest.mark.parametrize("level", LEVELS)
def test_element_types(level: str, dtype: DType) -> None:
    """Elements of 1, 2 and 8 bytes change places like those of 4."""
    kind = np.dtype({"f64": "f8", "i64": "i8", "i32": "i4", "i16": "i2", "u8": "u1"}[dtype])
    x = aligned(np.arange(37 * 21).reshape(37, 21) % 100, kind)
    bias, result = aligned(np.arange(37), kind), empty((21, 37), np.uint8).astype(kind)
    Kernel(transpose_program(21, 37, (16, 32), dtype=dtype), parse_target(level)).run(
        [x, result, bias]
    )
    np.testing.assert_array_equal(result, x.T + bias)


def test_long_epilogues_equal_the_interpreter() -> None:
    """An epilogue too long to be copied for every row gives what the loop interpreter gives."""
    program = transpose_program(21, 18, (16, 16), heavy=3)
    x, bias = normal((18, 21), 1), normal((18,), 2)
    results = [empty((21, 18)) for _ in range(2)]
    Kernel(program, parse_target(BEST)).run([x, results[0], bias])
    interpret_loops(program, [x.ravel(), results[1].ravel(), bias], {}, f32_lanes=16)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


def test_reads_stay_inside() -> None:
    """Masked vectors read nothing behind the operand's last element."""
    program = transpose_program(19, 7, (16, 16))
    x, bias, result = normal((7, 19), 1), normal((7,), 2), empty((19, 7))
    interpret_loops(program, [x.ravel(), result.ravel(), bias], {}, f32_lanes=16)
    np.testing.assert_array_equal(result, x.T + bias)
