"""Register-tiled contractions with a fused epilogue, for convolutions and matrix products.

In: a group, the matrix view of its anchor. Out: its loop program. Not done here: the view itself
(``kinds.conv``, ``kinds.matmul``), packing of B (``packing``: the fused graph's constants are
already panels).

A constant B is packed in panels ``[group][panel][k][NB]``, NB = ``panel_columns``, of 16-bit
integers ``[panel][k / 2][NB][2]``, of 8-bit ones ``[panel][k / 4][NB][4]``, with zeros behind the
depth of each tap; a B made at run time is read in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ingot_compiler.ir.dims import (
    Dim,
    dim_add,
    dim_floordiv,
    dim_min,
    dim_mod,
    dim_mul,
    dim_product,
    substitute,
    symbol,
)
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.ir.types import DType, dtype_size_bytes
from ingot_compiler.kernels.anchored_group import ACCUMULATOR, AnchoredGroup
from ingot_compiler.kernels.matrix_tiles import matrix_tile, rows_of_block
from ingot_compiler.kernels.products.float_parts import FloatParts
from ingot_compiler.kernels.products.turns import PANEL, PANELS_TOGETHER, in_turns
from ingot_compiler.kernels.strassen_scratch import scratch_of
from ingot_compiler.kernels.team_tiles import choose_team_tile
from ingot_compiler.kernels.tiles import (
    choose_row_block,
    choose_tile,
    lanes_of,
    panel_columns,
    sum_dtype,
)
from ingot_compiler.lowering.groups.space import Run, Space, ceil_div
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops.loop_blocks import is_turned_whole, turned_elements
from ingot_compiler.lowering.loops.loop_parts import PackedPanels, RegisterTile, SplitFactors, Team
from ingot_compiler.lowering.loops.program import Contraction, LoopProgram, Statement
from ingot_compiler.lowering.loops.strassen import StrassenShape
from ingot_runtime.lazy_dataclass import dataclass

# A B that stays in L2 beside the rows: iterate rows outside, panels inside.
_SMALL_B_BYTES = 192 * 1024
_CACHED_ELEMENTS_MAX = 1 << 18  # 1 MiB of f32
_FEW_REGISTERS, _OTHER_REGISTERS = 16, 2  # of these: an element of A, a product
_ROWS_IN_CHAINS = 3  # fewer sums beside each other than a multiply-add has cycles
_ADDENDS = 2  # operand of a matmul with a packed B
Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Panels:
    """B is packed, with so many of its rows ``together``."""

    together: int = 1


@dataclass(frozen=True, slots=True)
class PitchedRows:
    """B lies in rows of contiguous columns; ``base``, over ``g`` and the taps, is the first of a tap,
    ``pitch`` the distance of two."""

    base: Dim
    pitch: Dim


@dataclass(frozen=True, slots=True)
class TurnedColumns:
    """B lies in columns of contiguous elements; ``base``, over ``g``, is the first one, ``pitch``
    the distance of two. They are turned in registers."""

    base: Dim
    pitch: Dim


TapSpans = Callable[[Dim, Dim, Dim], Mapping[str, tuple[Dim, Dim]]]
"""(product, first row, last row) -> the first tap along an axis, and how many there are."""


@dataclass(frozen=True, slots=True)
class Product:
    """The matrix view of a contraction: ``outer`` independent products of rows x columns, summed
    over the taps (outer to inner) and the depth.

    ``a_index`` is over ``g`` (the product), ``row``, the taps and ``k``. ``axes`` are those of the
    anchor's result that products, rows and columns enumerate; the rows and columns of product ``g``
    start at ``row_shift`` and ``column_shift``, and ``place`` is what enumerates the products'
    axes. Rows lie evenly apart in A in each ``run`` of them, or everywhere (0).

    ``spans``: which taps count, where that depends on the product and on the rows of a unit, which
    are those of one tile. ``has_one_b``: all products do. ``factors``: which operands of the anchor
    A and B are.
    """

    outer: Dim
    rows: Dim
    columns: Dim
    taps: tuple[tuple[str, Dim], ...]
    depth: Dim
    a_index: Dim
    b: Panels | PitchedRows | TurnedColumns
    axes: tuple[Axes, Axes, Axes]
    row_shift: Dim = 0
    column_shift: Dim = 0
    place: Dim = symbol("g")
    run: Dim = 0
    has_one_b: bool = False
    spans: TapSpans | None = None
    factors: tuple[int, int] = (0, 1)

    @property
    def total_depth(self) -> Dim:
        """Number of the summands of an element."""
        return dim_mul(dim_product(tuple(extent for _, extent in self.taps)), self.depth)

    @property
    def row_pitch(self) -> Dim:
        """Elements of A from the first row to the second."""
        first, second = (substitute(self.a_index, {"row": row}) for row in (0, 1))
        return dim_add(second, dim_mul(first, -1))

    @property
    def tap(self) -> Dim:
        """Index of a tap, outer to inner."""
        flat: Dim = 0
        for name, extent in self.taps:
            flat = dim_mul(flat, extent) + symbol(name)
        return flat


@dataclass(frozen=True, slots=True)
class _Units:
    """How the parallel index enumerates (outer, panel, row block)."""

    extent: Dim
    outer: Dim
    panel: Dim
    row_start: Dim

    def of_product(self, index: Dim) -> Dim:
        """An index over ``g`` in the product of this unit."""
        return substitute(index, {"g": self.outer})


@dataclass(frozen=True, slots=True)
class PartsOfA:
    """The parts that are the factors of a product, which is over their places; ``plain_index``:
    that of A itself, over the same symbols."""

    float_parts: FloatParts
    plain_index: Dim


def contraction_program(
    anchored: AnchoredGroup,
    target: KernelTarget,
    product: Product,
    parts: PartsOfA | None = None,
    strassen: StrassenShape | None = None,
) -> LoopProgram:
    """Assemble the program of a group whose anchor is ``product``, of ``parts`` of A and B where
    they are given, or by ``strassen``'s tiles."""
    a, b = map(anchored.operand, product.factors)
    a = parts.float_parts.parts[0] if parts else a
    dtype = sum_dtype(a.type.dtype)
    together = product.b.together if isinstance(product.b, Panels) else 1
    factors = a.type.dtype, b.type.dtype
    matrix = matrix_tile(product.rows, product.depth, factors, together, target)
    assert matrix or parts is None, "parts are multiplied in tiles alone"
    team = _team(product, target, dtype)
    tile = team or matrix or _register_tile(product, factors, together, target)
    block = tile.rows
    if team is None and product.spans is None and target.team_units == 1:
        block = choose_row_block(product.rows, product.columns, tile, target, dtype)
    if strassen is not None:
        tile, block = RegisterTile(strassen.rows, strassen.vectors), strassen.block
    width = tile.vectors * lanes_of(dtype, target)
    panels = packed_panels(anchored, product, dtype)
    rows_near, turns = block, parts.float_parts.turns if parts else 1
    if matrix is not None:
        element_bytes = dtype_size_bytes(a.type.dtype) * anchored.method.parts
        rows_near = _rows_near(product, turns, block, element_bytes, target)
    keeps_rows = _is_b_small(product, b.type.dtype) or strassen is not None or rows_near < block
    block = rows_near
    unit_width = width * (PANELS_TOGETHER if turns > 1 else 1)
    if team is None:
        units = _units(product, unit_width, block, rows_outside=keeps_rows)
    else:
        units = _team_units(product, width, block, target.team_units, rows_outside=keeps_rows)
    column_start = dim_mul(units.panel, unit_width)
    if turns > 1:
        column_start += dim_mul(symbol(PANEL), width)
    taps, moved = _taps_inside(product, units, block)
    statement = Contraction(
        "row", product.rows, units.row_start, block,
        "column", product.columns, column_start,
        taps, "k", product.depth,
        anchored.buffers.number(a), substitute(units.of_product(product.a_index), moved),
        anchored.buffers.number(b), substitute(b_index(product, units.outer, panels), moved), panels,
        dtype, ACCUMULATOR, anchored.epilogue(_result_space(anchored, product, units)), tile,
        None if team is None else Team(target.team_units, dim_mod(symbol("p"), target.team_units)),
        matrix is not None,
        together > 1 and factors == ("bf16", "bf16") and target.rounds_pairs_to_odd,
        _split_factors(anchored, parts, units, moved),
        None,
        strassen.tile if strassen else None,
        isinstance(product.b, TurnedColumns),
    )  # fmt: skip
    work = dim_mul(dim_mul(product.total_depth, width), block)
    grain = grain_for(dim_floordiv(work, 16 * together))
    scratch = _scratch_bytes(statement, product, lanes_of(dtype, target))
    body = _in_turns(anchored, parts, statement, units.panel)
    return finish_program(anchored.buffers, body, units.extent, grain, scratch)


