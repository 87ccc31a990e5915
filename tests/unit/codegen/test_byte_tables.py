"""Bytes chosen by bytes from a table of 256: by instructions for all lanes, or one by one."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.codegen_harness import NUMPY, RUNNABLE, interpret, run_program
from tests.harness.kernels_harness import aligned, empty

from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.ir.dims import dim_floordiv, dim_mul, symbol
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops.loop_values import Apply, Load
from ingot_compiler.lowering.loops.program import Buffer, For, LetIndex, LoopProgram, Store
from ingot_compiler.targets.host_target import host_target
from ingot_compiler.targets.target import Target, parse_target

J, OFFSET = symbol("j"), 5
VBMI = parse_target("x86-64-v4+avx512vbmi")
TARGETS = (*RUNNABLE, *([VBMI] if set(VBMI.features) <= set(host_target().features) else []))
DTYPES: tuple[tuple[DType, DType], ...] = (("u8", "u8"), ("i8", "i8"), ("u8", "f32"), ("i8", "f32"))


def looked_up(entry: DType, result: DType) -> LoopProgram:
    """``buffer 2[j] = table[5 + buffer 0[j]]`` for j < n, in the result's type."""
    found = Load(1, symbol("x") + OFFSET)
    value = found if entry == result else Apply("cast", (found,), result)
    body = (LetIndex("x", Load(0, J)), Store(2, J, value))
    buffers = (
        Buffer("u8", written=False),
        Buffer(entry, written=False),
        Buffer(result, written=True),
    )
    return LoopProgram(buffers, ("n",), "i", 1, 1, (For("j", symbol("n"), "vector", body),))


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_lanes_of_several_tables(target: Target) -> None:
    """Every three of them have a table of their own."""
    place = symbol("x") + dim_mul(256, dim_floordiv(J, 3))
    body = (LetIndex("x", Load(0, J)), Store(2, J, Load(1, place)))
    buffers = looked_up("u8", "u8").buffers
    loop = For("j", symbol("n"), "vector", body)
    program, draw = LoopProgram(buffers, ("n",), "i", 1, 1, (loop,)), np.random.default_rng(2)
    x, tables = (aligned(draw.integers(0, 256, size), np.uint8) for size in (90, 256 * 30))
    got, expected = (empty((90,), np.uint8) for _ in range(2))
    run_program(program, target, [x, tables, got], {"n": 90})
    interpret(program, target, [x, tables, expected], {"n": 90})
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("entry", "result"), DTYPES)
def test_two_instructions_look_up_all_lanes(entry: DType, result: DType) -> None:
    """64 of them where all elements are bytes; other machines load one by one."""
    text = llvm_text(kernel_module(looked_up(entry, result), VBMI))
    assert "vpermi2var.qi.512" in text
    assert ("<64 x i64>" in text) == (result != "f32")
    assert "vpermi2var" not in llvm_text(
        kernel_module(looked_up(entry, result), parse_target("x86-64-v4"))
    )


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize(("entry", "result"), DTYPES)
def test_every_length_is_right(target: Target, entry: DType, result: DType) -> None:
    """Wide vectors, usual ones and the masked rest write each element once and nothing else."""
    program, draw = looked_up(entry, result), np.random.default_rng(1)
    table = aligned(draw.permutation(256 + OFFSET), np.uint8).view(NUMPY[entry])
    for count in (0, 1, 16, 17, 64, 81, 300):
        x = aligned(draw.integers(0, 256, count), np.uint8)
        got, expected = (empty((count + 8,), NUMPY[result]) for _ in range(2))
        run_program(program, target, [x, table, got], {"n": count})
        interpret(program, target, [x, table, expected], {"n": count})
        np.testing.assert_array_equal(got, expected)
        assert set(got[:count]) <= set(table[x.astype(int) + OFFSET])
