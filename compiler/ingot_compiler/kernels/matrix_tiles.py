"""Which contractions run on tiles that one instruction multiplies.

In: the matrix view of a contraction, element types, a target. Out: a ``RegisterTile``, or None.
Not done here: other tiles (``tiles``), emitting them (``codegen.emit.blocks``).

Two tiles of sums beside each other, and two of them above each other where a depth has no end of
its own, which wants three of the eight registers (decision 4).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim
from ingot_compiler.ir.types import DType, dtype_size_bytes
from ingot_compiler.kernels.tiles import factors_together
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.loops.loop_parts import RegisterTile

TILE_ROWS = 16
TILE_ROW_BYTES = 64
_BESIDE = 2  # tiles of sums
COLUMNS_TOGETHER = _BESIDE * TILE_ROWS
_ABOVE = 2  # tiles of sums, where no registers are needed for the end of a depth
_KEPT_SHARE, _LEFT_SHARE = 0.6, 0.4  # of a second cache that A takes: all of A, a block of it
_ROWS_BESIDE = 128  # that the second cache shall hold, so that a panel of B meets them
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
    tiles, rest_bytes = divmod(depth * dtype_size_bytes(a), TILE_ROW_BYTES)
    if not tiles:
        return None
    is_low = bool(rest_bytes) or (isinstance(rows, int) and rows <= TILE_ROWS)
    return RegisterTile(TILE_ROWS * (1 if is_low else _ABOVE), _BESIDE)


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
    near_bytes, row_bytes = _near_bytes(target), max(1, depth * element_bytes)
    if rows * row_bytes <= near_bytes * _KEPT_SHARE:
        return rows
    height = _ABOVE * TILE_ROWS
    block = max(height, int(near_bytes * _LEFT_SHARE) // row_bytes // height * height)
    panels = -(-columns // COLUMNS_TOGETHER)
    again_bytes = (-(-rows // block) - 1) * columns * row_bytes
    return block if again_bytes < rows * row_bytes * panels * _GAIN_SHARE else rows


def depth_turns(rows: int, tiles: int, element_bytes: int, target: KernelTarget) -> int:
    """Return in how many turns a depth of so many whole tiles is multiplied: so many that the rows
    of a unit stay in the second cache, where all of their depth does not."""
    tile_bytes = TILE_ROW_BYTES // 2 * element_bytes
    near_rows_bytes = min(rows, _ROWS_BESIDE) * tile_bytes
    return next(
        (
            turns
            for turns in range(1, tiles + 1)
            if tiles % turns == 0
            and near_rows_bytes * (tiles // turns) <= _near_bytes(target) * _LEFT_SHARE
        ),
        1,
    )


def _near_bytes(target: KernelTarget) -> int:
    """The largest second cache of the classes that a target is for."""
    return max((each.level2_bytes for each in target.processors), default=0)