def _in_turns(
    anchored: AnchoredGroup, parts: PartsOfA | None, statement: Contraction, panel: Dim
) -> tuple[Statement, ...]:
    """A contraction, or one for each turn over the panels of a unit."""
    if parts is None or not parts.float_parts.sums:
        return (statement,)
    (sums,) = map(anchored.buffers.number, parts.float_parts.sums)
    return tuple(in_turns(statement, parts.float_parts.turns, sums, panel))


def _rows_near(
    product: Product, turns: int, block: int, element_bytes: int, target: KernelTarget
) -> int:
    """Rows of a unit of tiles that are multiplied by one instruction."""
    depth = dim_floordiv(product.total_depth, turns)
    return rows_of_block(block, depth, product.columns, element_bytes, target)


def _scratch_bytes(statement: Contraction, product: Product, lanes: int) -> Dim:
    if is_turned_whole(statement):
        return dim_mul(turned_elements(statement, lanes), dtype_size_bytes(statement.dtype))
    if statement.strassen is not None:
        return scratch_of(statement.row_block, product.total_depth).size_bytes
    return 0


def _register_tile(
    product: Product, factors: tuple[DType, DType], together: int, target: KernelTarget
) -> RegisterTile:
    """Rows and vectors of sums that registers hold; of one row as its weights want it."""
    a, b = factors
    if isinstance(product.b, TurnedColumns):
        in_registers = _tile_of_turned(product, target)
        if in_registers is not None:
            return in_registers
    one_row = _tile_of_one_row(product, b, target) if product.rows == 1 else None
    pitch_bytes = dim_mul(product.row_pitch, dtype_size_bytes(a))
    return one_row or choose_tile(
        product.rows, product.columns, target, sum_dtype(a), together, pitch_bytes,
        product.run, product.total_depth,
    )  # fmt: skip


