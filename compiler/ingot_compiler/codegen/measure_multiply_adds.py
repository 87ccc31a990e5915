"""A loop of nothing but multiply-adds of f32 in registers, which measures the peak speed of a core.

In: a target that this machine can run. Out: code in this process, and how many operations it does.
Not done here: time, several cores at once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from ingot_compiler.codegen.llvm import load_in_process
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.targets.host_target import host_target
from ingot_compiler.targets.target import Target

_CHAINS = 12  # more than hide the latency of any multiply-add, few enough for 16 registers
_STEPS = 100_000
_ALIGNMENT_BYTES = 64


class MultiplyAdds:
    """A loop of nothing but multiply-adds, loaded into this process; several threads may run it."""

    def __init__(self, target: Target | None = None) -> None:
        """``target``: by default all that this machine can do."""
        target = target or host_target()
        # What one run of the loop computes.
        self.operation_count = 2 * _CHAINS * _STEPS * target.f32_lanes
        self._engine = load_in_process(_loop(target), target)
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self._run: Callable[[int], object] = function(self._engine.get_function_address("adds"))

    def run(self) -> None:
        """Run the loop once."""
        memory = np.zeros(2 * _ALIGNMENT_BYTES, np.uint8)
        self._run(-(-memory.ctypes.data // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES)


def _loop(target: Target) -> str:
    """Chains that depend on themselves alone."""
    lanes, pointer = target.f32_lanes, LlvmValue("%o", "ptr")
    writer = Writer(target)
    zero = constant(0, "float", lanes)
    factor = writer.load(pointer, "float", lanes)
    sums = writer.loop(
        constant(0, "i64"), constant(_STEPS, "i64"), 1, (zero,) * _CHAINS,
        lambda _, old: [writer.fma(factor, factor, value) for value in old],
    )  # fmt: skip
    for value in sums:
        writer.store(value, pointer)
    writer.write("ret")
    return llvm_text(writer.kernel("adds", (pointer,)))
