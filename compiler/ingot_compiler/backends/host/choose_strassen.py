"""Whether a matrix product runs by Strassen's algorithm, and with which tiles: a contract of
precision and a model of cost.

In: facts of a product, perhaps the method that was measured to be best. Out: a ``StrassenShape``, or
None for a direct one. Not done here: code (``emit.kernels.strassen``).

Errors against float64, relative to those of one chain of multiply-adds, as measured (decision 47):

| depth | block of it | N(0, 1) | half of them 0 | 80 % zeros |
|---|---|---|---|---|
| 384 | 64 | 0.90 | 1.08 | 1.23 |
| 768 | 64 | 0.61 | 0.78 | 0.90 |
| 768 | 128 | 0.79 | 1.07 | 1.13 |
| 1536 | 128 | 0.61 | 0.77 | 0.85 |
| 3072 | 256 | 0.60 | 0.71 | 0.75 |
"""

from __future__ import annotations

from collections.abc import Iterator

from ingot_compiler.backends.host.tiles import cycles_of_step, panel_columns
from ingot_compiler.ir.dims import Dim
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.strassen import StrassenTile
from ingot_runtime.lazy_dataclass import dataclass

DIRECT, STRASSEN = "matmul", "matmul_strassen"
METHODS = (DIRECT, STRASSEN)
"""By the kinds of their kernels."""
_BLOCK_MIN = 64  # of the depth: shorter chains are added too often
_BLOCK_MAX = 128
_SHARES = {False: 12, True: 6}  # of the depth that a block may have; whether errors may grow
_DEPTH_MIN = {False: 768, True: 384}
_ROWS_MIN = 64  # weights that come from memory are the time of fewer
_TILES = ((8, 3), (14, 2), (13, 2), (12, 2), (11, 2), (10, 2))
"""Rows of a block, vectors of its columns: what fills 32 registers, and with little B per step."""
_REGISTERS, _LANES = 32, 16  # measured on no other targets
# Cycles of a vector unit, measured on a 512-bit core: of 7/8 of the products with what surrounds
# them; of an element of A, of which a unit makes sums.
_PRODUCT_CYCLES = 0.94
_SUMS_CYCLES = 0.4
_PANELS_PER_UNIT_MIN = 4
_UNITS_WANTED = 16


@dataclass(frozen=True, slots=True)
class StrassenFacts:
    """Sizes of a product of f32 by a constant; ``allows_more``: the user lets errors grow."""

    rows: Dim
    depth: Dim
    columns: Dim
    allows_more: bool


@dataclass(frozen=True, slots=True)
class StrassenShape:
    """Rows of a tile, and columns of a unit, which has several tiles beside each other."""

    rows: int
    columns: int
    tile: StrassenTile

    @property
    def ints(self) -> tuple[int, ...]:
        """As an attribute of a node."""
        return self.rows, self.columns, self.tile.vectors, self.tile.depth

    @classmethod
    def of(cls, ints: tuple[int, ...]) -> StrassenShape:
        """The shape that ``ints`` say."""
        rows, columns, vectors, depth = ints
        return cls(rows, columns, StrassenTile(vectors, depth))


def strassen_shape(facts: StrassenFacts, target: KernelTarget) -> StrassenShape | None:
    """The tiles that cost least; None where the algorithm is not precise enough, not for such sizes
    or targets, or gains nothing."""
    is_measured = (target.vector_register_count, target.f32_lanes) == (_REGISTERS, _LANES)
    if not is_measured or not target.has_fma or target.multiplies_by_element:
        return None
    rows, depth, columns = facts.rows, facts.depth, facts.columns
    if not isinstance(rows, int) or not isinstance(depth, int) or not isinstance(columns, int):
        return None
    block = _block(depth, allows_more=facts.allows_more)
    if target.team_units > 1 or rows < _ROWS_MIN or block is None:
        return None
    shapes = list(_shapes(rows, block, columns))
    return min(shapes, key=lambda shape: _cost(shape, rows), default=None)


def _block(depth: int, *, allows_more: bool) -> int | None:
    """The longest block of the depth that is precise enough; None: none is."""
    if depth < _DEPTH_MIN[allows_more]:
        return None
    longest = min(_BLOCK_MAX, max(_BLOCK_MIN, depth // _SHARES[allows_more]))
    step = panel_columns("f32")
    fits = (block for block in range(longest, _BLOCK_MIN - 1, -1) if depth % (2 * block) == 0)
    return next((block for block in fits if block % step == 0), None)


def _shapes(rows: int, block: int, columns: int) -> Iterator[StrassenShape]:
    """Those of whose tiles the columns are a multiple."""
    for height, vectors in _TILES:
        width = 2 * vectors * _LANES
        if columns % width == 0 and rows >= 2 * height:
            units = -(-rows // (2 * height))
            yield StrassenShape(
                2 * height, columns // _parts(columns // width, units), StrassenTile(vectors, block)
            )


def _parts(tiles: int, units: int) -> int:
    """Into how many units the tiles beside each other are divided, so that threads have enough;
    not into more than pay for the sums of A that each makes."""
    most = max(1, tiles // _PANELS_PER_UNIT_MIN)
    wanted = -(-_UNITS_WANTED // units)
    fits = [parts for parts in range(1, most + 1) if tiles % parts == 0]
    return next((parts for parts in fits if parts >= wanted), fits[-1])


def _cost(shape: StrassenShape, rows: int) -> float:
    """Cycles for each step of depth and vector of columns; rows that fill no tile are direct."""
    height, vectors = shape.rows // 2, shape.tile.vectors
    whole, rest = divmod(rows, shape.rows)
    each = cycles_of_step(height, vectors) / vectors
    sums = _SUMS_CYCLES * height * _LANES / shape.columns
    return 2 * whole * (each * _PRODUCT_CYCLES + sums) + cycles_of_step(rest, vectors) / vectors
