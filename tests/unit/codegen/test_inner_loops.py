"""Innermost loops for aarch64: near the fewest instructions, and told in ``docs/measurements.md``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.benchmarks.bench_byte_kernels import Layer, kernel_of
from tests.harness.inner_loops import Loop, counted_loops
from tests.harness.loop_code import innermost

from ingot_compiler.codegen.emit.kernel import kernel_module
from ingot_compiler.codegen.llvm_text import llvm_text
from ingot_compiler.targets.target import parse_target

PAGE = Path(__file__).parents[3] / "docs/measurements.md"
TITLE = "## Inner loops for aarch64, counted\n"
HEAD = """
Instructions of the innermost loops as LLVM writes them for `aarch64`; nothing was timed. In brackets are the fewest: a vector of each row of A for four steps, a pair of
vectors of B for each two of the tile, three to count and jump. Prefetches, one for a line of 64 bytes of B that comes from the second cache, are left out of the ratio.
`pytest --bless tests/unit/codegen/test_inner_loops.py` writes this section.

| kernel | tile | multiply-adds | by element | loads | others | prefetches | instructions, by the fewest |
|---|---|---|---|---|---|---|---|
"""


@cache
def loops() -> list[Loop]:
    """All that are counted."""
    return counted_loops()


def test_loops_are_near_the_fewest_instructions() -> None:
    """Within a tenth; and products take their factors from lanes of registers."""
    for loop in loops():
        assert loop.ratio <= 1.1, loop
        if "depthwise" not in loop.name:
            assert loop.by_element == loop.products, loop


def test_the_page_has_the_counts(bless: bool) -> None:
    """``--bless`` writes them anew."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(TITLE)
    after = rest[rest.index("\n## ") :] if "\n## " in rest else ""
    made = before + TITLE + HEAD + "".join(map(_row, loops())) + after
    if bless:
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made


def test_sums_of_weights_read_no_factor() -> None:
    """Bytes of A whose signs are flipped move each sum by one of B's columns, which is multiplied by
    a constant and by nothing of A."""
    target = parse_target("aarch64+asimddp")
    program, _ = kernel_of(Layer("product", 8, 64, 16), "u8", "i8", target)
    text = llvm_text(kernel_module(program, target))
    assert "bitcast <4 x i32> splat (i32 -2139062144) to <16 x i8>" in text


def _row(loop: Loop) -> str:
    cells = (
        loop.name, loop.tile, loop.products, loop.by_element, f"{loop.loads} ({loop.fewest_loads})",
        f"{loop.others} ({loop.fewest_others})", loop.prefetches, f"{loop.ratio:.2f}",
    )  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |\n"


def test_a_loop_is_one_block_that_jumps_to_its_start() -> None:
    """Of two loops the inner one; code that is only jumped over is none."""
    text = """f:
\tcbz x0, .L4
.L1:
\tmov x1, x0
.L2:
\tfmla v0.4s, v1.4s, v2.s[0]  // product
\tsubs x1, x1, #1
\tb.ne .L2
\tb .L1
.L4:
\tret
"""
    assert innermost(text) == [("fmla v0.4s, v1.4s, v2.s[0]", "subs x1, x1, #1", "b.ne .L2")]
