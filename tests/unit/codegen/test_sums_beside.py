"""Vector loops whose lanes have sums of their own take several registers at once; the order of each
sum stays as it was."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.codegen_harness import RUNNABLE, interpret, run_program
from tests.harness.kernels_harness import aligned, empty

from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.ir.dims import Dim, dim_mul, symbol
from ingot_compiler.lowering.loops.loop_values import Apply, Compare, FromIndex, Load, Local, Value
from ingot_compiler.lowering.loops.program import (
    Buffer,
    For,
    If,
    Let,
    LoopProgram,
    Reduce,
    Statement,
    Store,
)
from ingot_compiler.targets.target import Target, parse_target

ROW, J, N = symbol("i"), symbol("j"), symbol("n")
ROWS = 5
TOTAL = Local("total", "f32")
ELEMENT = Load(0, dim_mul(ROW, N) + J)
PRODUCT = Apply("mul", (ELEMENT, Load(1, ROW)), "f32")
MEAN = Apply("div", (TOTAL, FromIndex(symbol("rows"), "f32")), "f32")


def program(
    value: Value, result: Value, columns: Dim = N, body: tuple[Statement, ...] = ()
) -> LoopProgram:
    """``buffer 2[j] = result`` for j < n, where ``total`` is the sum of ``value`` over all rows."""
    total = Reduce("total", "sum", "i", symbol("rows"), "f32", body, value)
    loop = For("j", columns, "vector", (total, Store(2, J, result)))
    buffers = (Buffer("f32", written=False), Buffer("f32", written=False), Buffer("f32", True))
    return LoopProgram(buffers, ("n", "rows"), "p", 1, 1, (loop,))


def together(columns: Dim = N) -> LoopProgram:
    """``buffer 2[copy * n + j]`` for three copies of the body, each with products by another of the
    numbers; nothing is stored by the last one."""
    copy = symbol("copy")
    product = Apply("mul", (ELEMENT, Load(1, copy + ROW)), "f32")
    total = Reduce("total", "sum", "i", 3, "f32", (Let("x", product),), Local("x", "f32"))
    stored = Store(2, dim_mul(copy, columns) + J, TOTAL)
    copies = For("copy", 3, "unroll", (total, If(Compare("less", copy, 2), (stored,))))
    buffers = program(PRODUCT, TOTAL).buffers
    return LoopProgram(buffers, ("n",), "p", 1, 1, (For("j", columns, "vector", (copies,)),))


LIMITED = Apply("max", (TOTAL, Apply("neg", (TOTAL,), "f32")), "f32")
DOUBLED = Let("twice", Apply("add", (ELEMENT, ELEMENT), "f32"))
WIDE = {
    "a sum of products": program(PRODUCT, TOTAL),
    "a mean": program(ELEMENT, MEAN),
    "functions of sums": program(PRODUCT, LIMITED),
    "with values of its own": program(Local("twice", "f32"), TOTAL, body=(DOUBLED,)),
    "of known columns": program(PRODUCT, TOTAL, 133),
}
NARROW = {
    "an exponential": program(PRODUCT, Apply("exp", (TOTAL,), "f32")),
    "elements apart": program(Load(0, dim_mul(J, symbol("rows")) + ROW), TOTAL),
    "an index in lanes": program(PRODUCT, Apply("mul", (TOTAL, FromIndex(J, "f32")), "f32")),
    "of few columns": program(PRODUCT, TOTAL, 31),
}


def _text(found: LoopProgram) -> str:
    return llvm_text(kernel_module(found, parse_target("x86-64-v4")))


@pytest.mark.parametrize("name", WIDE)
def test_sums_beside_each_other(name: str) -> None:
    """Four registers of 16 lanes; two where there are fewer columns."""
    assert "<64 x float>" in _text(WIDE[name])
    assert "<32 x float>" in _text(program(PRODUCT, TOTAL, 63))


@pytest.mark.parametrize("name", NARROW)
def test_others_have_one_register(name: str) -> None:
    """What costs more than a sum, or does not lie together, gains nothing."""
    text = _text(NARROW[name])
    assert "<16 x float>" in text
    assert "<32 x float>" not in text
    assert "<64 x float>" not in text


@pytest.mark.sweep(5)
@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("name", [*WIDE, *NARROW])
def test_every_number_of_columns_is_right(target: Target, name: str) -> None:
    """Wide vectors, usual ones and the masked rest write each element once and nothing else."""
    found, draw = {**WIDE, **NARROW}[name], np.random.default_rng(1)
    for count in _counts(found):
        x, y = (aligned(draw.normal(size=size), np.float32) for size in (ROWS * count, ROWS))
        got, expected = empty((count + 8,), np.float32), empty((count + 8,), np.float32)
        for run, place in ((run_program, got), (interpret, expected)):
            run(found, target, [x, y, place], {"n": count, "rows": ROWS})
        np.testing.assert_allclose(got, expected, 1e-5, 1e-6)


def _counts(found: LoopProgram) -> list[int]:
    loop = found.body[0]
    assert isinstance(loop, For)
    return [loop.extent] if isinstance(loop.extent, int) else [0, 1, 17, 64, 69, 131]


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_a_column_has_the_bits_that_it_has_alone(target: Target) -> None:
    """In a wide vector, in a usual one and in the masked rest."""
    count, draw = 85, np.random.default_rng(2)
    x, y = (aligned(draw.normal(size=size), np.float32) for size in ((ROWS, count), ROWS))
    got, alone = empty((count,), np.float32), empty((1,), np.float32)
    found = WIDE["a sum of products"]
    run_program(found, target, [x, y, got], {"n": count, "rows": ROWS})
    for column in range(count):
        run_program(found, target, [x[:, column].copy(), y, alone], {"n": 1, "rows": ROWS})
        assert alone[0] == got[column]


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("columns", [N, 133])
def test_sums_of_copies_are_one_loop(target: Target, columns: Dim) -> None:
    """A loop of several sums gives each the bits that it has alone, and reads nothing twice."""
    draw = np.random.default_rng(3)
    for count in [columns] if isinstance(columns, int) else [0, 1, 17, 64, 69, 131]:
        x, y = (aligned(draw.normal(size=size), np.float32) for size in (3 * count, 5))
        got, expected = empty((2 * count + 8,), np.float32), empty((2 * count + 8,), np.float32)
        run_program(together(columns), target, [x, y, got], {"n": count})
        interpret(together(columns), target, [x, y, expected], {"n": count})
        np.testing.assert_allclose(got, expected, 1e-5, 1e-6)
        for copy in range(2):
            alone = empty((count + 8,), np.float32)
            own = program(Local("x", "f32"), TOTAL, columns, (Let("x", PRODUCT),))
            run_program(own, target, [x, y[copy:].copy(), alone], {"n": count, "rows": 3})
            np.testing.assert_array_equal(got[copy * count :][:count], alone[:count])
    text = _text(together(columns))
    assert "<64 x float>" in text
