"""Whether the model of cost puts the methods of products in the order that is measured: direct,
Strassen's algorithm, products of parts in tiles.

In: nothing. Out: a line for each size and pair of methods on standard output, and the share of
pairs whose order is right, among those whose times differ by more than 3 %; the exit code is 1 where it
is below 90 %. Not done here: processors other than this one (``test_port_models``). Run:
``taskset -c 1 python -m tests.benchmarks.bench_port_model [ROUNDS]``.

Ports are counted by a model of them where this machine has one for its processor (``pytest -m
ports`` says what that needs), by the table of classes elsewhere. Methods are called in turns; their
times are the least ones, which other work on the machine changes least.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.benchmarks.measured_page import take_page_option, write_section
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.lowering_harness import normal
from tests.harness.port_models import LOOPS, PortModel, models_here
from tests.harness.product_times import class_target, product_times

import ingot
import ingot_runtime
from ingot_artifacts.inspect.describe import describe_bundle
from ingot_build_rules.making.options.tuning_file import tuning_text
from ingot_compiler.kernels.products.parts import parts_shape
from ingot_compiler.kernels.products.product_cost import ProductSizes, parts_cycles
from ingot_compiler.kernels.products.tuned import (
    MATRIX_DIRECT,
    MATRIX_STRASSEN,
    PARTS_OF_MATRIX,
)
from ingot_compiler.targets.host_target import host_target
from ingot_compiler.targets.processors import ProcessorClass
from ingot_compiler.targets.target import Target, parse_target

SIZES = (
    (48, 768, 768), (64, 768, 768), (100, 128, 128), (128, 768, 768), (128, 768, 3072),
    (128, 3072, 768), (197, 768, 768), (196, 256, 1024), (256, 1024, 4096), (400, 512, 512),
    (512, 1024, 1024), (784, 512, 512), (1024, 1024, 1024),
)  # fmt: skip
"""Rows, depth and columns."""
DIRECT, STRASSEN, PARTS = "direct", "Strassen", "parts"
KINDS = {DIRECT: MATRIX_DIRECT, STRASSEN: MATRIX_STRASSEN, PARTS: PARTS_OF_MATRIX[3]}
_ROUNDS, _DIFFERENT, _SHARE_MIN = 100, 0.03, 0.9
_TILES = "+amx-bf16"


def predicted(
    sizes: ProductSizes, row: ProcessorClass, model: PortModel | None, *, has_tiles: bool
) -> dict[str, float]:
    """Cycles by method."""
    direct, strassen = product_times(sizes, row, model)
    found = {DIRECT: direct}
    if strassen is not None:
        found[STRASSEN] = strassen
    if has_tiles:
        target = parse_target(f"{class_target(row)}{_TILES}")
        found[PARTS] = parts_cycles(parts_shape(sizes, 3, target), sizes, row)
    return found


def session_of(
    sizes: ProductSizes, method: str, target: Target, folder: Path
) -> ingot_runtime.Session | None:
    """A product by a method; None where it is not computed so."""
    model = make_model(
        [node("MatMul", "x w", "y", name="product")],
        [tensor("x", [sizes.rows, sizes.depth])],
        [tensor("y", None)],
        {"w": normal(0, sizes.depth, sizes.columns)},
    )
    path, tuning = folder / f"{method}.ingot", folder / "m.tune"
    own = str(parse_target(f"{target}{_TILES}") if method == PARTS else target)
    tuning.write_text(tuning_text(own, "", [("*", KINDS[method], "")]))
    ingot.compile(model, targets=own, tuning=tuning).save(path)
    launches: dict[str, list[dict[str, str]]] = describe_bundle(path)["debug"]["launches"]
    kinds = {launch["kind"] for each in launches.values() for launch in each}
    return ingot_runtime.load(path, threads=1) if KINDS[method] in kinds else None


def measured(
    sizes: ProductSizes, methods: Iterable[str], target: Target, rounds: int
) -> dict[str, float]:
    """Times by those of the direct product, of those that there are."""
    x = {"x": normal(1, sizes.rows, sizes.depth)}
    with tempfile.TemporaryDirectory() as folder:
        made = {each: session_of(sizes, each, target, Path(folder)) for each in methods}
        sessions = {each: session for each, session in made.items() if session is not None}
        seconds: dict[str, list[float]] = {method: [] for method in sessions}
        for _ in range(rounds):
            for method, session in sessions.items():
                start = time.perf_counter()
                session.run(x)
                seconds[method].append(time.perf_counter() - start)
    return {method: min(took) / min(seconds[DIRECT]) for method, took in seconds.items()}


def told(rounds: int) -> Iterator[tuple[str, str, float, float]]:
    """A size and two methods, and how many times as long the second one takes, by the model and by
    the clock."""
    target = host_target()
    (row,) = target.processors
    model = next(
        (each for each in models_here() if each.row == row.name and each.knows(LOOPS)), None
    )
    has_tiles = "bf16" in target.multiplies_tiles
    for rows, depth, columns in SIZES:
        sizes = ProductSizes(rows, depth, columns)
        cycles = predicted(sizes, row, model, has_tiles=has_tiles)
        times = measured(sizes, cycles, class_target(row), rounds)
        for first, second in itertools.combinations(times, 2):
            pair = f"{second} by {first}"
            yield (
                f"{rows}x{depth}x{columns}",
                pair,
                cycles[second] / cycles[first],
                times[second] / times[first],
            )


def main() -> int:
    """Print the pairs and the share."""
    page = take_page_option()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else _ROUNDS
    right = list[bool]()
    for size, pair, model, clock in told(rounds):
        verdict = ""
        if abs(clock - 1) > _DIFFERENT:
            right.append((model > 1) == (clock > 1))
            verdict = "right" if right[-1] else "WRONG"
        print(f"{size:14} {pair:20} model {model:.2f}, measured {clock:.2f}  {verdict}", flush=True)
    share = sum(right) / max(1, len(right))
    print(f"order of {sum(right)} of {len(right)} pairs that differ by more than 3 %: {share:.0%}")
    if page:
        header = ("pairs that differ by more than 3 %", "in the order that is predicted")
        write_section(header, [[str(len(right)), str(sum(right))]])
    return int(share < _SHARE_MIN)


if __name__ == "__main__":
    sys.exit(main())
