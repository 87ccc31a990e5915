"""Products of pairs of bf16 on aarch64: ``bfdot`` rounds to odd, what the interpreter says of it,
and code under qemu-user bit by bit."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.lowering_harness import Builder, compile_graph, f32, normal
from tests.harness.qemu_harness import Foreign
from tests.unit.codegen.test_bf16_products import drawn
from tests.unit.lowering.test_contraction_dtypes import program

import ingot
from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.object import assembly_text
from ingot_compiler.lowering.loops.bf16_pairs import add_bf16_pair_to_odd
from ingot_compiler.lowering.loops.parse_loops import parse_loops
from ingot_compiler.lowering.loops.print_loops import print_loops
from ingot_compiler.lowering.loops.program import Contraction
from ingot_compiler.targets.target import parse_target

NAME = "aarch64+bf16"
TARGET = parse_target(NAME)


def to_odd(number: Fraction) -> float:
    """An oracle: the last of 24 bits is set where others are cut off."""
    if abs(number) < Fraction(2) ** -126:
        return 0.0
    exponent = math.floor(math.log2(abs(number)))
    while Fraction(2) ** exponent > abs(number):
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= abs(number):
        exponent += 1
    if exponent > 127:
        return math.copysign(math.inf, number)
    step = Fraction(2) ** (exponent - 23)
    count = abs(number) // step
    if count * step != abs(number):
        count |= 1
    return math.copysign(float(count * step), number)


def test_the_meaning_is_that_of_exact_fractions() -> None:
    """Numbers that are far apart, near each other, and at the ends of the range."""
    draw = np.random.default_rng(3)
    scales = draw.integers(-74, 66, (4, 2000)) * draw.integers(0, 2, 2000)
    made = draw.standard_normal((4, 2000)) * 2.0**scales
    factors = made.astype(ml_dtypes.bfloat16).astype(np.float64)
    totals = (draw.standard_normal(2000) * 2.0 ** draw.integers(-126, 127, 2000)).astype(np.float32)
    for case, total in enumerate(totals.tolist()):
        a, b, c, d = factors[:, case].tolist()
        exact = [to_odd(Fraction(x) * Fraction(y)) for x, y in ((a, b), (c, d))]
        if all(map(math.isfinite, exact)):
            inner = to_odd(sum(map(Fraction, exact), Fraction()))
            if math.isfinite(inner):
                expected = to_odd(Fraction(total) + Fraction(inner))
                assert add_bf16_pair_to_odd(total, (a, c), (b, d)) == expected
    greatest = float(np.finfo(np.float32).max)
    assert add_bf16_pair_to_odd(greatest, (1.0, 0.0), (1.0, 0.0)) == greatest
    assert add_bf16_pair_to_odd(greatest, (2.0**64, 0.0), (2.0**40, 0.0)) == math.inf
    assert add_bf16_pair_to_odd(1.0, (2.0**-40, 0.0), (1.0, 0.0)) == 1 + 2.0**-23
    assert add_bf16_pair_to_odd(1.0, (-(2.0**-40), 0.0), (1.0, 0.0)) == 1 - 2.0**-24
    assert math.isnan(add_bf16_pair_to_odd(0.0, (math.inf, 0.0), (0.0, 0.0)))


def test_the_instruction_takes_pairs_of_a_register() -> None:
    """On any machine that compiles."""
    loops = program(TARGET, (7, 40, 16), ("bf16", "bf16", "f32"), 2)
    text = assembly_text(llvm_text(kernel_module(loops, TARGET)), TARGET)
    assert text.count(".2h[") >= 4


def test_the_text_says_how_sums_are_rounded() -> None:
    """Programs of two targets differ, and read back."""
    builder = Builder([f32(5, 32)])
    product = builder.op("matmul", 0, builder.constant(normal(1, 32, 16)))
    graph = builder.finish([product])
    for target in (TARGET, parse_target("x86-64-v4+avx512bf16")):
        programs = compile_graph(graph, target, precision="bf16").programs
        (found,) = (each for each in programs if isinstance(each.body[0], Contraction))
        assert ("rounds_to_odd" in print_loops(found)) == (target == TARGET)
        assert parse_loops(print_loops(found)) == found


@pytest.mark.qemu
@pytest.mark.parametrize("edges", [0.0, 0.02])
@pytest.mark.parametrize("sizes", [(1, 5, 1), (7, 21, 39), (13, 33, 64)])
def test_foreign_code_equals_the_interpreter(
    sizes: tuple[int, int, int], edges: float, tmp_path: Path
) -> None:
    """Each rounding, denormals that count as 0, infinities and NaN; ends of rows, columns, depth."""
    rows, columns, depth = sizes
    a, b = drawn((rows, depth), 1, edges), drawn((depth, columns), 2, edges)
    wide = [(each.astype(np.uint32) << 16).view(np.float32) for each in (a, b)]
    model = make_model(
        [node("MatMul", "x w", "y")],
        [tensor("x", [rows, depth])],
        [tensor("y", None)],
        {"w": wide[1]},
    )
    ingot.compile(model, targets=NAME, precision="bf16").save(tmp_path / "m.ingot")
    program = Foreign.export(tmp_path / "m.ingot", "aarch64", "max")
    found = program.run({"x": wide[0]})["y"]
    expected = np.zeros((rows, columns), np.float32)
    with np.errstate(all="ignore"):
        for row, column in np.ndindex(rows, columns):
            left = [*wide[0][row].tolist(), 0.0]
            right = [*wide[1][:, column].tolist(), 0.0]
            total = 0.0
            for k in range(0, depth, 2):
                total = add_bf16_pair_to_odd(total, left[k : k + 2], right[k : k + 2])
            expected[row, column] = total
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), ~known)
    np.testing.assert_array_equal(found[known], expected[known])
