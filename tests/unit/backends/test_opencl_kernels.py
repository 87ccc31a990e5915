"""OpenCL C gives what the loop interpreter gives: every function, casts, lanes, memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tests.harness.codegen_harness import NUMPY, Array, elementwise
from tests.harness.opencl_harness import DevicePrograms, library_of

from ingot_compiler.ir.dims import symbol
from ingot_compiler.ir.types import FLOATS, UNSIGNED, DType
from ingot_compiler.kernels.machines import VECTOR_MACHINE
from ingot_compiler.lowering.loops.interpret_scalars import BINARY, UNARY
from ingot_compiler.lowering.loops.loop_values import Apply, Compare, Constant, Load, Local, Value
from ingot_compiler.lowering.loops.program import Buffer, For, LoopProgram, Reduce, Require, Store
from ingot_compiler.oracles.interpret_loops import interpret_loops
from ingot_runtime_devices.device import Device

COUNT = 43  # vectors of eight, and a rest
_J = symbol("j")
_DTYPES: tuple[DType, ...] = tuple(NUMPY)
_ONLY_FLOATS = {
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "floor", "gelu_none", "gelu_tanh",
    "isinf", "isinf_negative", "isinf_none", "isinf_positive", "isnan", "log", "reciprocal", "round", "sigmoid", "silu", "sin",
    "sinh", "softplus", "sqrt", "tan", "tanh",
}  # fmt: skip
_ONLY_INTEGERS = {
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "philox", "shift_left", "shift_right",
}  # fmt: skip
_BOOLS = ("equal", "less", "less_equal", "isinf", "isinf_negative", "isinf_none", "isinf_positive", "isnan")  # fmt: skip


def numbers(dtype: DType, seed: int) -> Array:
    """Numbers of a type, with those that overflow and divide badly among them."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, COUNT).astype(bool)
    if dtype == "bf16":
        return (rng.standard_normal(COUNT).astype(np.float32).view(np.uint32) >> 16).astype(
            np.uint16
        )
    if dtype in FLOATS:
        values = rng.standard_normal(COUNT) * 3
        values[:6] = 0, -0.0, np.inf, -np.inf, np.nan, 1e30
        with np.errstate(over="ignore"):
            return values.astype(NUMPY[dtype])
    info = np.iinfo(NUMPY[dtype])
    array: Array = rng.integers(0 if dtype in UNSIGNED else -9, 10, COUNT).astype(NUMPY[dtype])
    array[:4] = info.min, info.max, 0, 1
    rng.shuffle(array)
    return array


def functions(dtype: DType) -> list[tuple[LoopProgram, int]]:
    """A program for every function that takes the type, and how many operands it has."""
    made: list[tuple[LoopProgram, int]] = []
    for count, names in ((1, UNARY), (2, BINARY)):
        for name in names:
            left_out = _ONLY_INTEGERS if dtype in FLOATS else _ONLY_FLOATS
            logical = name.startswith("logical")
            if name == "philox" and dtype != "u64":
                continue
            if name in left_out or logical != (dtype == "bool"):
                continue
            if dtype in UNSIGNED and name in ("neg", "sign"):
                continue
            result: DType = "bool" if name in _BOOLS or logical else dtype
            loads = tuple(Load(number, _J) for number in range(count))
            value = Apply(name, loads, result)
            operands: list[DType] = [dtype] * count
            made.append((elementwise(value, [*operands, result]), count))
    return made


def check(
    programs: Sequence[LoopProgram],
    inputs: Sequence[Sequence[Array]],
    device: Device | None = None,
) -> None:
    """Run each on its inputs; the last buffer is compared."""
    compiled = DevicePrograms(programs, device)
    for number, (program, given) in enumerate(zip(programs, inputs, strict=True)):
        dtype = program.buffers[-1].dtype
        result, expected = (np.zeros(COUNT, NUMPY[dtype]) for _ in range(2))
        scalars = dict.fromkeys(program.scalars, COUNT)
        with np.errstate(all="ignore"):
            interpret_loops(
                program, [*given, expected], scalars, f32_lanes=VECTOR_MACHINE.f32_lanes
            )
        assert compiled.run(number, [*given, result], scalars) == 0
        if dtype in ("f32", "f64", "f16"):
            relative = {"f32": 2e-6, "f64": 1e-14, "f16": 1e-3}[dtype]
            np.testing.assert_allclose(
                result, expected, rtol=relative, atol=relative, err_msg=str(program.body)
            )
        else:
            np.testing.assert_array_equal(result, expected, err_msg=str(program.body))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [dtype for dtype in _DTYPES if dtype not in ("f16", "bf16")])
