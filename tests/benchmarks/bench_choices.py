"""What measuring could gain: other tiles, blocks and prefetch distances than the models of cost
choose, for products and attention, as a part of the time of the usual choice.

In: nothing. Out: a line for each shape on standard output. Not done here: methods of convolutions
(``ingot tune``), tables. Run: ``python -m tests.benchmarks.bench_choices [LEVEL]``.

All choices of a shape are called in turns; of each the ratio of medians and that of least times
are told. The usual choice is measured twice: what the second one differs by is noise.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from unittest.mock import patch

from tests.benchmarks import bench_kernels
from tests.benchmarks.bench_kernels import Bench, attention, gemm
from tests.harness.kernels_harness import BEST, Kernel

from ingot_compiler.codegen.emit.blocks.products import multiply_step
from ingot_compiler.kernels import attention_layout
from ingot_compiler.kernels.tiles import choose_row_block, choose_tile
from ingot_compiler.lowering.loops.loop_parts import RegisterTile
from ingot_compiler.targets.target import Target, parse_target

PRODUCTS = (
    (128, 768, 768), (128, 768, 3072), (128, 3072, 768), (197, 768, 768), (196, 1024, 256),
    (49, 2048, 512), (784, 512, 128), (3136, 64, 64), (784, 96, 40),
)  # fmt: skip
HEADS = (
    (48, 49, 32, ""), (16, 50, 64, ""), (4, 128, 64, ""), (4, 197, 64, ""), (2, 256, 32, ""),
    (1, 512, 64, ""), (1, 512, 64, "causal"), (1, 384, 128, ""),
)  # fmt: skip
WIDE_TILES, NARROW_TILES = (
    ((6, 4), (8, 3), (9, 3), (12, 2), (14, 2), (5, 5), (5, 4)), ((6, 2), (5, 2), (4, 3), (4, 2), (3, 3), (2, 4))
)  # fmt: skip
WIDE_HEIGHTS, NARROW_HEIGHTS = ({5: 4}, {6: 4}, {7: 3}, {8: 3}), ({6: 2}, {5: 2}, {4: 2}, {4: 3})
QUERY_BLOCKS, PREFETCHED = (48, 192), (48, 96, 384, 768)
ROUNDS, ROUND_SECONDS = 30, 0.0015


@dataclass(frozen=True, slots=True)
class Choice:
    """A kernel, and its times."""

    name: str
    kernel: Kernel
    call: Callable[[], object]
    seconds: list[float] = field(default_factory=list[float])


def choice(name: str, make: Callable[[], Bench], target: Target, **changes: object) -> Choice:
    """Compile a kernel with other constants of the compiler: ``module__name``."""
    with ExitStack() as stack:
        for place, value in changes.items():
            module, _, constant = place.partition("__")
            stack.enter_context(patch.object(_MODULES[module], constant, value))
        bench = make()
        kernel = Kernel(bench.program, target, 2)
    return Choice(name, kernel, kernel.prepare(bench.arrays))


_MODULES = {"bench": bench_kernels, "layout": attention_layout, "step": multiply_step}


def products(target: Target, shape: tuple[int, int, int]) -> Iterator[Choice]:
    """The usual choice, twice, and the others."""
    rows, _, columns = shape
    usual = choose_tile(rows, columns, target)
    block = choose_row_block(rows, columns, usual, target)

    def product() -> Bench:
        return gemm(target, *shape)

    for name in (f"{usual.rows}x{usual.vectors} block {block}", "again"):
        yield choice(name, product, target)
    for pair in WIDE_TILES if target.vector_register_count > 16 else NARROW_TILES:
        tile = RegisterTile(*pair)
        if tile != usual and pair[1] * target.f32_lanes < columns + target.f32_lanes:
            yield choice(f"{pair[0]}x{pair[1]}", product, target, bench__choose_tile=_always(tile))
    for rows_of_block in (block // 4, block // 2, 2 * block):
        other = max(1, rows_of_block // usual.rows) * usual.rows
        yield choice(f"block {other}", product, target, bench__choose_row_block=_always(other))
    for ahead in PREFETCHED:
        yield choice(f"ahead {ahead}", product, target, step___PREFETCH_PRODUCTS=ahead)


def heads(target: Target, shape: tuple[int, int, int, str]) -> Iterator[Choice]:
    """The usual choice, twice, and the others."""

    def head() -> Bench:
        return attention(target, *shape)

    is_wide = target.vector_register_count > 16
    table = "layout___HEIGHTS_MANY" if is_wide else "layout___HEIGHTS_FEW"
    for name in ("usual", "again"):
        yield choice(name, head, target)
    for heights in WIDE_HEIGHTS if is_wide else NARROW_HEIGHTS:
        (name,) = (f"{rows}x{vectors}" for rows, vectors in heights.items())
        yield choice(name, head, target, **{table: heights})
    for queries in QUERY_BLOCKS:
        yield choice(f"block {queries}", head, target, layout___QUERY_BLOCK=queries)


def _always(value: object) -> Callable[..., object]:
    return lambda *_: value


def measure(choices: list[Choice]) -> str:
    """Call all in turns; return the ratios to the first one."""
    usual = choices[0]
    usual.call()
    start = time.perf_counter()
    usual.call()
    repeats = max(1, int(ROUND_SECONDS / (time.perf_counter() - start)))
    for _ in range(ROUNDS):
        for each in choices:
            each.call()
            start = time.perf_counter()
            for _ in range(repeats):
                each.call()
            each.seconds.append(time.perf_counter() - start)
    median, least = statistics.median(usual.seconds), min(usual.seconds)
    ratios = (
        f"{each.name} {statistics.median(each.seconds) / median:.3f} {min(each.seconds) / least:.3f}"
        for each in choices[1:]
    )
    return f"{usual.name}: {', '.join(ratios)}"


def main() -> None:
    """Print one line for each shape."""
    target = parse_target(sys.argv[1] if len(sys.argv) > 1 else BEST)
    print(f"{target}: median and least time, by those of the usual choice")
    for shape in PRODUCTS:
        print(
            "product", "x".join(map(str, shape)), measure(list(products(target, shape))), flush=True
        )
    for numbers in HEADS:
        text = "x".join(map(str, numbers[:3]))
        print("attention", text, numbers[3], measure(list(heads(target, numbers))), flush=True)


if __name__ == "__main__":
    main()
