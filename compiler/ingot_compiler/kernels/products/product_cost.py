"""What a product of f32 by weights costs on a class of processors: directly, by Strassen's
algorithm, as products of parts of bf16.

In: sizes, tiles, a ``ProcessorClass``. Out: cycles; which of some choices loses least. Not done
here: which tiles there are, and which are precise enough (``strassen``).

Cycles are those of what is busiest (multiply-adds with the additions that share their ports, or
loads), and of what the second cache takes beside them: the nearer its time is to theirs, the less
of it is hidden. What comes from behind it is hidden in a direct product, which fetches a panel
ahead, and in Strassen's only where multiply-adds are slow. Times by those of a direct product, predicted and measured on an
Emerald Rapids, and predicted for a Zen 5, where Strassen's took 0.93 to 0.95 before direct products
fetched ahead, from which they gain 4 to 7 % there:

| rows, depth, columns | Emerald Rapids | Zen 5 |
|---|---|---|
| 128, 768, 768 | 1.09; 1.12 | 0.98 |
| 128, 768, 3072 | 1.09; 1.04 to 1.10 | 0.98 |
| 128, 3072, 768 | 1.17; 1.25 | 1.07 |
| 784, 512, 512 | 1.02; 1.00 to 1.02 | 0.96; 0.99 |
| 1024, 1024, 1024 | 1.04; 1.04 to 1.06 | 0.98 |

Of six products of parts, on the Emerald Rapids: 128, 768, 768 0.72; 0.60 to 0.63. 128, 3072, 768
0.73; 0.65 to 0.69. 1024, 1024, 1024 0.69; 0.62. 48, 768, 768 0.88; 0.81 to 0.85. 100, 128, 128
1.39; 1.42. Weights and rows that a network brings from memory cost more than in a loop of one
product, and count so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ingot_compiler.kernels.products.turns import PANELS_TOGETHER
from ingot_compiler.kernels.strassen_scratch import scratch_of
from ingot_compiler.lowering.loops.bf16_pairs import PART_PRODUCTS
from ingot_compiler.lowering.loops.strassen import PRODUCTS, StrassenShape
from ingot_compiler.targets.processors import ProcessorClass
from ingot_runtime.lazy_dataclass import dataclass

_LANES = 16
_FLOAT_BYTES = 4
_VECTOR_BYTES = _FLOAT_BYTES * _LANES
_TILE_ROWS, _PANEL_VECTORS = 12, 2  # of a direct product
_AROUND = 1.04  # measured: a product with what surrounds it, by its multiply-adds
_NEAR_SHARE = 0.5  # of what a tile reads: the rest is in the first cache
_AROUND_REST = 1.15  # of rows and columns that fill no tile
_SUMS_OF_B = sum(len(side) - 1 for _, side in PRODUCTS) / len(PRODUCTS)
_STORES_OF_A = len(PRODUCTS) / 4  # for each vector of a block
_STORES_OF_RESULT = 4  # of a vector: seven products are loaded, added, stored and loaded again
# Of tiles that one instruction multiplies, measured on an Emerald Rapids: one product of 16x32 sums
# by 32 of the depth, and rows of A that are brought together for it; a vector of A that is split;
# one of results, which go through memory.
_TILE_CYCLES, _GATHER_CYCLES, _SPLIT_CYCLES, _TILED_RESULT_CYCLES = 46.0, 30.0, 32.0, 8.0
_TILE = (16, 32, 32)
_TILE_COLUMNS = 32
_PART_BYTES = 2
_TILED_FAR_SHARE = 0.67  # of what comes from behind the second cache: lines are read in order

Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True)
class ProductSizes:
    """Rows and columns of the result, and the depth."""

    rows: int
    depth: int
    columns: int

    @property
    def weights_bytes(self) -> int:
        """Size of the right factor."""
        return _FLOAT_BYTES * self.depth * self.columns


def least_loss(
    choices: Sequence[Choice],
    processors: Sequence[ProcessorClass],
    cycles: Callable[[Choice, ProcessorClass], float],
) -> Choice:
    """Return the choice whose time is nearest to that of the best one, on the class for which it is
    worst; for one class, that is the fastest. The first of equal ones."""
    best = [min(cycles(choice, each) for choice in choices) for each in processors]
    return min(
        choices,
        key=lambda choice: max(
            cycles(choice, each) / least for each, least in zip(processors, best, strict=True)
        ),
    )


def direct_cycles(
    sizes: ProductSizes, processor: ProcessorClass, vector_cycles: float | None = None
) -> float:
    """Cycles of chains of multiply-adds: a panel of weights meets all rows, then the next one.
    ``vector_cycles``: of one multiply-add, if somebody else has counted the ports' work (None: the
    class's)."""
    tile = _TILE_ROWS * _PANEL_VECTORS
    steps = sizes.rows * sizes.columns * sizes.depth / _LANES / tile
    near_bytes = _VECTOR_BYTES * _PANEL_VECTORS
    each = 1 / processor.multiply_adds if vector_cycles is None else vector_cycles
    step = _with_memory(tile * each * _AROUND, near_bytes / processor.level2_rate * _NEAR_SHARE)
    return max(steps * step, sizes.weights_bytes / processor.far_rate)  # fetched a panel ahead