def _is_b_small(product: Product, dtype: DType) -> bool:
    """Whether the second cache holds B beside rows, so that these are better kept."""
    count = typical(dim_mul(product.total_depth, product.columns))
    return count * dtype_size_bytes(dtype) <= _SMALL_B_BYTES


def _tile_of_one_row(product: Product, dtype: DType, target: KernelTarget) -> RegisterTile | None:
    """One vector on a machine that runs thousands of units, which are enough then; of large weights
    as many panels as there are registers for, since a core reads streams beside each other sooner
    than a few; None: what the cost model says, which keeps a register for each vector of B."""
    if target.team_units > 1:
        return RegisterTile(1, 1)
    elements = dim_mul(product.total_depth, product.columns)
    is_large = isinstance(elements, int) and elements > _CACHED_ELEMENTS_MAX
    if not is_large or dtype != "f32" or not isinstance(product.b, Panels):
        return None
    vectors = panel_columns(dtype) // lanes_of(dtype, target)
    panels = (target.vector_register_count - _OTHER_REGISTERS) // max(vectors, 1)
    is_short = target.vector_register_count <= _FEW_REGISTERS
    return RegisterTile(1, panels * vectors) if is_short and panels and vectors else None


def _tile_of_turned(product: Product, target: KernelTarget) -> RegisterTile | None:
    """Rows that have a register each share a turned block; few have two vectors, since a
    multiply-add of one waits for that before. None for more rows, or an open number, of a known
    depth: they share what is turned once."""
    most = max(target.vector_register_count - _OTHER_REGISTERS, 1) // 2
    rows, columns = product.rows, product.columns
    if not isinstance(rows, int) or rows > most:
        if isinstance(product.total_depth, int):
            return None
        rows = most
    fits = not isinstance(columns, int) or columns > target.f32_lanes
    return RegisterTile(max(1, rows), 2 if fits and rows <= _ROWS_IN_CHAINS else 1)


def _split_factors(
    anchored: AnchoredGroup, parts: PartsOfA | None, units: _Units, moved: Mapping[str, Dim]
) -> SplitFactors | None:
    """Where the lower parts are, and A itself."""
    if parts is None:
        return None
    numbers, found = anchored.buffers.number, parts.float_parts
    lower, weights = (tuple(map(numbers, each)) for each in (found.parts[1:], found.weights))
    plain_index = substitute(units.of_product(parts.plain_index), moved)
    return SplitFactors(lower, weights, anchored.number(0), plain_index, numbers(found.fits))


def _taps_inside(
    product: Product, units: _Units, block: int
) -> tuple[tuple[tuple[str, Dim], ...], Mapping[str, Dim]]:
    """The taps that a unit has, and what their names stand for."""
    if product.spans is None:
        return product.taps, {}
    last = dim_min(units.row_start + block, product.rows) - 1
    spans = product.spans(units.outer, units.row_start, last)
    taps = tuple((name, spans[name][1]) for name, _ in product.taps)
    return taps, {name: start + symbol(name) for name, (start, _) in spans.items()}


