"""Rows as integers of a few bytes, multiplied by weights of 4 and 8 bits in blocks: exact where the
model does not ask for less, with a way back for blocks that have no integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto
from tests.harness.codegen_harness import (
    DOT_PRODUCTS,
    RUNNABLE,
    compile_only,
    interpret,
    require_interpreted,
    run_program,
)
from tests.harness.end_to_end_harness import run_all_ways
from tests.unit.frontend.test_block_weights import blocked_bytes, drawn, n_bits, packed, weights

import ingot
from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.op import Array
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.kernels.products.block_digits import (
    EXACT,
    ROUNDED,
    BlockDigits,
    digit_program,
    with_operands,
)
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.groups.views import dense_view
from ingot_compiler.lowering.loops.loop_parts import Digits
from ingot_compiler.lowering.loops.loop_values import Local
from ingot_compiler.lowering.loops.parse_loops import parse_loops
from ingot_compiler.lowering.loops.print_loops import print_loops
from ingot_compiler.lowering.loops.program import BlockedProduct, Buffer, LoopProgram, Store
from ingot_compiler.targets.target import Target, parse_target

TARGETS: tuple[Target, ...] = (*RUNNABLE, *DOT_PRODUCTS)
ROWS, COLUMNS, BLOCKS, BLOCK = 5, 20, 2, 16
RNG = np.random.default_rng(4)


def digit_loops(count: int, parts: int) -> LoopProgram:
    """The loops that make digits of [ROWS, BLOCKS * BLOCK]."""
    kind = TensorType("f32", (ROWS, BLOCKS * BLOCK))
    a = Operand(0, kind, 0, dense_view(kind.shape, (0, 1)))
    group = Group(Method("matmul_blocks"), (), (a,), (), ((0, kind),), 0, ())
    digits = BlockDigits(a, BLOCK, parts, count)
    before, _ = with_operands(group, digits)
    return digit_program(before, digits)


def digit_arrays(x: Array, count: int) -> list[Array]:
    """The arguments of these loops."""
    blocks = ROWS * BLOCKS
    return [
        x.reshape(-1),
        np.zeros(blocks * count * BLOCK, np.int8),
        np.zeros(blocks, np.float32),
        np.zeros(blocks * count, np.int32),
    ]


def special_rows() -> Array:
    """Numbers, and blocks of zeros, NaN, an infinity, tiny and huge ones."""
    x = RNG.standard_normal((ROWS, BLOCKS * BLOCK)).astype(np.float32)
    x[0, :BLOCK] = 0
    x[1, 3], x[1, BLOCK + 2] = np.nan, -np.inf
    x[2, :BLOCK] *= np.float32(1e-36)
    x[2, BLOCK:] *= np.float32(3.3e38) / np.abs(x[2, BLOCK:]).max()
    return x


@pytest.mark.parametrize("count", [EXACT, ROUNDED])
@pytest.mark.parametrize("parts", [1, 2])
def test_digits_stand_for_the_rows(count: int, parts: int) -> None:
    """Within 0.75 steps; the step is below 0 in blocks without integers, and nowhere else; sums are
    those of the digits; machine code and interpreter agree."""
    program, x = digit_loops(count, parts), special_rows()
    assert parse_loops(print_loops(program)) == program
    expected = digit_arrays(x, count)
    interpret(program, RUNNABLE[0], expected, {})
    _, digits, steps, sums = expected
    places = digits.reshape(ROWS, BLOCKS, count, parts, BLOCK // parts).swapaxes(3, 4)
    values = (places.astype(np.int64) * 256 ** np.arange(count).reshape(-1, 1, 1)).sum(2)
    steps = steps.reshape(ROWS, BLOCKS, 1)
    assert np.argwhere(steps < 0)[:, :2].tolist() == [[1, 0], [1, 1], [2, 0], [2, 1]]
    found = values.reshape(ROWS, BLOCKS, BLOCK) * steps.astype(np.float64)
    far = np.abs(found - x.reshape(found.shape).astype(np.float64)) <= 0.76 * steps
    assert np.all(far | (steps < 0))
    assert sums.tolist() == digits.reshape(-1, BLOCK).astype(np.int32).sum(1).tolist()
    is_plain = np.repeat(steps.reshape(-1) >= 0, count * BLOCK)
    for target in TARGETS:
        arrays = digit_arrays(x, count)
        run_program(program, target, arrays, {})
        np.testing.assert_array_equal(arrays[2], expected[2])
        np.testing.assert_array_equal(arrays[1][is_plain], digits[is_plain])


@pytest.mark.sweep(8)
@pytest.mark.parametrize("count", [EXACT, ROUNDED])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(("signed", "with_zeros"), [(False, False), (True, True), (False, True)])
def test_machine_code_equals_the_interpreter(
    count: int, bits: int, *, signed: bool, with_zeros: bool
) -> None:
    """Of a product with digits, some blocks of which have none; its text parses back."""
    statement = BlockedProduct(
        "row", ROWS, 0, 64, "column", COLUMNS, 16 * symbol("p"), BLOCKS, BLOCK,
        0, BLOCKS * BLOCK * symbol("row"), 1, 2, 3 if with_zeros else None, bits, signed, "acc",
        (Store(7, symbol("column") + COLUMNS * symbol("row"), Local("acc", "f32")),),
        Digits(count, 4, 5, 6),
    )  # fmt: skip
    dtypes: tuple[DType, ...] = ("f32", "u8", "f32", "u8", "i8", "f32", "i32", "f32")
    buffers = tuple(Buffer(dtype, written=at == 7) for at, dtype in enumerate(dtypes))
    program = LoopProgram(buffers, (), "p", 2, 1, (statement,))
    assert parse_loops(print_loops(program)) == program
    x = RNG.standard_normal((ROWS, BLOCKS * BLOCK)).astype(np.float32)
    x[1, 3] = 1e-36
    x[1, :BLOCK] *= np.float32(1e-34)
    rows = digit_arrays(x, count)
    interpret(digit_loops(count, 8 // bits), RUNNABLE[0], rows, {})
    arrays: list[Array] = [
        rows[0],
        RNG.integers(0, 256, 2 * 16 * BLOCKS * BLOCK * bits // 8).astype(np.uint8),
        RNG.uniform(0.1, 1, 2 * 16 * BLOCKS).astype(np.float32),
        RNG.integers(0, 1 << bits, 2 * 16 * BLOCKS).astype(np.uint8),
        *rows[1:],
        np.zeros(ROWS * COLUMNS, np.float32),
    ]
    require_interpreted(program, TARGETS, arrays)
    for text in ("aarch64+asimddp", "aarch64+asimddp+i8mm"):
        assert compile_only(program, parse_target(text))


@pytest.mark.broad
def test_rows_do_not_depend_on_their_neighbours(tmp_path: Path) -> None:
    """A row of numbers has the same bits beside rows of NaN, infinities and tiny numbers, and
    alone; these come out as from floats."""
    codes, scale, _ = drawn(128, 20, 32, 4)
    model = n_bits(128, 20, 32, 4, b=blocked_bytes(codes, 32, 4), scale=scale.reshape(-1))
    path = tmp_path / "m.ingot"
    ingot.compile(model, targets=[str(target) for target in TARGETS]).save(path)
    x = RNG.standard_normal((7, 128)).astype(np.float32)
    x[1, 5], x[2, 5], x[3] = np.nan, np.inf, x[3] * np.float32(1e-35)
    alone, beside = run_all_ways(path, [{"x": x[:1]}, {"x": x}])
    np.testing.assert_array_equal(beside["y"][0], alone["y"][0])
    assert np.isnan(beside["y"][1]).all()
    assert not np.isfinite(beside["y"][2]).any()
    expected = x[3].astype(np.float64) @ weights(codes, scale, 8, 32)
    np.testing.assert_allclose(beside["y"][3], expected, 1e-3, 1e-38)


def rounded_model(bits: int, block: int) -> tuple[ModelProto, Array]:
    """A product that allows activations of 8 bits, and its weights."""
    codes, scale, zero = drawn(256, 20, block, bits)
    given = {"b": blocked_bytes(codes, block, bits), "scale": scale.reshape(-1)}
    model = n_bits(256, 20, block, bits, **given, zero=packed(zero, bits).reshape(-1))
    model.graph.node[0].attribute.add(name="accuracy_level", type=2, i=4)
    return model, weights(codes, scale, zero, block)


@pytest.mark.broad
@pytest.mark.parametrize(("bits", "block"), [(4, 32), (8, 64)])
def test_accuracy_level_4_rounds_activations(bits: int, block: int, tmp_path: Path) -> None:
    """To 127 steps of each block's largest magnitude, on every target alike; sums are exact."""
    model, expected = rounded_model(bits, block)
    x = RNG.standard_normal((5, 256)).astype(np.float32)
    blocks = x.reshape(5, -1, block)
    step = np.abs(blocks).max(-1, keepdims=True) / np.float32(127)
    rounded = (np.rint(blocks / step) * step.astype(np.float64)).reshape(5, -1)
    wanted, far = rounded @ expected, np.abs(rounded) @ np.abs(expected)
    path = tmp_path / "m.ingot"
    exact = x.astype(np.float64) @ expected
    for target in TARGETS:
        ingot.compile(model, targets=[str(target)]).save(path)
        (found,) = run_all_ways(path, [{"x": x}])
        assert np.all(np.abs(found["y"] - wanted) <= 4e-7 * far)
        assert np.abs(found["y"] - exact).max() > 1e-4 * np.abs(exact).max()
