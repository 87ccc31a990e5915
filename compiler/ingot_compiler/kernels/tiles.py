"""Register tiles and row blocks of contractions, from an analytic cost model.

In: extents, which may be symbolic, and a target. Out: ``RegisterTile``, panels, row blocks, the
lanes of a dtype, the length of a block. Not done here: emitting the tiles
(``codegen.emit.blocks``), measuring.

Constants, measured on a 512-bit core with two multiply-add and two load ports (128x768x768, % of
the peak): 6x4 97, 8x3 98, 14x2 96, 12x2 98, 4x6 85-98 (the panel leaves L2 sooner), 7x4 87 (33
registers: spills).
"""

import math
from functools import cache

from ingot_compiler.ir.dims import Dim, dim_mod
from ingot_compiler.ir.types import FLOATS, DType, dtype_size_bits
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.loops.loop_parts import RegisterTile

BLOCK_CHAINS_MAX = 200  # multiply-adds in one block: LLVM is quadratic in its length
MASKED_LOAD_BITS_MIN = 256  # vectors below it have no masked loads: masks must be constants
_PORTS = 2  # multiply-adds, and loads, per cycle
_CHAINS_MIN = 8  # accumulators that hide a latency of 4 cycles on 2 ports
_PANEL_CYCLES = 0.1  # per vector of B and step: what of L2's bandwidth is not hidden
# With 16 registers: 6x2 takes 0.90 to 0.99 of the time of 4x3 (256 bits), as many multiply-adds.
_PANEL_CYCLES_FEW, _FEW_REGISTERS = 0.3, 16
_BROADCAST_CYCLES = 0.05  # per row and step
_ADDRESS_CYCLES = 10  # for where a row of a tile begins, if its rows do not lie evenly apart
_VECTORS_MAX = 8
_ROWS_SYMBOLIC = 840  # stands for unknown extents: divisible by every height up to 8
_UNITS_WANTED = 16  # row blocks x panels: enough to split evenly over threads
_ROW_BLOCK_MAX = 1024
_PIXELS_MAX = 14
_PIXELS_MIN = 7  # sums at once: a multiply-add takes four cycles, and up to two begin in one
_INPUTS = 2  # vectors of an image in flight
_ROWS_MAX = 14
_CACHE_WAY_BYTES, _CACHE_WAYS = 4096, 8  # of processors without a class
_PANEL_BITS = 512
_HALVED_BITS = 512
_TOGETHER: dict[DType, int] = {"i8": 4, "u8": 4, "i16": 2}