def _with_memory(cycles: float, memory_cycles: float) -> float:
    """Cycles of what is computed and of what is read meanwhile."""
    return cycles + memory_cycles * min(1.0, memory_cycles / cycles) if cycles else memory_cycles


def strassen_cycles(
    shape: StrassenShape,
    sizes: ProductSizes,
    processor: ProcessorClass,
    vector_cycles: float | None = None,
) -> float:
    """Cycles by Strassen's algorithm; rows and columns that fill no tile are direct.
    ``vector_cycles``: as for ``direct_cycles``, with what additions and loads take."""
    rows = sizes.rows // shape.rows * shape.rows
    columns = sizes.columns // (shape.vectors * _LANES) * (shape.vectors * _LANES)
    tiles = (rows // shape.rows) * (columns // (shape.vectors * _LANES))
    height, vectors = shape.rows // 2, shape.tile.vectors
    steps = tiles * len(PRODUCTS) * sizes.depth / 2
    stores = (
        steps / shape.tile.depth * height * vectors
        + rows * sizes.depth / _LANES * _STORES_OF_A
        + rows * columns / _LANES * _STORES_OF_RESULT
    )
    rest = (sizes.rows - rows) * sizes.columns + rows * (sizes.columns - columns)
    computed = (
        steps * _step_cycles(height, vectors, processor, vector_cycles)
        + stores / processor.stores
        + rest * sizes.depth / _LANES / processor.multiply_adds * _AROUND_REST
    )
    far_bytes = _far_bytes(shape, sizes, rows, columns, processor)
    far_cycles = far_bytes / processor.far_rate
    # What it fetches ahead arrives in time where a step takes a cycle for each multiply-add.
    is_hidden = processor.multiply_adds == 1
    return _with_memory(computed, far_cycles) if is_hidden else computed + far_cycles


def _step_cycles(
    height: int, vectors: int, processor: ProcessorClass, vector_cycles: float | None
) -> float:
    """Cycles of a step of the depth of one product: the busiest of ports of multiply-adds and of
    loads, and what the second cache takes."""
    sums = vectors * _SUMS_OF_B
    busy = height * vectors + (0 if processor.adds_apart else sums)
    ports = max(busy / processor.multiply_adds, (height + vectors + sums) / processor.loads)
    if vector_cycles is not None:
        ports = height * vectors * vector_cycles
    near_bytes = _FLOAT_BYTES * height + _VECTOR_BYTES * (vectors + sums)
    return _with_memory(ports * _AROUND, near_bytes / processor.level2_rate * _NEAR_SHARE)


def _far_bytes(
    shape: StrassenShape, sizes: ProductSizes, rows: int, columns: int, processor: ProcessorClass
) -> float:
    """Each block of rows reads the weights; its sums of A are read for each tile of columns, which
    a cache that holds them beside the weights of a tile serves."""
    scratch_bytes = scratch_of(shape.block, sizes.depth).size_bytes
    tile_bytes = _FLOAT_BYTES * sizes.depth * shape.vectors * _LANES
    blocks = -(-rows // shape.block)
    far_bytes: float = sizes.weights_bytes * blocks
    if scratch_bytes + tile_bytes > processor.level2_bytes:
        far_bytes += scratch_bytes * rows / shape.block * columns / (shape.vectors * _LANES)
    return far_bytes


@dataclass(frozen=True, slots=True)
class PartsShape:
    """How products of ``parts`` of both factors are computed: ``block`` rows are a unit, its depth is
    multiplied in ``turns``; ``brings_rows_together``: those of a tile do not lie evenly apart."""

    parts: int
    block: int
    turns: int
    brings_rows_together: bool = False


def parts_cycles(shape: PartsShape, sizes: ProductSizes, processor: ProcessorClass) -> float:
    """Cycles of products of parts of bf16 in tiles."""
    rows, columns, depth = (
        -(-size // tile)
        for size, tile in zip((sizes.rows, sizes.columns, sizes.depth), _TILE, strict=True)
    )
    tile_cycles = _TILE_CYCLES + (_GATHER_CYCLES if shape.brings_rows_together else 0.0)
    computed = (
        rows * columns * depth * len(PART_PRODUCTS[shape.parts]) * tile_cycles
        + sizes.rows * sizes.depth / _LANES * _SPLIT_CYCLES
        + sizes.rows * sizes.columns / _LANES * _TILED_RESULT_CYCLES * shape.turns
    )
    far_bytes = _far_bytes_of_parts(shape, sizes)
    return computed + far_bytes / processor.far_rate * _TILED_FAR_SHARE


def _far_bytes_of_parts(shape: PartsShape, sizes: ProductSizes) -> float:
    """Each block of rows reads the weights; in turns, each unit reads its left factor."""
    depth_bytes = shape.parts * _PART_BYTES * sizes.depth
    units = 1 if shape.turns == 1 else -(-sizes.columns // (_TILE_COLUMNS * PANELS_TOGETHER))
    blocks = -(-sizes.rows // shape.block)
    return float(depth_bytes * (sizes.columns * blocks + sizes.rows * units))
