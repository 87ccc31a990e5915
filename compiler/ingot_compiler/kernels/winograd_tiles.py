"""How a convolution by Winograd's algorithm is divided: tiles, blocks of tiles, registers, scratch.

In: sizes, a target. Out: ``WinogradShape``, blocks, scratch. Not done here: whether the algorithm
is worth while (``choose_winograd``), code (``winograd.winograd``).

Measured on a 512-bit core with 1 MiB of L2 (56x56x64 to 7x7x512): the transformed image of a block
stays in L2, while the weights of a unit pass by once for each block. Few weights stay in L2 as well:
then small blocks cost nothing, and each register tile keeps its sums over all channels.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

from ingot_compiler.ir.dims import Dim, dim_mul, dim_product
from ingot_compiler.kernels.tiles import cycles_of_step, panel_columns
from ingot_compiler.lowering.groups.space import ceil_div
from ingot_compiler.lowering.groups.views import Shape
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.loops.loop_parts import RegisterTile
from ingot_compiler.lowering.loops.program import Winograd
from ingot_runtime.lazy_dataclass import dataclass

PARTS = 4
"""Sums that the sum of a frequency is made of, each over a quarter of its depth: what keeps the
error below that of one chain."""
_CHAINS_OF_PART, _CHAINS_DEPTH_MIN = 4, 128
_SMALL_FREQUENCIES_MAX = 16  # whose errors are small enough with one chain of a part
_BLOCK_BYTES_MAX = 832 * 1024  # of the transformed image
_BLOCK_TILES_MAX = 64
_BLOCK_COST_TILES = 2  # reading the weights once more costs as much as so many tiles
_HELD_REGISTERS_MIN = 32  # of sums of chains beside those of a chain: with 16 the latter spill
_HELD_DEPTH_MAX = 64  # with 128 the panel of a register tile leaves no room in L1: 2 to 5 % slower
_HELD_WEIGHTS_BYTES_MAX = 448 * 1024  # of all frequencies
_HELD_BLOCK_TILES_MAX = 18
_HELD_ROWS_MIN = 4
_ROWS_MIN, _ROWS_MAX = 6, 13  # of registers: with 14 rows of two vectors LLVM spills all of them
_PITCH_SPARE = 16  # elements between frequencies: else all of them share few sets of the caches


TAPS = 3
"""The taps of a block along an axis."""


@dataclass(frozen=True, slots=True)
class WinogradShape:
    """``kernel``: taps, ``tile``: results of one tile, both (rows, columns).

    A kernel of more than 3x3 taps is cut into blocks of that many, behind whose last taps zeros
    stand: each block reads the pixels of a tile from its own first tap on. All have the same
    transforms, so that their products are summed as those of further channels are.
    """

    kernel: tuple[int, int]
    tile: tuple[int, int]

    @property
    def blocks(self) -> tuple[int, int]:
        """Blocks of taps, rows and columns of them."""
        return -(-self.kernel[0] // TAPS), -(-self.kernel[1] // TAPS)

    @property
    def patch(self) -> tuple[int, int]:
        """The pixels that a tile reads for a block of taps; as many are its frequencies."""
        rows, columns = (0 if taps == 1 else TAPS - 1 for taps in self.kernel)
        return self.tile[0] + rows, self.tile[1] + columns

    @property
    def frequency_count(self) -> int:
        """How many products each pair of channels has in the place of those of a block's taps."""
        return math.prod(self.patch)

    def depth(self, channels: int) -> int:
        """How many products are summed for a frequency: those of all channels and blocks."""
        return math.prod(self.blocks) * channels


def shape_of(statement: Winograd) -> WinogradShape:
    """The shape of a statement."""
    return WinogradShape(statement.kernel, statement.tile)


def plane_of(shape: Shape) -> tuple[Dim, Dim]:
    """Rows and columns of an image ``[N, C, ..]``; pixels along one axis are a row."""
    rows, columns = (1, *shape[2:])[-2:]
    return rows, columns


def tile_counts(extents: tuple[Dim, Dim], shape: WinogradShape) -> tuple[Dim, Dim]:
    """Rows and columns of tiles that cover an image."""
    return ceil_div(extents[0], shape.tile[0]), ceil_div(extents[1], shape.tile[1])


def tile_count(images: Dim, extents: tuple[Dim, Dim], shape: WinogradShape) -> Dim:
    """The tiles of all images."""
    return dim_mul(images, dim_product(tile_counts(extents, shape)))


