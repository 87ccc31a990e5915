"""How far the model of cost that chooses the method of a convolution is from measured times.

In: nothing. Out: a table on standard output, and the median error. Not done here: placement
(``bench_placement``), tiles of products. Run: ``python -m tests.benchmarks.bench_cost_model
[LEVEL]``.

The model counts cycles of the vector unit; the multiply-add peak that is measured in the same run
says how long one takes. Its predictions are there to compare methods, so the last column counts
most: whether the method that it chooses is the fastest one that was measured.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.bench_kernels import PEAK_ROUNDS, peak_flops
from tests.benchmarks.measured_page import take_page_option, write_section
from tests.harness.end_to_end_harness import make_model, node, tensor
from tests.harness.kernels_harness import BEST
from tests.harness.lowering_harness import normal

import ingot
from ingot_build_rules.making.options.tuning_file import tuning_text
from ingot_build_rules.tools.view.tune_methods import TunedLayer, tune_methods
from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.graph import Node, make_attributes
from ingot_compiler.ir.precision import FAST, SPEED
from ingot_compiler.ir.types import TensorType
from ingot_compiler.kernels.products.algorithm import ProductFacts, Wishes
from ingot_compiler.kernels.products.tuned import DIRECT, WINOGRAD, WINOGRAD_TILES
from ingot_compiler.kernels.products.winograd_cost import (
    direct_cycles,
    winograd_cycles,
)
from ingot_compiler.kernels.winograd_tiles import WinogradShape
from ingot_compiler.targets.target import Target, parse_target

ROUNDS = 40
LAYERS = (
    (32, 28), (32, 56), (64, 7), (64, 14), (64, 28), (64, 56), (128, 14), (128, 28), (256, 14), (512, 7),
)  # fmt: skip
"""Channels in and out, rows and columns of an image."""
TILES = {
    name: WinogradShape((3, 3), tile)
    for tile, name in zip(WINOGRAD_TILES, WINOGRAD, strict=True)
    if tile[0] > 1
}
"""By the names of methods."""


@dataclass(frozen=True, slots=True)
class Row:
    """One layer by one method."""

    layer: str
    method: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """How far the prediction is off, as a share of what was measured."""
        return abs(self.predicted / self.measured - 1)


def measured_layer(channels: int, size: int, target: Target, folder: Path) -> TunedLayer:
    """Compile one layer by each method, and time them in turns."""
    model = make_model(
        [node("Conv", "x w", "y", name="layer", pads=[1, 1, 1, 1])],
        [tensor("x", [1, channels, size, size])],
        [tensor("y", None)],
        {"w": normal(0, channels, channels, 3, 3)},
    )
    bundles: dict[str, str] = {}
    for method in ("", DIRECT, *TILES):
        bundles[method] = str(folder / f"{method}.ingot")
        (folder / "m.tune").write_text(tuning_text(str(target), "", [("*", method, "")]))
        tuning = folder / "m.tune" if method else None
        made = ingot.compile(model, targets=str(target), precision="fast", tuning=tuning)
        made.save(bundles[method])
    usual = bundles.pop("")
    (layer,) = tune_methods(bundles, usual, {"x": normal(1, 1, channels, size, size)}, 1, ROUNDS)
    return layer


def predictions(channels: int, size: int, target: Target) -> Mapping[str, float]:
    """Cycles by method."""
    image = TensorType("f32", (1, channels, size, size))
    weights = TensorType("f32", (channels, channels, 3, 3))
    pads, ones = (1, 1), (1, 1)
    table: dict[str, Attribute] = {
        "pads_before": pads, "pads_after": pads, "strides": ones, "dilations": ones, "groups": 1,
    }  # fmt: skip
    conv = Node("conv", (0, 1), (2,), make_attributes(table))
    facts = ProductFacts(conv, image, weights, image, has_constant_weights=True)
    cycles = {name: winograd_cycles(shape, facts, target) for name, shape in TILES.items()}
    return {DIRECT: direct_cycles(facts, Wishes(FAST, SPEED), target), **cycles}


def rows(channels: int, size: int, target: Target, cycle_seconds: float) -> Iterator[Row]:
    """Measure one layer."""
    with tempfile.TemporaryDirectory() as folder:
        layer = measured_layer(channels, size, target, Path(folder))
    cycles = predictions(channels, size, target)
    for method, seconds in layer.seconds.items():
        yield Row(f"{channels}@{size}", method, seconds, cycles[method] * cycle_seconds)


def main() -> None:
    """Print a line per layer and method."""
    page = take_page_option()
    target = parse_target(sys.argv[1] if len(sys.argv) > 1 else BEST)
    peak = max(peak_flops(target) for _ in range(PEAK_ROUNDS))
    print(f"{target}: multiply-add peak {peak / 1e9:.1f} GF/s")
    found: list[Row] = []
    right = 0
    for channels, size in LAYERS:
        layer = list(rows(channels, size, target, 2 * target.f32_lanes / peak))
        best, chosen = (
            min(layer, key=lambda row: row.measured),
            min(layer, key=lambda row: row.predicted),
        )
        right += best is chosen
        for row in layer:
            verdict = f"fastest, {chosen.method} predicted" if row is best else ""
            print(
                f"{row.layer:8} {row.method:13} {1e6 * row.measured:8.1f} us, predicted "
                f"{1e6 * row.predicted:8.1f} us, {row.error:5.1%} off  {verdict}",
                flush=True,
            )
        found += layer
    median, worst = statistics.median(row.error for row in found), max(row.error for row in found)
    print(
        f"median error {median:.1%}, worst {worst:.1%}; fastest predicted {right} of {len(LAYERS)}"
    )
    if page:
        header = ("layers of 3x3", "fastest method predicted", "median error", "worst")
        told = f"{right} of {len(LAYERS)}"
        write_section(header, [[str(target), told, f"{median:.1%}", f"{worst:.1%}"]])


if __name__ == "__main__":
    main()