@pytest.mark.opencl
def test_every_function_is_the_interpreters(dtype: DType) -> None:
    """Integers exactly, also where they overflow or divide by 0; floats within the functions'
    errors."""
    check(*every_function(dtype))


def every_function(dtype: DType) -> tuple[list[LoopProgram], list[list[Array]]]:
    """A program for every function of a type, and what it is given."""
    rows = functions(dtype)
    inputs = [[numbers(dtype, 7 + number) for number in range(count)] for _, count in rows]
    return [program for program, _ in rows], inputs


def cast(source: DType, target: DType) -> LoopProgram:
    """A conversion in lanes."""
    return elementwise(Apply("cast", (Load(0, _J),), target), (source, target))


@pytest.mark.slow
@pytest.mark.opencl
def test_every_cast_is_the_interpreters() -> None:
    """Between all pairs of element types."""
    check(*every_cast())


def every_cast() -> tuple[list[LoopProgram], list[list[Array]]]:
    """A program for each pair of types, and what it is given."""
    pairs: list[tuple[DType, DType]] = [
        (source, target) for source in _DTYPES for target in _DTYPES if source != target
    ]
    programs = [cast(source, target) for source, target in pairs]
    return programs, [[numbers(source, 3)] for source, _ in pairs]


def strided() -> LoopProgram:
    """Every third element, in reverse, guarded: a gather under a mask."""
    place = Compare("less", _J, 11)
    value = Apply("select", (place, Load(0, 42 - _J * 3), Constant(-1.0, "f32")), "f32")
    return elementwise(value, ("f32", "f32"))


def total() -> LoopProgram:
    """A sum in lanes for every row."""
    found = Reduce("r", "sum", "k", 5, "i32", (), Load(0, symbol("k") + symbol("i")), lanes=True)
    store = Store(1, symbol("i"), Local("r", "i32"))
    return LoopProgram((Buffer("i32", False), Buffer("i32", True)), (), "i", 30, 1, (found, store))


def chosen() -> LoopProgram:
    """One of two numbers that are loaded both, without lanes: a step of a tree."""
    place = symbol("i")
    condition = Apply("less", (Load(0, place), Constant(0, "i32")), "bool")
    value = Apply("select", (condition, Load(0, place + 1), Load(0, place + 2)), "i32")
    buffers = (Buffer("i32", False), Buffer("i32", True))
    return LoopProgram(buffers, (), "i", COUNT - 2, 1, (Store(1, place, value),))


def required() -> LoopProgram:
    """Numbers that must not be negative."""
    condition = Apply("less_equal", (Constant(0, "i32"), Load(0, _J)), "bool")
    body = For("j", symbol("n"), "vector", (Require(3, condition), Store(1, _J, Load(0, _J))))
    return LoopProgram((Buffer("i32", False), Buffer("i32", True)), ("n",), "i", 1, 1, (body,))


@pytest.mark.opencl
def test_some_programs_are_the_interpreters() -> None:
    """Halves, saturation, masks, sums in lanes, choices: one program of each sort."""
    check(*some_programs())


def some_programs() -> tuple[list[LoopProgram], list[list[Array]]]:
    """One program of each sort, and what it is given."""
    given: Value = Apply("erf", (Load(0, _J),), "f32")
    programs = [cast("f32", "f16"), cast("f64", "bf16"), cast("f32", "u8"), cast("f64", "i64"), cast("f16", "f32"),
                cast("bf16", "f32"), strided(), elementwise(given, ("f32", "f32"))]  # fmt: skip
    inputs = [[numbers(program.buffers[0].dtype, 1)] for program in programs]
    return [*programs, total(), chosen()], [*inputs, [numbers("i32", 2)], [numbers("i32", 4)]]


@pytest.mark.opencl
def test_a_requirement_is_reported() -> None:
    """A kernel returns the number of a requirement that does not hold, and nothing the next time."""
    compiled = DevicePrograms([required()])
    good, bad = np.arange(COUNT, dtype=np.int32), np.full(COUNT, -1, np.int32)
    for array, code in ((good, 0), (bad, 259), (good, 0)):
        assert compiled.run(0, [array, np.zeros_like(array)], {"n": COUNT}) == code


def test_the_source_is_a_function_of_the_programs() -> None:
    """The same text each time, of ASCII, without the place where it was made."""
    programs = [strided(), total(), required()]
    first = library_of(programs)
    assert first == library_of(programs)
    assert first.isascii()
    assert b"/" not in first.split(b"\n\n")[0]
