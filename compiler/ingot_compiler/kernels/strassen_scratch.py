"""Where a kernel by Strassen's algorithm keeps the sums of blocks of A in a thread's scratch.

In: rows of a tile, the depth. Out: ``StrassenScratch``. Not done here: code
(``products.strassen``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim
from ingot_compiler.lowering.loops.strassen import PRODUCTS
from ingot_runtime.lazy_dataclass import dataclass

_PITCH_SPARE = 16  # rows a power of two apart would share sets of the first cache


@dataclass(frozen=True, slots=True)
class StrassenScratch:
    """``[product][row][pitch]`` of f32; rows are half as long as the depth."""

    pitch: int
    size_bytes: int


def scratch_of(rows: int, depth: Dim) -> StrassenScratch:
    """Lay out the factors of a tile of ``rows`` for a ``depth``, which is a number."""
    assert isinstance(depth, int)
    pitch = depth // 2 + _PITCH_SPARE
    return StrassenScratch(pitch, 4 * len(PRODUCTS) * (rows // 2) * pitch)
