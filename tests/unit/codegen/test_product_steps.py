"""What a step of a product of matrices asks of the processor: loads beside multiply-adds.

Where two multiply-adds and two loads begin in one cycle, as in most cores with AVX-512, a step with
more loads than multiply-adds waits for them. A tile of one row, or of one vector, has one more for
each of its sums, whatever the code.
"""

from __future__ import annotations

import re

import pytest
from tests.harness.lowering_harness import Builder, compile_graph, f32, normal
from tests.harness.product_loops import CASES, loops_of

from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.lowering.groups.fused import launches_of
from ingot_compiler.targets.target import parse_target

STEP_MIN = 16  # multiply-adds of a block: ends of rows and columns have fewer
SIZES = [
    (128, 768),
    (197, 768),
    (784, 512),
    (196, 1024),
    (40, 3072),
    (3136, 64),
]

TARGETS = (
    "x86-64-v3",
    "x86-64-v4",
    "x86-64-v4:znver5+avx512bf16+avx512vnni",
    "x86-64-v4:sapphirerapids+avx512bf16+avx512vnni",
    "aarch64",
    "aarch64+asimddp+bf16",
)
EXCEPTIONS: dict[tuple[str, str], float] = {
    # One row by a matrix is bound by loads: vectors of the matrix, and an element for eight.
    ("one row", "x86-64-v4"): 1.125,
    # The pixels of a tile that has infinities, which are computed anew, by one vector at a time.
    ("Winograd 2x2", "x86-64-v3"): 1.25,
    # The tile of one vector beside which keys are turned: these are loaded and stored in its loop.
    ("attention", "x86-64-v4"): 1.35,
    # Transforms of 5x5 pixels, of which 16 registers do not hold all.
    ("Winograd 3x3", "x86-64-v3"): 1.41,
}
"""By case and level: the greatest number of loads for each multiply-add of a loop."""


def steps_of(text: str) -> list[tuple[int, int]]:
    """(multiply-adds, loads) of each block of instructions that multiplies much."""
    blocks = re.split(r"(?m)^\S+:.*$", text)
    counted = ((len(re.findall(r"@llvm\.fma\.", block)), block) for block in blocks)
    return [
        (count, len(re.findall(r"= load ", block))) for count, block in counted if count >= STEP_MIN
    ]


@pytest.mark.parametrize(("rows", "depth"), SIZES, ids=str)
def test_no_step_has_more_loads_than_multiply_adds(rows: int, depth: int) -> None:
    """Direct products and those by Strassen's algorithm, by tiles of whole rows."""
    builder = Builder([f32(rows, depth)])
    result = builder.op("matmul", 0, builder.constant(normal(1, depth, 768)))
    compiled = compile_graph(builder.finish([result]), parse_target("x86-64-v4"))
    assert {launch.group.kind for launch in launches_of(compiled.fused)} & {
        "matmul",
        "matmul_strassen",
    }
    steps = [
        step
        for program in compiled.programs
        for step in steps_of(llvm_text(kernel_module(program, compiled.target)))
    ]
    assert steps
    assert all(loads <= multiply_adds for multiply_adds, loads in steps), steps


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_no_loop_of_machine_code_has_more_loads_than_multiply_adds(case: str, name: str) -> None:
    """In what LLVM makes of all products, with operands that an instruction takes from memory, and
    with what it keeps in memory for want of registers; exceptions are named."""
    target = parse_target(name)
    most = EXCEPTIONS.get((case, target.level), 1.0)
    found = loops_of(case, target)
    assert found
    for loop in found:
        assert loop.loads <= loop.multiply_adds * max(most, 1 + 1 / loop.sums), loop
