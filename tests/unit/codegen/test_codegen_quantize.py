"""Quantization in machine code is what the interpreter computes, for scales of all magnitudes: in a
loop, and behind a product, where factors take the place of the division."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.codegen_harness import (
    NUMPY,
    RUNNABLE,
    Array,
    elementwise,
    interpret,
    run_program,
)
from tests.harness.lowering_harness import Builder, Compiled, compile_graph, run_compiled

from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.loops.loop_values import NARROW, Apply, Constant, Load
from ingot_compiler.lowering.loops.print_loops import print_loops
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.oracles.interpret import interpret as interpret_graph
from ingot_compiler.targets.target import Target

ROWS, COLUMNS = 9, 41
_F32_BITS = 1 << 32
SCALES = (
    0.0, -0.0, 1.0, -1.0, 0.1, 0.0235, 3.0, 2.0**-149, 3 * 2.0**-149, 2.0**-126, 2.0**127, -0.3,
    float(np.finfo(np.float32).max), float("inf"), float("-inf"), 1 - 2.0**-24, 2 - 2.0**-23,
)  # fmt: skip


def limits_of(dtype: DType) -> tuple[float, float]:
    """The least and the greatest number of a type."""
    limits = np.iinfo(NUMPY[dtype])
    return float(limits.min), float(limits.max)


def numbers_for(scale: np.float32, zero: int, dtype: DType, seed: int) -> Array:
    """Middles between two steps, steps, and limits, each with both neighbours; numbers of all
    magnitudes; infinities."""
    draw = np.random.default_rng(seed)
    low, high = limits_of(dtype)
    steps = draw.integers(int(low) - zero - 2, int(high) - zero + 3, 90).astype(np.float32)
    with np.errstate(all="ignore"):
        near = np.concatenate([(steps[:45] + np.float32(0.5)) * scale, steps[45:] * scale])
        near = np.concatenate([near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)])
    anything = draw.integers(0, _F32_BITS, ROWS * COLUMNS - near.size - 4, np.uint32)
    ends = np.array([np.inf, -np.inf, 0, -0.0], np.float32)
    return np.concatenate([near, anything.view(np.float32), ends]).astype(np.float32)


def program_of(dtype: DType) -> LoopProgram:
    """One loop over x, with a scale and a zero point for all."""
    low, high = (Constant(limit, "f32") for limit in limits_of(dtype))
    x, scale, zero = Load(0, symbol("j")), Load(1, 0), Load(2, 0)
    value = Apply("quantize", (x, scale, zero, low, high), dtype)
    return elementwise(value, ("f32", "f32", dtype, dtype))


def graph_of(dtype: DType, *, scaled: bool, known_zero: bool) -> tuple[Graph, Builder]:
    """A product that is 0, plus x, quantized."""
    kinds = [TensorType("u8", (ROWS, 8)), TensorType("f32", (ROWS, COLUMNS))]
    b = Builder([*kinds, TensorType("f32", ()), TensorType(dtype, ())])
    weights = b.constant(np.zeros((8, COLUMNS), np.int8), "i8")
    product = b.op("cast", b.op("matmul_integer", 0, weights), dtype="f32")
    value = b.op("add", product, 1)
    rounded = b.op("round", b.op("div", value, 2) if scaled else value)
    zero = b.literal(3.0) if known_zero else b.op("cast", 3, dtype="f32")
    low, high = map(b.literal, limits_of(dtype))
    limited = b.op("min", b.op("max", b.op("add", rounded, zero), low), high)
    return b.finish([b.op("cast", limited, dtype=dtype)]), b


@cache
def compiled(
    dtype: DType, target: Target, *, scaled: bool, known_zero: bool
) -> tuple[Graph, Builder, Compiled]:
    """One kernel that quantizes."""
    graph, builder = graph_of(dtype, scaled=scaled, known_zero=known_zero)
    made = compile_graph(graph, target)
    assert any("quantize(" in print_loops(program) for program in made.programs)
    return graph, builder, made


def is_number(x: Array, scale: np.float32) -> Array:
    """Whether a quotient is no NaN."""
    with np.errstate(all="ignore"):
        return ~np.isnan(x / scale)


scales = st.one_of(
    st.sampled_from(SCALES),
    st.integers(0, _F32_BITS - 1).map(lambda bits: float(np.uint32(bits).view(np.float32))),
).filter(lambda scale: scale == scale)


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("dtype", NARROW)
@given(scale=scales, share=st.floats(0, 1), seed=st.integers(0, 1 << 20), count=st.integers(1, 70))
@settings(max_examples=30)
def test_a_loop_quantizes(
    dtype: DType, target: Target, scale: float, share: float, seed: int, count: int
) -> None:
    """Vectors, and what is left of one."""
    low, high = limits_of(dtype)
    zero = int(low + round(share * (high - low)))
    step = np.float32(scale)
    x = numbers_for(step, zero, dtype, seed)
    x = np.random.default_rng(seed).permutation(x)[:count]
    kind = NUMPY[dtype]
    arrays = [x, np.array([step]), np.array([zero], kind), np.zeros(count, kind)]
    expected, found = arrays[-1].copy(), arrays[-1]
    program = program_of(dtype)
    interpret(program, target, [*arrays[:-1], expected], {"n": count})
    run_program(program, target, arrays, {"n": count})
    known = is_number(x, step)
    np.testing.assert_array_equal(found[known], expected[known])


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("known_zero", [False, True])
@given(scale=scales, share=st.floats(0, 1), seed=st.integers(0, 1 << 20))
@settings(max_examples=60)
def test_the_end_of_a_product_quantizes(
    dtype: DType, target: Target, known_zero: bool, scale: float, share: float, seed: int
) -> None:
    """Every scale, from a denormal one to infinity."""
    low, high = limits_of(dtype)
    zero = 3 if known_zero else int(low + round(share * (high - low)))
    step = np.float32(scale)
    x = numbers_for(step, zero, dtype, seed)
    graph, builder, made = compiled(dtype, target, scaled=True, known_zero=known_zero)
    bytes_ = np.zeros((ROWS, 8), np.uint8)
    inputs = [bytes_, x.reshape(ROWS, COLUMNS), np.array(step), np.array(zero, NUMPY[dtype])]
    with np.errstate(all="ignore"):
        (expected,) = interpret_graph(graph, inputs, builder.read)
    (found,) = run_compiled(made, graph, inputs, builder.read)
    known = is_number(x, step)
    np.testing.assert_array_equal(found.reshape(-1)[known], expected.reshape(-1)[known])


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("dtype", NARROW)
def test_a_scale_of_1_is_none(dtype: DType, target: Target) -> None:
    """The scale may be part of a factor before."""
    one, zero = np.float32(1), 5
    x = numbers_for(one, zero, dtype, 1)
    graph, builder, made = compiled(dtype, target, scaled=False, known_zero=False)
    bytes_ = np.zeros((ROWS, 8), np.uint8)
    inputs = [bytes_, x.reshape(ROWS, COLUMNS), np.array(one), np.array(zero, NUMPY[dtype])]
    with np.errstate(all="ignore"):
        (expected,) = interpret_graph(graph, inputs, builder.read)
    (found,) = run_compiled(made, graph, inputs, builder.read)
    known = is_number(x, one)
    np.testing.assert_array_equal(found.reshape(-1)[known], expected.reshape(-1)[known])


def test_a_zero_point_that_is_not_whole_is_added_before_the_limits() -> None:
    """Nothing says that it may be added behind the rounding; so does a limit that is not whole."""
    for zero, high in ((0.5, 255.0), (3.0, 200.5), (3.0, 1e9)):
        b = Builder([TensorType("f32", (64,))])
        moved = b.op("add", b.op("round", 0), b.literal(zero))
        limited = b.op("min", b.op("max", moved, b.literal(0.0)), b.literal(high))
        graph = b.finish([b.op("cast", limited, dtype="u8")])
        made = compile_graph(graph)
        assert not any("quantize(" in print_loops(program) for program in made.programs)
