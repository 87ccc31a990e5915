"""Vector loops over narrow integers have the lanes of their widest element type; all others have
those of f32."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.codegen_harness import NUMPY, RUNNABLE, elementwise, interpret, run_program
from tests.harness.kernels_harness import aligned, empty

from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.ir.dims import dim_floordiv, symbol
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops.loop_values import Apply, FromIndex, Load, Value
from ingot_compiler.targets.target import Target, parse_target

J = symbol("j")
SUM_U8 = Apply("add", (Load(0, J), Load(1, J)), "u8")
WIDENED = Apply("sub", (Apply("cast", (Load(0, J),), "i16"), Load(1, J)), "i16")
EITHER = Apply("logical_or", (Load(0, J), Load(1, J)), "bool")
NARROW: dict[str, tuple[Value, tuple[DType, DType, DType], int]] = {
    "u8": (SUM_U8, ("u8", "u8", "u8"), 64),
    "u8 and i16": (WIDENED, ("u8", "i16", "i16"), 32),
    "bool": (EITHER, ("bool", "bool", "bool"), 64),
    "one element for two lanes": (
        Apply("add", (Load(0, 3 + dim_floordiv(J, 2)), Load(1, J)), "u8"),
        ("u8", "u8", "u8"),
        64,
    ),
}
OTHERS: dict[str, tuple[Value, tuple[DType, ...]]] = {
    "f32": (Apply("cast", (Load(0, J),), "f32"), ("u8", "f32")),
    "f16 is held as f32": (Load(0, J), ("f16", "f16")),
    "i64": (Apply("cast", (Load(0, J),), "i64"), ("u8", "i64")),
    "an index in lanes": (Apply("cast", (FromIndex(J, "i64"),), "u8"), ("u8", "u8")),
    "elements apart": (Load(0, J * 2), ("u8", "u8")),
    "one element for three lanes": (Load(0, dim_floordiv(J, 3)), ("u8", "u8")),
}


@pytest.mark.parametrize("name", NARROW)
def test_narrow_elements_fill_the_registers(name: str) -> None:
    """The widest element type decides: 512 bits hold 64 bytes or 32 times 16 bits."""
    value, dtypes, lanes = NARROW[name]
    text = llvm_text(kernel_module(elementwise(value, dtypes), parse_target("x86-64-v4")))
    assert f"<{lanes} x i{512 // lanes}>" in text
    assert f"<{2 * lanes} x i" not in text


@pytest.mark.parametrize("name", OTHERS)
def test_wider_elements_have_the_lanes_of_f32(name: str) -> None:
    """So have bodies with indices in lanes and elements that lie apart."""
    value, dtypes = OTHERS[name]
    text = llvm_text(kernel_module(elementwise(value, dtypes), parse_target("x86-64-v4")))
    assert "<16 x" in text
    assert "<32 x" not in text
    assert "<64 x" not in text


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("name", NARROW)
def test_every_length_is_right(target: Target, name: str) -> None:
    """Wide vectors, usual ones and the masked rest write each element once and nothing else."""
    value, dtypes, lanes = NARROW[name]
    program, draw = elementwise(value, dtypes), np.random.default_rng(1)
    for count in (0, 1, 15, 16, 17, lanes - 1, lanes, lanes + 17, 3 * lanes + 31):
        x, y = (aligned(draw.integers(0, 2, count + 3), NUMPY[dtype]) for dtype in dtypes[:2])
        got, expected = empty((count + 8,), NUMPY[dtypes[2]]), empty((count + 8,), NUMPY[dtypes[2]])
        run_program(program, target, [x, y, got], {"n": count})
        interpret(program, target, [x, y, expected], {"n": count})
        np.testing.assert_array_equal(got, expected)
