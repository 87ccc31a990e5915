"""Which contractions run on tiles that one instruction multiplies.

In: the matrix view of a contraction, element types, a target. Out: a ``RegisterTile``, or None.
Not done here: other tiles (``tiles``), emitting them (``codegen.emit.blocks``).

One row of two tiles of sums, as decision 4 says: five tile registers, and three for the end of a
depth. Nobody has measured the choice here: there is no such machine.
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
