"""Runs one compiled loop program in the test process.

In: a program, arrays. Out: the arrays, changed. Not done here: any check.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.harness.kernels_harness import llvm_level

from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm import load_in_process
from ingot_compiler.codegen.llvm_binding import Engine
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.object import compile_object
from ingot_compiler.ir.dims import evaluate, symbol
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.loops.loop_values import Apply, Load, Value
from ingot_compiler.lowering.loops.program import Buffer, For, LoopProgram, Store
from ingot_compiler.oracles.interpret_loops import interpret_loops
from ingot_compiler.targets.host_target import host_target
from ingot_compiler.targets.target import Target, parse_target
from ingot_runtime.format.features import LEVELS

Array = npt.NDArray[Any]

# Code for these levels runs on this machine; a level is missing where the processor lacks one of
# its features.
RUNNABLE: tuple[Target, ...] = tuple(
    parse_target(level)
    for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64", "riscv64")
    if set(LEVELS[level]) <= set(host_target().features)
    and host_target().arch == parse_target(level).arch
)
DOT_PRODUCTS: tuple[Target, ...] = tuple(
    target
    for target in map(parse_target, ("x86-64-v4+avx512vnni", "x86-64-v3+avxvnni"))
    if set(target.features) <= set(host_target().features)
)
BF16_PRODUCTS: tuple[Target, ...] = tuple(
    target
    for target in map(parse_target, ("x86-64-v4+avx512bf16",))
    if set(target.features) <= set(host_target().features)
)
FOREIGN: tuple[Target, ...] = tuple(parse_target(text) for text in ("aarch64", "riscv64"))
NUMPY: Mapping[DType, str] = {
    "f32": "float32", "f64": "float64", "f16": "float16", "bf16": "uint16", "i8": "int8", "i16": "int16", "i32": "int32",
    "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool",
}  # fmt: skip
_SCRATCH_BYTES = 1 << 20


@functools.lru_cache(maxsize=256)
def _loaded(program: LoopProgram, target: Target) -> tuple[Engine, Any]:
    module = kernel_module(program, target)
    engine = load_in_process(llvm_text(module), target, llvm_level(target))
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int32,
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int64,
        ctypes.c_int64,
        ctypes.c_void_p,
    )
    return engine, kind(engine.get_function_address(module.symbol))


def run_program(
    program: LoopProgram,
    target: Target,
    buffers: Sequence[Array],
    scalars: Mapping[str, int] | None = None,
    first: int = 0,
    last: int | None = None,
) -> None:
    """Compile, and run over [first, last) (by default everything), in place."""
    assert run_for_code(program, target, buffers, scalars, first, last) == 0


def require_interpreted(
    program: LoopProgram, targets: Sequence[Target], arrays: Sequence[Array]
) -> None:
    """What the program writes to its last buffer, which is nowhere 0, is on each target what the
    interpreter writes, but for rounding."""
    expected = [array.copy() for array in arrays]
    interpret(program, RUNNABLE[0], expected, {})
    assert np.abs(expected[-1]).min() > 0
    for target in targets:
        run_program(program, target, arrays, {})
        np.testing.assert_allclose(arrays[-1], expected[-1], 1e-4, 1e-4)


def run_for_code(
    program: LoopProgram,
    target: Target,
    buffers: Sequence[Array],
    scalars: Mapping[str, int] | None = None,
    first: int = 0,
    last: int | None = None,
) -> int:
    """``run_program``; what the kernel returns."""
    given = scalars or {}
    _, function = _loaded(program, target)
    pointers = (ctypes.c_void_p * (len(buffers) + 1))(*[array.ctypes.data for array in buffers])
    numbers = (ctypes.c_int64 * (len(program.scalars) + 1))(
        *[given[name] for name in program.scalars]
    )
    scratch = np.zeros(_SCRATCH_BYTES + 64, np.uint8)
    end = evaluate(program.extent, given) if last is None else last
    address = scratch.ctypes.data + -scratch.ctypes.data % 64
    return int(function(pointers, numbers, first, end, address))


def interpret(
    program: LoopProgram, target: Target, buffers: Sequence[Array], scalars: Mapping[str, int]
) -> None:
    """Run the oracle, in place."""
    interpret_loops(program, buffers, scalars, f32_lanes=target.f32_lanes)


def compile_only(program: LoopProgram, target: Target) -> bytes:
    """The verified object of a program."""
    return compile_object(llvm_text(kernel_module(program, target)), target, verify=True)


def elementwise(value: Value, dtypes: Sequence[DType]) -> LoopProgram:
    """``last buffer[j] = value`` for j < n, in lanes; the last dtype is the result's."""
    buffers = tuple(Buffer(dtype, number == len(dtypes) - 1) for number, dtype in enumerate(dtypes))
    store = Store(len(dtypes) - 1, symbol("j"), value)
    return LoopProgram(buffers, ("n",), "i", 1, 1, (For("j", symbol("n"), "vector", (store,)),))


def apply_program(function: str, dtypes: Sequence[DType], result: DType) -> LoopProgram:
    """``function`` of one buffer per dtype."""
    loads = tuple(Load(number, symbol("j")) for number in range(len(dtypes)))
    return elementwise(Apply(function, loads, result), (*dtypes, result))


def run_function(
    function: str, dtype: DType, result: DType, target: Target, *operands: Array
) -> Array:
    """``function`` of arrays of one length and ``dtype``, compiled."""
    output = np.zeros(len(operands[0]), NUMPY[result])
    program = apply_program(function, (dtype,) * len(operands), result)
    run_program(
        program,
        target,
        [*(np.ascontiguousarray(operand) for operand in operands), output],
        {"n": len(output)},
    )
    return output


def ulps(result: Array, exact: Array) -> npt.NDArray[np.float64]:
    """The distance of each result from the exact value (long double), in units of the result's last
    place.

    0 where both are NaN or the same infinity, inf where only one is.
    """
    with np.errstate(all="ignore"):
        near = exact.astype(result.dtype)
        error = np.abs(result.astype(np.longdouble) - exact) / np.spacing(np.abs(near)).astype(
            np.longdouble
        )
    finite = np.isfinite(near) & np.isfinite(result)
    equal = (result == near) | (np.isnan(result) & np.isnan(near))
    return np.where(finite, error, np.where(equal, 0.0, np.inf)).astype(np.float64)
