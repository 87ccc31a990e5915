"""Loads, stores, casts and integer arithmetic of every dtype, compiled for every level that this
machine runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.harness.codegen_harness import (
    NUMPY,
    RUNNABLE,
    Array,
    apply_program,
    elementwise,
    run_function,
    run_program,
)

from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.types import COMPUTED_DTYPES, FLOATS, UNSIGNED, DType
from ingot_compiler.lowering.loops.interpret_scalars import bf16_bits, bf16_number, cast
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Load
from ingot_compiler.lowering.loops.program import For, LoopProgram
from ingot_compiler.targets.target import Target

_INTEGERS: tuple[DType, ...] = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


def _numbers(dtype: DType, count: int) -> Array:
    """Typical and extreme values of a dtype, in its storage form."""
    rng = np.random.default_rng(11)
    if dtype == "bool":
        return rng.integers(0, 2, count).astype(bool)
    if dtype == "bf16":
        return rng.integers(0, 1 << 16, count).astype(np.uint16)
    if dtype == "f16":
        return rng.integers(0, 1 << 16, count).astype(np.uint16).view(np.float16)
    if dtype in FLOATS:
        scale = 10.0 ** rng.uniform(-3, 12, count)
        values = (rng.standard_normal(count) * scale).astype(NUMPY[dtype])
        values[:10] = [0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65520, 1e-8, 0.5, -1.5]
        return values
    limits = np.iinfo(NUMPY[dtype])
    values = rng.integers(limits.min, limits.max, count, dtype=NUMPY[dtype], endpoint=True)
    values[:4] = [limits.min, limits.max, 0, 1]
    return values


def _number(stored: float, dtype: DType) -> float:
    return bf16_number(int(stored)) if dtype == "bf16" else stored


def _one_by_one(program: LoopProgram) -> LoopProgram:
    """The same, without lanes."""
    (loop,) = program.body
    assert isinstance(loop, For)
    return replace(program, body=(replace(loop, kind="serial"),))


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("source", COMPUTED_DTYPES)
@pytest.mark.parametrize("in_lanes", [True, False])
@pytest.mark.sweep(48)
def test_casts_between_all_dtypes(source: DType, in_lanes: bool, target: Target) -> None:
    """Every cast gives what the interpreter's definition says, and storing f16 and bf16 rounds to
    nearest even; in lanes, and number by number."""
    x = _numbers(source, 203)
    for dtype in COMPUTED_DTYPES:
        result = np.zeros(len(x), NUMPY[dtype])
        program = apply_program("cast", (source,), dtype)
        program = program if in_lanes else _one_by_one(program)
        run_program(program, target, [x, result], {"n": len(x)})
        numbers = [cast(_number(number, source), dtype) for number in x.tolist()]
        if dtype == "bf16":
            numbers = [bf16_bits(number) for number in numbers]
            # The payload of NaN is not promised.
            got = [bf16_bits(bf16_number(int(bits))) for bits in result]
            nan = [bf16_number(int(bits)) != bf16_number(int(bits)) for bits in got]
            numbers = [
                bits if is_nan else number
                for number, bits, is_nan in zip(numbers, got, nan, strict=True)
            ]
            np.testing.assert_array_equal(np.array(numbers, np.uint16), np.array(got, np.uint16))
        else:
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(
                    result, np.array(numbers, NUMPY[dtype]), err_msg=f"{source} to {dtype}"
                )


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("dtype", COMPUTED_DTYPES)
def test_copies_keep_every_bit(dtype: DType, target: Target) -> None:
    """A load and a store move values of every dtype unchanged, for every length from 0 to two
    vectors and one."""
    for count in range(2 * target.f32_lanes + 2):
        x = _numbers(dtype, 64)[:count]
        y = np.zeros(count + 1, NUMPY[dtype])
        run_program(elementwise(Load(0, symbol("j")), (dtype, dtype)), target, [x, y], {"n": count})
        same = (y[:-1] == x) | ((y[:-1] != y[:-1]) & (x != x))
        if dtype == "bf16":
            same = np.array([bf16_bits(bf16_number(int(bits))) for bits in x], np.uint16) == y[:-1]
        assert same.all()
        assert y[-1] == 0


def test_half_conversions_agree_with_numpy_everywhere() -> None:
    """All f16 widen right; f32 at, and next to, every rounding border narrows right (one test over
    all levels)."""
    every = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    finite = every[(every & 0x7C00) != 0x7C00].view(np.float16).astype(np.float32)
    with np.errstate(over="ignore"):
        above = np.nextafter(finite.astype(np.float16), np.float16(np.inf)).astype(np.float64)
        middle = ((finite.astype(np.float64) + above) / 2).astype(np.float32)
        beside = [
            middle,
            np.nextafter(middle, np.float32(np.inf)),
            np.nextafter(middle, np.float32(-np.inf)),
        ]
    for target in RUNNABLE:
        for x in (finite, *beside):
            with np.errstate(over="ignore"):
                expected = x.astype(np.float16)
            np.testing.assert_array_equal(
                run_function("cast", "f32", "f16", target, x).view(np.uint16),
                expected.view(np.uint16),
            )
        widened = run_function("cast", "f16", "f32", target, every.view(np.float16))
        np.testing.assert_array_equal(widened, every.view(np.float16).astype(np.float32))


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_f64_to_f16_rounds_once(target: Target) -> None:
    """A double next to the middle of two f16 numbers is not rounded twice."""
    middle = np.array(
        [
            1 + 2.0**-11,
            1 + 2.0**-11 + 2.0**-40,
            1 + 2.0**-11 - 2.0**-40,
            -(2.0**-25),
            -(2.0**-25) - 2.0**-60,
            65520 - 2.0**-30,
        ]
    )
    expected = np.array([1, 1 + 2.0**-10, 1, -0.0, -(2.0**-24), 65504], np.float16)
    np.testing.assert_array_equal(
        run_function("cast", "f64", "f16", target, middle).view(np.uint16), expected.view(np.uint16)
    )


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("dtype", _INTEGERS)
@pytest.mark.sweep(60)
def test_integer_arithmetic(dtype: DType, target: Target) -> None:
    """Division truncates and never traps, mod has the divisor's sign, fmod the dividend's; all
    wraps as numpy's."""
    kind = np.dtype(NUMPY[dtype])
    limits = np.iinfo(kind)
    rng = np.random.default_rng(2)
    edge = np.array(
        [limits.min, limits.max, 0, 1, 2, 3, 7] + ([] if dtype in UNSIGNED else [-1, -2, -7]), kind
    )
    left, right = (grid.ravel() for grid in np.meshgrid(edge, edge))
    x = np.concatenate([rng.integers(limits.min, limits.max, 200, kind, endpoint=True), left])
    y = np.concatenate([rng.integers(-9 if limits.min else 0, 10, 200).astype(kind), right])
    a, b = x.tolist(), y.tolist()

    def quotient(p: int, q: int) -> int:
        return 0 if q == 0 else abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)

    def wrapped(numbers: list[int]) -> Array:
        return np.array(
            [number & ((1 << 8 * kind.itemsize) - 1) for number in numbers], f"u{kind.itemsize}"
        ).view(kind)

    pairs = list(zip(a, b, strict=True))
    expected = {
        "add": wrapped([p + q for p, q in pairs]), "sub": wrapped([p - q for p, q in pairs]),
        "mul": wrapped([p * q for p, q in pairs]), "div": wrapped([quotient(p, q) for p, q in pairs]),
        "mod": wrapped([p % q if q else 0 for p, q in pairs]),
        "fmod": wrapped([p - quotient(p, q) * q if q else 0 for p, q in pairs]),
        "max": np.maximum(x, y), "min": np.minimum(x, y), "bitwise_and": x & y, "bitwise_or": x | y, "bitwise_xor": x ^ y,
    }  # fmt: skip
    for name, values in expected.items():
        np.testing.assert_array_equal(
            run_function(name, dtype, dtype, target, x, y), values, err_msg=name
        )
    for name, values in {"less": x < y, "less_equal": x <= y, "equal": x == y}.items():
        np.testing.assert_array_equal(
            run_function(name, dtype, "bool", target, x, y), values, err_msg=name
        )
    unary = {
        "neg": wrapped([-p for p in a]), "abs": wrapped([abs(p) for p in a]), "bitwise_not": ~x,
        "sign": wrapped([(p > 0) - (p < 0) for p in a]), "relu": np.maximum(x, kind.type(0)),
        "floor": x, "ceil": x, "round": x,
    }  # fmt: skip
    for name, values in unary.items():
        np.testing.assert_array_equal(
            run_function(name, dtype, dtype, target, x), values, err_msg=name
        )


