"""Loops of nothing but one kind of work in a core, which measure its rates.

In: a target that this machine can run. Out: code in this process, and how much one round of each
loop does. Not done here: time, several cores at once.

Loads and stores are volatile, so that LLVM keeps those whose values nobody wants. The loop of
cycles is a chain of additions and exclusive ors of registers: each takes one cycle on every
processor that there is code for.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ingot_compiler.codegen.llvm import load_in_process
from ingot_compiler.targets.host_target import host_target
from ingot_compiler.targets.target import Target
from ingot_runtime.lazy_dataclass import dataclass

ALIGNMENT_BYTES = 64
CHAIN_CYCLES = 64
ACCESSES = 16
LOOPS = ("cycles", "adds", "both", "loads", "stores")
_SUMS, _OTHER_SUMS = 10, 5
"""Chains of multiply-adds, and of additions: with two factors they fill 16 registers, and hide the
latency of two units."""
_MORE = 2  # times as many with 32 registers


@dataclass(frozen=True, slots=True)
class _Body:
    """What a round does: phis of values that rounds hand on, instructions, what each becomes."""

    carried: Sequence[tuple[str, str, str]]  # name, type, start
    lines: Sequence[str]


class MeasuredLoops:
    """The loops, loaded into this process; several threads may run them."""

    def __init__(self, target: Target | None = None) -> None:
        """``target``: by default all that this machine can do."""
        target = target or host_target()
        more = _MORE if target.vector_register_count > 16 else 1
        self.lanes = target.f32_lanes
        self.vector_bytes = 4 * self.lanes
        self.sum_count, self.other_count = more * _SUMS, more * _OTHER_SUMS
        self._engine = load_in_process(loops_text(target, self.sum_count, self.other_count), target)
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self._loops: Mapping[str, Callable[[int, int, int], object]] = {
            name: function(self._engine.get_function_address(name)) for name in LOOPS
        }

    def run(self, name: str, memory: npt.NDArray[np.uint8], rounds: int, size_bytes: int) -> None:
        """Run a loop: ``cycles``, ``adds`` (multiply-adds, or multiplications where there are none),
        ``both`` (and additions), ``loads``, ``stores``; these go through the first ``size_bytes`` of
        memory, a power of two."""
        first = -(-memory.ctypes.data // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        self._loops[name](first, rounds, size_bytes - 1)


def loops_text(target: Target, sums: int, others: int) -> str:
    """Return the module: functions of memory, a number of rounds, and a mask of offsets."""
    vector = f"<{target.f32_lanes} x float>"
    bodies = {
        "cycles": _chain(),
        "adds": _chains(target, sums, 0),
        "both": _chains(target, sums, others),
        "loads": _accesses(vector, 4 * target.f32_lanes, "%v{0} = load volatile {1}, ptr %p{0}"),
        "stores": _accesses(vector, 4 * target.f32_lanes, "store volatile {1} %f, ptr %p{0}"),
    }
    functions = (_function(name, vector, body) for name, body in bodies.items())
    fma = f"declare {vector} @llvm.fma.v{target.f32_lanes}f32({vector}, {vector}, {vector})"
    return "\n".join((*functions, fma, f"attributes #0 = {{ {target.function_attributes} }}\n"))


def _function(name: str, vector: str, body: _Body) -> str:
    carried = [("i", "i64", "0"), *body.carried]
    phis = (
        f"  %{it} = phi {kind} [ {start}, %entry ], [ %{it}.next, %round ]"
        for it, kind, start in carried
    )
    ends = (f"  store volatile {kind} %{it}.next, ptr %p" for it, kind, _ in body.carried)
    lines = (
        f"define void @{name}(ptr %p, i64 %rounds, i64 %mask) #0 {{\nentry:",
        f"  %f = load {vector}, ptr %p",
        "  %one = load i64, ptr %p\n  br label %round\nround:",
        *phis,
        *(f"  {line}" for line in body.lines),
        "  %i.next = add i64 %i, 1",
        "  %again = icmp ult i64 %i.next, %rounds",
        "  br i1 %again, label %round, label %end\nend:",
        *ends,
        "  ret void\n}",
    )
    return "\n".join(lines)


def _chain() -> _Body:
    """Additions and exclusive ors in turns: none joins two of them."""
    names = ["x", *(f"x{at}" for at in range(1, CHAIN_CYCLES)), "x.next"]
    lines = [
        f"%{name} = {('add', 'xor')[at % 2]} i64 %{before}, %one"
        for at, (before, name) in enumerate(pairwise(names))
    ]
    return _Body((("x", "i64", "%one"),), lines)


def _chains(target: Target, sums: int, others: int) -> _Body:
    """Each depends on itself alone."""
    lanes = target.f32_lanes
    vector = f"<{lanes} x float>"
    fma = f"call {vector} @llvm.fma.v{lanes}f32({vector} %f, {vector} %f, {vector} %s{{0}})"
    fma = fma if target.has_fma else f"fmul {vector} %s{{0}}, %f"
    lines = [f"%s{it}.next = {fma.format(it)}" for it in range(sums)]
    lines += [f"%s{it}.next = fadd {vector} %s{it}, %f" for it in range(sums, sums + others)]
    carried = [(f"s{it}", vector, "zeroinitializer") for it in range(sums + others)]
    return _Body(carried, lines)


def _accesses(vector: str, vector_bytes: int, form: str) -> _Body:
    """Some one behind the other in each round."""
    lines = [f"%at = mul i64 %i, {ACCESSES * vector_bytes}", "%start = and i64 %at, %mask"]
    lines.append("%first = getelementptr i8, ptr %p, i64 %start")
    for number in range(ACCESSES):
        lines.append(f"%p{number} = getelementptr i8, ptr %first, i64 {number * vector_bytes}")
        lines.append(form.format(number, vector))
    return _Body((), lines)
