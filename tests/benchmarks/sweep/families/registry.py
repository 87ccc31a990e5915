"""The families of the sweep, in the order in which they run.

In: the modules beside this one, the cases that have names of their own. Out: ``FAMILIES``. Not done
here: measuring (``bench_algorithms``).
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.algorithm_cases import ALGORITHMS
from tests.benchmarks.decoder_cases import DECODERS
from tests.benchmarks.everyday_cases import EVERYDAY
from tests.benchmarks.further_cases import FURTHER
from tests.benchmarks.sweep.families import moving, products, rows, windows
from tests.benchmarks.sweep.making import Family, Named
from tests.benchmarks.tree_cases import TREES


def algorithms() -> Iterator[Named]:
    """Ops for which the algorithm decides."""
    yield from ALGORITHMS.items()


def decoders() -> Iterator[Named]:
    """Layers of decoders."""
    yield from DECODERS.items()


def everyday() -> Iterator[Named]:
    """Ops of the sizes that people run."""
    yield from EVERYDAY.items()


def further() -> Iterator[Named]:
    """Ops that were slower when they were first tried."""
    yield from FURTHER.items()


def trees() -> Iterator[Named]:
    """Ensembles of trees."""
    yield from TREES.items()


FAMILIES: tuple[Family, ...] = (
    windows.pools,
    windows.pools_of_other_ranks,
    windows.whole_planes,
    windows.convolutions,
    windows.convolutions_of_other_ranks,
    windows.transposed_convolutions,
    windows.resizes,
    windows.samples_of_grids,
    moving.slices,
    moving.pads,
    moving.shapes,
    moving.copies,
    moving.transposes,
    moving.gathers,
    moving.scatters,
    moving.reversed_sequences,
    moving.transposed_producers,
    rows.reductions,
    rows.reductions_of_matrices,
    rows.narrow_rows,
    rows.softmaxes,
    rows.norms,
    rows.tops,
    rows.running_sums,
    rows.pairs,
    rows.elements,
    products.products,
    products.products_of_transposed,
    products.batches_of_products,
    products.distances,
    products.bags,
    products.attention,
    products.rotations,
    products.quantized,
    products.recurrent,
    algorithms,
    decoders,
    everyday,
    further,
    trees,
)

TOLERANCE_SCALES: dict[Family, float] = {decoders: 50.0}
