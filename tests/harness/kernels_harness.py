"""Runs loop programs as machine code in this process.

In: a program, a target, arrays. Out: the arrays, written to. Not done here: assertions.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm import Level, load_in_process
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.ir.dims import evaluate
from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.targets.host_target import host_target
from ingot_compiler.targets.target import Target, parse_target

Array = npt.NDArray[Any]
_HOST = host_target()
# Every level that this machine can run.
LEVELS = [
    level
    for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4")
    if _HOST.arch == "x86-64" and set(parse_target(level).features) <= set(_HOST.features)
] or [str(_HOST)]
BEST = LEVELS[-1]


def llvm_level(target: Target) -> Level:
    """LLVM's level for code of a test: that of bundles for the best target of this machine; for
    the others the quick one, since what we write is the same for both."""
    return 2 if target == parse_target(BEST) else 0


_ALIGN_BYTES, _BEHIND_BYTES = 64, 1024
_KERNEL = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_void_p,
)


def aligned(values: npt.ArrayLike, dtype: npt.DTypeLike = np.float32) -> Array:
    """A copy at a 64-byte boundary, with NaN behind its end: reading too far spoils a result."""
    source = np.asarray(values, dtype=dtype)
    raw = np.full(source.nbytes + 16 * _ALIGN_BYTES, 0xFF, np.uint8)
    start = -raw.ctypes.data % _ALIGN_BYTES
    array: Array = raw[start : start + source.nbytes].view(source.dtype).reshape(source.shape)
    array[...] = source
    return array


def normal(shape: Sequence[int], seed: int, dtype: npt.DTypeLike = np.float32) -> Array:
    """Normally distributed numbers."""
    return aligned(np.random.default_rng(seed).standard_normal(tuple(shape)), dtype)


def empty(shape: Sequence[int], dtype: npt.DTypeLike = np.float32) -> Array:
    """An output, full of a number that no test expects."""
    return aligned(np.full(tuple(shape), 12345.0), dtype)


class Kernel:
    """A compiled program."""

    def __init__(self, program: LoopProgram, target: Target, level: Level | None = None) -> None:
        self.program = program
        module = kernel_module(program, target)
        self.text = llvm_text(module)
        self._engine = load_in_process(
            llvm_text(module), target, llvm_level(target) if level is None else level
        )
        self._function = _KERNEL(self._engine.get_function_address(module.symbol))

    def prepare(self, arrays: Sequence[Array]) -> Callable[[], object]:
        """A call over the whole range, for timing; the program has no scalars."""
        scratch = aligned(np.zeros(evaluate(self.program.scratch_bytes, {}), np.uint8), np.uint8)
        buffers = (ctypes.c_uint64 * len(arrays))(*(array.ctypes.data for array in arrays))
        extent = evaluate(self.program.extent, {})
        kept = (arrays, scratch)
        return lambda: (self._function(buffers, None, 0, extent, kept[1].ctypes.data), kept)

    def run(self, arrays: Sequence[Array], scalars: Sequence[int] = (), parts: int = 1) -> None:
        """Run the whole range of the index, cut into ``parts`` calls with scratch of their own,
        last part first."""
        bindings = dict(zip(self.program.scalars, scalars, strict=True))
        extent = evaluate(self.program.extent, bindings)
        for part in reversed(range(parts)):
            size = evaluate(self.program.scratch_bytes, bindings)
            scratch = aligned(np.full(size + _BEHIND_BYTES, 0xFF), np.uint8)
            buffers = (ctypes.c_uint64 * len(arrays))(*(array.ctypes.data for array in arrays))
            numbers = (ctypes.c_int64 * max(1, len(scalars)))(*scalars)
            first, last = extent * part // parts, extent * (part + 1) // parts
            assert self._function(buffers, numbers, first, last, scratch.ctypes.data) == 0
            assert (scratch[size:] == 0xFF).all(), "it wrote behind its scratch memory"
