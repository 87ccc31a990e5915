"""Which contractions run on tiles that one instruction multiplies.

In: the matrix view of a contraction, element types, a target. Out: a ``RegisterTile``, or None.
Not done here: other tiles (``tiles``), emitting them (``codegen.emit.blocks``).

One row of two tiles of sums, as decision 4 says: five tile registers, and three for the end of a
depth.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.types import DType, dtype_size_bytes
from ingot_compiler.kernels.tiles import factors_together
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.loops.loop_parts import RegisterTile

TILE_ROWS = 16
TILE_ROW_BYTES = 64
_TILE = RegisterTile(TILE_ROWS, 2)
_KEPT_SHARE, _LEFT_SHARE = 0.75, 0.375  # of a second cache that A takes: all of A, a block of it
_GAIN_SHARE = 0.5  # of what is read again that must be saved


def matrix_tile(
    rows: Dim, depth: Dim, factors: tuple[DType, DType], together: int, target: KernelTarget
) -> RegisterTile | None:
    """Choose tiles where the target multiplies both factors so, where they lie together in a packed
    B, and where the rows and the depth of a tap fill one; a depth ends with a whole group of what
    lies together, since nothing behind it may be read."""
    a, b = factors
    if not {a, b} <= target.multiplies_tiles or together != factors_together(a, b):
        return None
    few_rows = isinstance(rows, int) and rows < TILE_ROWS
    if few_rows or not isinstance(depth, int) or depth % together:
        return None
    return _TILE if depth * dtype_size_bytes(a) >= TILE_ROW_BYTES else None


def rows_of_block(
    rows: int, depth: Dim, columns: Dim, element_bytes: int, target: KernelTarget
) -> int:
    """Return how many of ``rows`` one unit has: all, or so few that their part of A stays in the
    second cache while one panel of B after the other meets it, where B is read less often than A
    would be.

    ``element_bytes``: of an element of A and of B, with all its parts.
    """
    if not isinstance(depth, int) or not isinstance(columns, int):
        return rows
    near_bytes = max((each.level2_bytes for each in target.processors), default=0)
    row_bytes = max(1, depth * element_bytes)
    if rows * row_bytes <= near_bytes * _KEPT_SHARE:
        return rows
    block = max(TILE_ROWS, int(near_bytes * _LEFT_SHARE) // row_bytes // TILE_ROWS * TILE_ROWS)
    panels = -(-columns // (_TILE.vectors * TILE_ROWS))
    again_bytes = (-(-rows // block) - 1) * columns * row_bytes
    return block if again_bytes < rows * row_bytes * panels * _GAIN_SHARE else rows