@pytest.mark.sweep(12)
@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("dtype", _INTEGERS)
def test_integer_powers_and_shifts(dtype: DType, target: Target) -> None:
    """Powers wrap, negative exponents give the truncated reciprocal; shifts by the width or more
    give 0 or the sign."""
    kind = np.dtype(NUMPY[dtype])
    bits = 8 * kind.itemsize
    edge = np.array(
        [0, 1, 2, 3, 5, 10, 100] + ([] if dtype in UNSIGNED else [-1, -2, -3, -100]), kind
    )
    x, y = (np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(edge, edge))

    def power(p: int, q: int) -> int:
        if q >= 0:
            return pow(p, q, 1 << bits)
        return {1: 1, -1: -1 if q % 2 else 1}.get(p, 0)

    def shifted(p: int, q: int, name: str) -> int:
        amount = q if 0 <= q < bits else bits
        return p << amount if name == "shift_left" else p >> amount

    def wrapped(numbers: list[int]) -> Array:
        return np.array(
            [number & ((1 << bits) - 1) for number in numbers], f"u{kind.itemsize}"
        ).view(kind)

    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    result = run_function("pow", dtype, dtype, target, x, y)
    np.testing.assert_array_equal(result, wrapped([power(p, q) for p, q in pairs]))
    for name in ("shift_left", "shift_right"):
        result = run_function(name, dtype, dtype, target, x, y)
        np.testing.assert_array_equal(
            result, wrapped([shifted(p, q, name) for p, q in pairs]), err_msg=name
        )


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_logic(target: Target) -> None:
    """The logical functions on bools."""
    x, y = np.array([0, 0, 1, 1] * 5, bool), np.array([0, 1, 0, 1] * 5, bool)
    expected = {
        "logical_and": x & y,
        "logical_or": x | y,
        "logical_xor": x ^ y,
        "max": x | y,
        "min": x & y,
        "equal": x == y,
    }
    for name, values in expected.items():
        np.testing.assert_array_equal(run_function(name, "bool", "bool", target, x, y), values)
    np.testing.assert_array_equal(run_function("logical_not", "bool", "bool", target, x), ~x)


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_constants_of_half_precision_are_numbers_of_f32(dtype: DType, target: Target) -> None:
    """A literal of a half type is an f32 number, which a sum keeps; the result is rounded once, when
    it is stored."""
    third = Constant(1 / 3, dtype)
    y = np.zeros(5, np.float32)
    run_program(elementwise(Apply("cast", (third,), "f32"), ("f32",)), target, [y], {"n": 5})
    np.testing.assert_array_equal(y, np.float32(1 / 3))
    other = 6e-5 if dtype == "f16" else -5e-4  # what a rounded third would round away
    total, stored = Apply("add", (third, Constant(other, dtype)), dtype), np.zeros(5, NUMPY[dtype])
    run_program(elementwise(total, (dtype,)), target, [stored], {"n": 5})
    expected = float(np.float32(1 / 3) + np.float32(other))
    rounded = np.float16(expected) if dtype == "f16" else bf16_bits(expected)
    np.testing.assert_array_equal(stored, rounded)
