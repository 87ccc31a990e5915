"""How long the planner takes for large networks.

In: the number of calls of operators. Out: seconds of the processor for planning, and what is copied, for a network
without annotations, one that is split in blocks over two devices or three, and one with annotations at
random. Not done here: programs that people write (``tests/unit/programs/test_planner_cases.py``).

Run it as ``python -m tests.benchmarks.bench_planner 10000``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.benchmarks.measured_page import take_page_option, write_section
from tests.harness.program_harness import read

from ingot_compiler.ir.types import TensorType
from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_compiler.programs.expressions import (
    Expression,
    FunctionLiteral,
    OnDevice,
    OperatorCall,
    Variable,
)
from ingot_compiler.programs.planner.plan import plan
from ingot_compiler.programs.program import Program

TENSOR = TensorType("f32", (8, 8))
C = VirtualDevice("cpu", 1, "cpu:x86-64-v3")
G = VirtualDevice("cuda", 0, "cuda:sm_80")
H = VirtualDevice("cuda", 1, "cuda:sm_80")
Mark = Callable[[int, Random], VirtualDevice | None]
ROUND_COUNT = 5


def in_blocks(index: int, _random: Random) -> VirtualDevice | None:
    """Blocks of 100 calls, the last call of each annotated, on two devices in turn."""
    return (C, G)[index // 100 % 2] if index % 100 == 99 else None


def on_three(index: int, _random: Random) -> VirtualDevice | None:
    """The same on three devices in turn."""
    return (C, G, H)[index // 100 % 3] if index % 100 == 99 else None


def at_random(_index: int, random: Random) -> VirtualDevice | None:
    """One of 50 calls, on either device."""
    return random.choice((C, G)) if random.randrange(50) == 0 else None


def nowhere(_index: int, _random: Random) -> VirtualDevice | None:
    """No annotation."""
    return None


def network(count: int, mark: Mark, seed: int = 0) -> Program:
    """A chain of calls with a second operand out of the last four."""
    random = Random(seed)
    start = Variable("x", TENSOR)
    values: list[Expression] = [start]
    for index in range(count):
        other = values[-1 - random.randrange(min(4, len(values)))]
        call = OperatorCall("add" if index % 3 else "mul", (values[-1], other))
        device = mark(index, random)
        values.append(call if device is None else OnDevice(call, device))
    main = FunctionLiteral((start,), TENSOR, values[-1])
    return replace(read("def @main(%x: T) -> T { %x }"), functions={"main": main})


def main(count: int, page: bool) -> None:
    """Print a line for each network: the best of some rounds."""
    rows: list[list[str]] = []
    for mark in (nowhere, in_blocks, on_three, at_random):
        program = network(count, mark)
        seconds: list[float] = []
        cut_count = 0
        for _ in range(ROUND_COUNT):
            started = time.process_time()
            cut_count = len(plan(program).solution.cut)
            seconds.append(time.process_time() - started)
        print(f"{mark.__name__}: {count} calls, {min(seconds):.2f} s, {cut_count} links cut")
        rows.append([f"{count} calls, devices: {mark.__name__}", f"{min(seconds):.2f}"])
    if page:
        write_section(("program", "seconds"), rows)


if __name__ == "__main__":
    wanted = take_page_option()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, wanted)