def lanes_of(dtype: DType, target: KernelTarget) -> int:
    """Return the number of elements of `dtype` in one vector register."""
    return max(1, target.vector_bits // dtype_size_bits(dtype))


def sum_dtype(dtype: DType) -> DType:
    """Return what products of operands of ``dtype`` are summed in."""
    if dtype in FLOATS:
        return "f64" if dtype == "f64" else "f32"
    return "i32" if dtype_size_bits(dtype) < dtype_size_bits("i32") else dtype


def rows_together(dtype: DType) -> int:
    """Return how many rows of a packed B of ``dtype`` lie beside each other (see
    ``PackedPanels``): what an i32 holds of 8- and 16-bit integers."""
    return _TOGETHER.get(dtype, 1)


def factors_together(a: DType, b: DType) -> int:
    """Return how many rows of a packed B of ``b`` lie beside each other where A is of ``a``: pairs
    where both are bf16, which one instruction multiplies; what is widened to floats lies alone."""
    if (a, b) == ("bf16", "bf16"):
        return 2
    return 1 if a in FLOATS else rows_together(b)


def panel_columns(dtype: DType) -> int:
    """Return the columns of a panel of a packed B whose sums are of ``dtype``.

    A cache line of sums for every target and every number of rows, so that all variants and
    specialisations of a bundle read the same bytes (decision 18).
    """
    return _PANEL_BITS // dtype_size_bits(dtype)


def lanes_of_rest(columns: int, dtype: DType, together: int, target: KernelTarget) -> int:
    """Return in how many lanes the last vector of ``columns`` columns is summed: half a vector
    where that is enough and half the work, as where 512 bits are two times 256."""
    lanes = lanes_of(dtype, target)
    is_halved = target.vector_bits == _HALVED_BITS and dtype in FLOATS and together == 1
    return lanes // 2 if is_halved and 0 < columns % lanes <= lanes // 2 else lanes


@cache
def choose_tile(
    rows: Dim,
    columns: Dim,
    target: KernelTarget,
    dtype: DType = "f32",
    together: int = 1,
    pitch_bytes: Dim = 0,
    run: Dim = 0,
    depth: Dim = 0,
) -> RegisterTile:
    """Choose the register tile of a contraction with `rows` x `columns` results, whose sums are of
    ``dtype`` and take ``together`` products at a time; rows of A begin `pitch_bytes` apart, in each
    ``run`` of them (0: everywhere), and are ``depth`` long with all taps."""
    most = _rows_beside(pitch_bytes, target) if isinstance(pitch_bytes, int) else _ROWS_MAX
    lanes = lanes_of(dtype, target)
    last = (
        lanes_of_rest(columns, dtype, together, target) / lanes if isinstance(columns, int) else 1
    )
    height = max(rows, 1) if isinstance(rows, int) else _ROWS_SYMBOLIC
    width = max(columns, 1) if isinstance(columns, int) else _ROWS_SYMBOLIC * lanes
    is_short = target.vector_register_count <= _FEW_REGISTERS and target.team_units == 1
    panel = _PANEL_CYCLES_FEW if is_short else _PANEL_CYCLES
    candidates = [
        tile
        for tile in _tiles(target, *_registers(target, dtype, together))
        if tile.rows <= height and (tile.vectors - 1) * lanes < width
        if tile.rows <= most
    ]
    address = _ADDRESS_CYCLES / depth if isinstance(depth, int) and depth else 0.0

    def cost(tile: RegisterTile) -> float:
        if dim_mod(run, tile.rows) == 0:
            return _cost(tile, height, width, lanes, last, panel)
        # Rows with an address each have no half vector.
        panels, vectors = (math.ceil(width / (each * lanes)) for each in (tile.vectors, 1))
        products = _cost(tile, height, width, lanes, 1, panel) * vectors / (vectors - 1 + last)
        return products + address * height * panels

    return min(candidates, key=lambda tile: (cost(tile), -tile.vectors, tile.rows))


def choose_row_block(
    rows: Dim, columns: Dim, tile: RegisterTile, target: KernelTarget, dtype: DType = "f32"
) -> int:
    """Choose how many rows one unit of the parallel index covers: a multiple of ``tile.rows``.

    All rows where the panels alone make enough units: a panel of B is then read from memory once.
    """
    if not isinstance(rows, int):
        return tile.rows * max(1, 96 // tile.rows)
    width = tile.vectors * lanes_of(dtype, target)
    panels = max(-(-columns // width), 1) if isinstance(columns, int) else 1
    blocks_wanted = -(-_UNITS_WANTED // panels)
    tiles_per_block = max(1, -(-rows // (blocks_wanted * tile.rows)))
    # A block below four tiles would read the panel too often for what it computes.
    tiles_per_block = max(tiles_per_block, min(4, -(-rows // tile.rows)))
    return tile.rows * min(tiles_per_block, max(1, _ROW_BLOCK_MAX // tile.rows))


@cache
def _rows_beside(pitch_bytes: int, target: KernelTarget) -> int:
    """Return how many rows so far apart may be read at once: those that share a set of a first cache
    beyond its ways push one another out (784x1024x32 on Zen 4, which has 8: 14x2 74 % of the peak,
    6x4 and 8x2 95 %; Zen 5, which has 12, reads 12 such rows at full speed). Where multiply-adds take
    elements of registers, these are loaded seldom enough for the second cache."""
    processors = () if target.multiplies_by_element else target.processors
    caches = [(each.level1_bytes // each.level1_ways, each.level1_ways) for each in processors]
    return min(
        ways * (way_bytes // math.gcd(pitch_bytes, way_bytes)) if pitch_bytes else _ROWS_MAX
        for way_bytes, ways in caches or [(_CACHE_WAY_BYTES, _CACHE_WAYS)]
    )


@cache
def _tiles(target: KernelTarget, per_vector: int, others: int) -> list[RegisterTile]:
    """List the tiles whose accumulators fit the registers beside so many for each vector of B and
    ``others``, or one for each row where multiply-adds take an element of a register."""
    budget = target.vector_register_count - others
    per_row = int(target.multiplies_by_element)
    vectors = (1, 2, 3, 4, 5, 6, _VECTORS_MAX)
    return [
        RegisterTile(r, v)
        for v in vectors
        for r in range(1, _ROWS_MAX + 1)
        if (r + per_vector) * v + per_row * r <= budget
    ]


def _registers(target: KernelTarget, dtype: DType, together: int) -> tuple[int, int]:
    """Return how many registers a step takes for each vector of B, and others: the broadcast, and
    the product where it is not one instruction with the sum; two halves of both operands where four
    bytes are multiplied as two pairs."""
    if together == _TOGETHER["i8"]:
        return (1, 1) if target.multiplies_bytes else (2, 3)
    return (1, 1) if target.has_fma and dtype in FLOATS else (1, 2)


def _cost(
    tile: RegisterTile, rows: int, columns: int, lanes: int, last: float, panel: float
) -> float:
    """Cycles per step of depth for all rows and columns, partial tiles at their own cost; ``last``
    is the part of the last vector that is summed, ``panel`` what a vector of B costs."""
    tiles, rows_left = divmod(rows, tile.rows)
    panels, columns_left = divmod(columns, tile.vectors * lanes)
    vectors_left = -(-columns_left // lanes) - 1 + last if columns_left else 0
    return (
        tiles * panels * cycles_of_step(tile.rows, tile.vectors, panel)
        + tiles * cycles_of_step(tile.rows, vectors_left, panel)
        + panels * cycles_of_step(rows_left, tile.vectors, panel)
        + cycles_of_step(rows_left, vectors_left, panel)
    )


@cache
def cycles_of_step(rows: int, vectors: float, panel: float = _PANEL_CYCLES) -> float:
    """Cycles of one step of depth on one tile, whose last vector may be half a one: the busiest of
    multiply-add ports, load ports and latency."""
    if rows == 0 or vectors == 0:
        return 0.0
    busy = max(rows * vectors, rows + math.ceil(vectors), _CHAINS_MIN) / _PORTS
    return busy + panel * vectors + _BROADCAST_CYCLES * rows


def taps_together(taps: int, target: KernelTarget) -> int:
    """How many weights of a row of a kernel wait in registers at a time: all, or even parts where
    all would leave fewer sums than multiply-adds are under way."""
    registers = target.vector_register_count
    if registers - taps - _INPUTS >= _PIXELS_MIN:
        return taps
    parts = math.ceil(taps / (registers // 2 - 1))
    return math.ceil(taps / parts)


def choose_pixels(extent: Dim, taps: tuple[int, ...], target: KernelTarget) -> int:
    """Choose how many neighbouring pixels of a depthwise row are summed together.

    ``extent`` is the row's length in pixels, ``taps`` the extents of the kernel, outer to inner. As
    many as the registers hold beside weights of one row and two inputs, at most 14, spread evenly.
    """
    inner = taps_together(taps[-1], target) if taps else 1
    largest = max(1, min(_PIXELS_MAX, target.vector_register_count - inner - _INPUTS))
    if not isinstance(extent, int):
        return largest
    groups = -(-max(extent, 1) // largest)
    return -(-max(extent, 1) // groups)