def _team(product: Product, target: KernelTarget, dtype: DType) -> RegisterTile | None:
    """The tile of each unit where a team computes the product: what the units sum is the same, an
    element at a time."""
    if product.has_one_b or (isinstance(product.b, Panels) and product.b.together > 1):
        return None
    return choose_team_tile(product.outer, product.rows, product.columns, target, dtype)


def _team_units(
    product: Product, width: int, row_block: int, team_units: int, *, rows_outside: bool
) -> _Units:
    """The tile of each unit, where ``team_units`` units beside each other have the same columns,
    and row blocks that follow one another."""
    teams = _units(product, width, row_block * team_units, rows_outside=rows_outside)
    index, place = (each(symbol("p"), team_units) for each in (dim_floordiv, dim_mod))
    outer, panel, start = (
        substitute(each, {"p": index}) for each in (teams.outer, teams.panel, teams.row_start)
    )
    row_start = start + dim_mul(place, row_block)
    return _Units(dim_mul(teams.extent, team_units), outer, panel, row_start)


def _units(product: Product, width: int, row_block: int, *, rows_outside: bool) -> _Units:
    index = symbol("p")
    panels = ceil_div(product.columns, width)
    blocks = ceil_div(product.rows, row_block)
    if product.has_one_b:  # a panel is read for all products that share it
        per_panel = dim_mul(product.outer, blocks)
        within, panel = dim_mod(index, per_panel), dim_floordiv(index, per_panel)
        row_unit, outer = _split(within, blocks)
        return _Units(dim_mul(panels, per_panel), outer, panel, dim_mul(row_unit, row_block))
    per_outer = dim_mul(panels, blocks)
    within = dim_mod(index, per_outer) if product.outer != 1 else index
    outer = dim_floordiv(index, per_outer) if product.outer != 1 else 0
    if rows_outside:
        panel, row_unit = _split(within, panels)
    else:
        row_unit, panel = _split(within, blocks)
    return _Units(dim_mul(product.outer, per_outer), outer, panel, dim_mul(row_unit, row_block))


def _split(within: Dim, fast: Dim) -> tuple[Dim, Dim]:
    """(index of the fast dimension, index of the slow one)."""
    if fast == 1:
        return 0, within
    return dim_mod(within, fast), dim_floordiv(within, fast)


def packed_panels(anchored: AnchoredGroup, product: Product, dtype: DType) -> PackedPanels | None:
    """How B lies, if it is packed."""
    b, width = product.b, panel_columns(dtype)
    if not isinstance(b, Panels):
        return None
    taps = dim_product(tuple(extent for _, extent in product.taps))
    addends = anchored.number(_ADDENDS) if anchored.method.has_addends else None
    step = dim_mul(taps, _tap_step(product, b, width))
    return PackedPanels(width, step, b.together, addends)


def _tap_step(product: Product, b: Panels, width: int) -> Dim:
    """Elements of a panel that belong to one tap."""
    return dim_mul(ceil_div(product.depth, b.together), b.together * width)


def b_index(product: Product, outer: Dim, panels: PackedPanels | None) -> Dim:
    """Where B has a row and a column of product ``outer``."""
    column = symbol("column")
    if isinstance(product.b, TurnedColumns):
        base = substitute(product.b.base, {"g": outer})
        return base + dim_mul(column, product.b.pitch) + symbol("k")
    if isinstance(product.b, PitchedRows):
        row = dim_mul(symbol("k"), product.b.pitch)
        return substitute(product.b.base, {"g": outer}) + row + column
    assert panels
    width, together, k = panels.columns, panels.together, symbol("k")
    first = 0 if product.has_one_b else dim_mul(outer, ceil_div(product.columns, width))
    base = dim_mul(first + dim_floordiv(column, width), panels.step)
    base = base + dim_mul(product.tap, _tap_step(product, product.b, width))
    row = dim_mul(dim_floordiv(k, together), together * width) + dim_mod(k, together)
    return base + row + dim_mul(together, dim_mod(column, width))


def _result_space(anchored: AnchoredGroup, product: Product, units: _Units) -> Space:
    outer_axes, row_axes, column_axes = product.axes
    row, column = (
        symbol(name) + units.of_product(shift)
        for name, shift in (("row", product.row_shift), ("column", product.column_shift))
    )
    runs = [Run(row_axes, row), Run(column_axes, column)]
    if outer_axes:
        runs.append(Run(outer_axes, units.of_product(product.place)))
    return Space(anchored.result.shape, tuple(runs))
