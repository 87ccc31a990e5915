"""A contraction by Strassen's algorithm: seven products of halves in the place of eight.

In: numbers. Out: which products there are, and of what results are sums; ``StrassenShape``, which a
``Method`` has. Not done here: the tile of a contraction (``loop_parts``), when it is chosen (a back
end), code (``codegen.emit.blocks.products.strassen``).
"""

from __future__ import annotations

from typing import ClassVar

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.sizes.ranges import least_above_zero
from ingot_compiler.lowering.loops.loop_parts import StrassenTile
from ingot_runtime.lazy_dataclass import dataclass

Side = tuple[tuple[int, int], ...]
"""A sum of blocks of a factor: (block, sign); blocks are 0 and 1 above, 2 and 3 below."""

PRODUCTS: tuple[tuple[Side, Side], ...] = (
    (((0, 1), (3, 1)), ((0, 1), (3, 1))),
    (((2, 1), (3, 1)), ((0, 1),)),
    (((0, 1),), ((1, 1), (3, -1))),
    (((3, 1),), ((2, 1), (0, -1))),
    (((0, 1), (1, 1)), ((3, 1),)),
    (((2, 1), (0, -1)), ((0, 1), (1, 1))),
    (((1, 1), (3, -1)), ((2, 1), (3, 1))),
)
"""What is multiplied: a sum of blocks of A by one of B."""

RESULTS: tuple[Side, ...] = (
    ((0, 1), (3, 1), (4, -1), (6, 1)),
    ((2, 1), (4, 1)),
    ((1, 1), (3, 1)),
    ((0, 1), (1, -1), (2, 1), (5, 1)),
)
"""Each block of the result as a sum of products: (product, sign), added in this order."""


@dataclass(frozen=True, slots=True)
class StrassenShape:
    """Rows of a tile, and those of a unit, which has so many tiles below each other. ``rows_min``:
    fewer rows, where their number is open, are faster without the algorithm."""

    TEXT: ClassVar = "$rows of $block from $rows_min, $tile"
    rows: int
    block: int
    tile: StrassenTile
    rows_min: int

    @property
    def vectors(self) -> int:
        """Vectors of a row of a tile."""
        return 2 * self.tile.vectors

    def serves_all(self, rows: Dim) -> bool:
        """Whether no number of rows that a call may have is faster without the algorithm."""
        return isinstance(rows, int) or least_above_zero(rows) >= self.rows_min