def chains_of_part(depth: int, shape: WinogradShape) -> int:
    """The chains that make up the sum of a part of the depth."""
    is_small = shape.frequency_count <= _SMALL_FREQUENCIES_MAX
    return 1 if is_small or depth < _CHAINS_DEPTH_MIN else _CHAINS_OF_PART


@dataclass(frozen=True, slots=True)
class TileBlocks:
    """``tiles`` of a block, a multiple of ``registers.rows``; ``cost`` of all blocks, in steps of
    one tile's sums."""

    tiles: int
    registers: RegisterTile
    cost: float = 0.0


@cache
def choose_blocks(
    tiles: Dim, depth: int, columns: int, shape: WinogradShape, target: KernelTarget
) -> TileBlocks:
    """The block that costs least for so many tiles; of an unknown number the largest one."""
    lanes = target.f32_lanes
    panels = -(-columns // panel_columns("f32"))
    vectors = _vectors(panels, lanes)
    is_held = holds_sums(depth, columns, shape, target)
    has_registers = target.vector_register_count >= _HELD_REGISTERS_MIN
    adds = is_held or (has_registers and chains_of_part(depth, shape) > 1)  # in registers
    most = _BLOCK_BYTES_MAX // (4 * shape.frequency_count * depth)
    most = min(most, _HELD_BLOCK_TILES_MAX if is_held else _BLOCK_TILES_MAX)
    rows_max = (target.vector_register_count - 2) // (vectors * (1 + adds)) - 1
    rows_max = min(_ROWS_MAX, rows_max)
    candidates = [
        TileBlocks(rows * groups, RegisterTile(rows, vectors))
        for rows in range(min(_HELD_ROWS_MIN if adds else _ROWS_MIN, rows_max), rows_max + 1)
        for groups in range(1, max(1, most // rows) + 1)
    ]
    if not isinstance(tiles, int):
        return max(candidates, key=lambda each: (each.tiles, each.registers.rows))
    again = 0 if is_held else _BLOCK_COST_TILES
    costed = [
        replace(each, cost=_cost(tiles, each, rows_max if adds else _ROWS_MAX, again))
        for each in candidates
    ]
    return min(costed, key=lambda each: (each.cost, each.tiles))


def holds_sums(depth: int, columns: int, shape: WinogradShape, target: KernelTarget) -> bool:
    """Whether a register tile goes through the whole depth at once, its sums of chains in
    registers; else it goes through a quarter of it, and the sums of a block wait in scratch."""
    weights_bytes = 4 * shape.frequency_count * depth * columns
    is_near = depth <= _HELD_DEPTH_MAX and weights_bytes <= _HELD_WEIGHTS_BYTES_MAX
    return is_near and target.vector_register_count >= _HELD_REGISTERS_MIN


def _vectors(panels: int, lanes: int) -> int:
    """Vectors of a unit: whole panels, two of them or three where that leaves none over."""
    per_panel = panel_columns("f32") // lanes
    if per_panel > 1:
        return per_panel
    return 2 if panels % 2 == 0 else 3 if panels % 3 == 0 else 1


def _cost(tiles: int, blocks: TileBlocks, rows_best: int, again: float) -> float:
    """Steps of all tiles; a register tile of ``rows_best`` has none to spare, and each block costs
    ``again`` more."""
    rows, vectors = blocks.registers.rows, blocks.registers.vectors
    whole, rest = divmod(tiles, blocks.tiles)
    groups = whole * (blocks.tiles // rows) + -(-rest // rows)
    per_tile = cycles_of_step(rows_best, vectors) / rows_best
    return groups * cycles_of_step(rows, vectors) / per_tile + again * (whole + (rest > 0))


@dataclass(frozen=True, slots=True)
class WinogradScratch:
    """Scratch of a thread, in elements: the block's image in frequencies, ``values_pitch`` from one
    to the next, then from ``products_offset`` on its products with the columns of a unit."""

    values_pitch: int
    products_offset: int
    products_pitch: int
    size_bytes: int


def scratch_of(block: int, depth: int, width: int, shape: WinogradShape) -> WinogradScratch:
    """Lay out the scratch of a unit with ``width`` columns."""
    values_pitch, products_pitch = block * depth + _PITCH_SPARE, block * width + _PITCH_SPARE
    products_offset = shape.frequency_count * values_pitch
    count = products_offset + shape.frequency_count * products_pitch
    return WinogradScratch(values_pitch, products_offset, products_pitch, 4 * count)
