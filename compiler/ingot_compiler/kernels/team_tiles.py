"""Which contractions a team of units computes together, and with which tiles.

In: extents, which may be symbolic, and a target. Out: a ``RegisterTile`` for each unit, or none.
Not done here: tiles of units alone (``tiles``), emitting them (``codegen.emit.blocks``).

The model counts what a GPU does for a step of depth: threads multiply, read the memory that they
share, and fill it. It was made from what NVIDIA says of its processors, and was not fitted to measurements.
"""

from __future__ import annotations

from functools import cache

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.ir.types import DType
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.loops.loop_parts import RegisterTile

_ROWS_MIN = 8  # with fewer, most threads of a team would have none
_COLUMNS_MIN = 16
_ROWS_SYMBOLIC = 512  # stands for unknown extents
_HEIGHTS, _VECTORS = (1, 2, 4, 8), (2, 4, 8)
_TEAMS_AT_ONCE = 128  # that a GPU has room for, about
_STEP_CYCLES = 16  # of a step of depth beside multiplying: of memory, of waiting for each other


def choose_team_tile(
    outer: Dim, rows: Dim, columns: Dim, target: KernelTarget, dtype: DType
) -> RegisterTile | None:
    """Choose the tile of each unit of a team, of ``outer`` products with ``rows`` x ``columns``
    results; None where units work alone: without such a memory, with few results, with sums that
    are no f32, with columns of an open number."""
    if target.team_units == 1 or dtype != "f32" or not isinstance(columns, int):
        return None
    height = rows if isinstance(rows, int) else _ROWS_SYMBOLIC
    if height < _ROWS_MIN or columns < _COLUMNS_MIN:
        return None
    return _cheapest(max(typical(outer), 1), height, columns, target)


@cache
def _cheapest(outer: int, rows: int, columns: int, target: KernelTarget) -> RegisterTile:
    tiles = [RegisterTile(height, vectors) for height in _HEIGHTS for vectors in _VECTORS]

    def cost(tile: RegisterTile) -> tuple[float, int]:
        teams = -(-rows // (tile.rows * target.team_units))
        teams *= -(-columns // (tile.vectors * target.f32_lanes)) * outer
        return -(-teams // _TEAMS_AT_ONCE) * _cycles(tile, target.team_units), tile.rows

    return min(tiles, key=cost)


def _cycles(tile: RegisterTile, units: int) -> float:
    """The cycles of a step of depth: four elements of a row of A are read at once, as are four
    vectors of B; each unit loads its rows of A, and a row of B."""
    products, reads = tile.rows * tile.vectors, tile.rows + tile.vectors
    brought = tile.rows / tile.vectors + tile.vectors / units
    return max(products, reads) + brought + _STEP_CYCLES
