"""The rows of one panel of a contraction, register tile by register tile.

In: ``Unit`` and ``Panel``. Out: sums and their epilogue. Not done here: the panels
(``contraction``), the sum itself (``multiply``).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.blocks.epilogue import (
    Columns,
    Results,
    Rows,
    emit_epilogue,
)
from ingot_compiler.codegen.emit.blocks.products.accumulators import (
    AccumulatorTile,
    Pointers,
    hidden,
    widened,
)
from ingot_compiler.codegen.emit.blocks.products.contraction_unit import Panel, Unit
from ingot_compiler.codegen.emit.blocks.products.matrix_tiles import emit_matrix_tiles
from ingot_compiler.codegen.emit.blocks.products.multiply import emit_sum
from ingot_compiler.codegen.emit.blocks.products.next_panel import CACHED_ELEMENTS_MAX, next_panel
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lanes import known_tail_mask
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.dims import (
    dim_min,
    dim_mod,
    dim_mul,
)
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.kernels.row_pitch import may_share_address, row_pitch
from ingot_compiler.lowering.loops.loop_blocks import is_turned_whole
from ingot_compiler.lowering.loops.program import Contraction

# Measured on a Zen 4: one row times weights from DRAM takes 0.87 of the time, from L3 up to 1.2.
# Two steps ahead into L1 would take 0.8 from L3, but 1.01 to 1.07 for a token of decoders. Rows of
# bytes are a quarter as long: twice as many take 0.89 to 0.94 of the time from DRAM.
_STEPS_AHEAD = {"f32": 32, "bf16": 32, "f16": 32, "i8": 64, "u8": 64}
_LANES_OF_OPERANDS = 16  # AVX-512: an operand in memory may be one element for all lanes
_FEW = 6  # rows that have a tile of their own


def emit_rows(unit: Unit, panel: Panel) -> None:
    """Emit all row tiles of one panel, whose column is bound."""
    statement, context = unit.statement, unit.context
    if statement.in_matrix_tiles:
        emit_matrix_tiles(unit, panel)
        return
    left = dim_min(statement.row_block, statement.rows - statement.row_start)
    count, start = emit_index(context, left), emit_index(context, statement.row_start)
    if _has_whole_tiles(statement):
        _emit_whole_tiles(unit, panel, start, count)
    elif count.integer is not None:
        whole = count.integer // statement.tile.rows * statement.tile.rows
        _emit_whole_tiles(unit, panel, start, i64(whole))
        if whole < count.integer:
            _emit_tile(unit, panel, context.writer.add(start, i64(whole)), count.integer - whole)
    elif isinstance(statement.rows, int):
        _emit_tiles_and_rest(unit, panel, start, count, statement.rows)
    elif _is_row_of_pixels(unit):
        _emit_pixels(unit, panel, start, count)
    else:
        _emit_clamped_tiles(unit, panel, start, count)


def _has_whole_tiles(statement: Contraction) -> bool:
    """Whether every unit has whole tiles alone, which may be seen of an open number of rows too."""
    sizes = (statement.row_start, statement.row_block, statement.rows)
    return all(dim_mod(size, statement.tile.rows) == 0 for size in sizes)


def _is_row_of_pixels(unit: Unit) -> bool:
    """Whether rows are pixels beside one another: many, and evenly apart."""
    pitch = coefficient(unit.a_index, unit.statement.row)
    return bool(unit.statement.taps) and isinstance(pitch, int)


def _emit_pixels(unit: Unit, panel: Panel, start: LlvmValue, count: LlvmValue) -> None:
    """Emit whole tiles, which have one address, then one that clamps to the last row."""
    w, height = unit.context.writer, unit.statement.tile.rows
    left = w.binary("urem", count, i64(height))
    whole = w.sub(count, left)
    _emit_whole_tiles(unit, panel, start, whole)
    rest = w.add(start, whole)
    w.if_then(w.compare("ne", left, ZERO), lambda: _emit_tile(unit, panel, rest, height, left))


def _emit_tiles_and_rest(
    unit: Unit, panel: Panel, start: LlvmValue, count: LlvmValue, rows: int
) -> None:
    """Emit whole tiles, then the rows that are left: none, or ``rows % tile.rows``, since blocks
    are multiples of tiles."""
    w, height = unit.context.writer, unit.statement.tile.rows
    left = w.binary("urem", count, i64(height))
    whole, is_left = w.sub(count, left), w.compare("ne", left, ZERO)
    if rows >= height:
        _emit_whole_tiles(unit, panel, start, whole)
    rest = rows % height
    if rest:
        w.if_then(is_left, lambda: _emit_tile(unit, panel, w.add(start, whole), rest))


def _emit_whole_tiles(unit: Unit, panel: Panel, start: LlvmValue, count: LlvmValue) -> None:
    w, height = unit.context.writer, unit.statement.tile.rows
    for_each(w, ZERO, count, height, lambda row: _emit_tile(unit, panel, w.add(start, row), height))


def _emit_clamped_tiles(unit: Unit, panel: Panel, start: LlvmValue, count: LlvmValue) -> None:
    """Emit tiles that clamp to the last row. Of a matrix, whose rows may be few, those that a lower
    tile takes are left to it: all in one, for each reads the whole panel. The rows of taps are
    pixels, which are many."""
    w, heights = unit.context.writer, _heights(unit)
    done: LlvmValue = ZERO
    for rows, lower in zip(heights, (*heights[1:], 0), strict=True):
        end = w.sub(count, i64(lower)) if lower else count
        done = _emit_clamped(unit, panel, (start, done, end, count), rows)


def _heights(unit: Unit) -> tuple[int, ...]:
    """The heights of tiles of an open number of rows, falling: none is computed in vain of few
    rows, a quarter at most of more."""
    height = unit.statement.tile.rows
    if unit.statement.taps:
        return (height,)
    heights = [height]
    while (lower := min(heights[-1] - 1, max(_FEW, (3 * heights[-1] + 1) // 4))) > 1:
        heights.append(lower)
    return tuple(heights)


def _emit_clamped(
    unit: Unit, panel: Panel, places: tuple[LlvmValue, LlvmValue, LlvmValue, LlvmValue], height: int
) -> LlvmValue:
    """Emit the tiles of one height that begin before an end; give the first row behind them.
    ``places``: where the rows begin, how many are done, that end, how many there are."""
    w = unit.context.writer
    start, done, end, count = places

    def turn(row: LlvmValue, _: Operands) -> Operands:
        valid = w.intrinsic("smin", i64(height), w.sub(count, row))
        _emit_tile(unit, panel, w.add(start, row), height, valid if height > 1 else None)
        return (w.add(row, i64(height)),)

    (behind,) = w.loop(done, end, height, (done,), turn)
    return behind


def _emit_tile(
    unit: Unit, panel: Panel, row: LlvmValue, count: int, valid: LlvmValue | None = None
) -> None:
    """Emit one register tile and its epilogue; `valid` rows of it exist (None: all)."""
    statement, context = unit.statement, unit.context
    pointers = row_pointers(unit, row, count, valid)
    w, last = context.writer, _last_lanes(panel, pointers)
    tile = AccumulatorTile(
        w, pointers, panel.b, unit.lanes, unit.factors, _mask_of_b(unit, panel, last),
        last_lanes=last, a_again=_pointers_again(unit, pointers, panel.vectors, last),
        steps_ahead=_steps_ahead(unit),
        b_addends=_narrowed(w, panel.addends, last), b_columns=panel.columns,
        next_panel=next_panel(unit, panel.b, row) if count == statement.tile.rows else None,
    )  # fmt: skip
    sums = widened(w, emit_sum(tile, unit.sum, panel.starts * count), unit.lanes)
    rows = Rows(statement.row, row, count, valid)
    columns = Columns(statement.column, panel.column, panel.vectors, unit.lanes, panel.mask)
    results = Results(rows, columns, statement.accumulator, statement.dtype, statement.epilogue)
    emit_epilogue(context, results, sums)


def _narrowed(w: Writer, addends: Operands, last_lanes: int) -> Operands:
    """Return the addends, the last one cut to ``last_lanes`` lanes (0: not cut)."""
    if not addends or not last_lanes:
        return addends
    return *addends[:-1], w.shuffle(addends[-1], range(last_lanes))


def _pointers_again(
    unit: Unit, pointers: Pointers, vectors: int, last_lanes: int
) -> tuple[Pointers, ...]:
    """Rows of A by other pointers for vectors of B behind the first: for the last one where it has
    fewer lanes; for all where B is widened and multiply-adds take an element from memory. On Zen 4,
    which begins one multiply-add in a cycle, the unit that brings an element into all lanes also
    widens, and is what there is too little of. Where two begin, their operands would be more loads
    than there are: 0.88 to 0.97 of the time without them on an Emerald Rapids, 0.905 on Zen 5."""
    w, factors, is_one = unit.context.writer, unit.factors, len(dict(pointers)) == 1
    is_widened = factors.a == "f32" != factors.b and factors.together == 1
    is_whole = w.target.f32_lanes == _LANES_OF_OPERANDS and w.target.arch == "x86-64"
    begins_one = all(each.multiply_adds == 1 for each in w.target.processors)
    count = 1 if last_lanes else 0
    if is_widened and is_whole and is_one and begins_one and len(pointers) > 1:
        count = max(count, vectors - 1)
    return tuple(hidden(w, pointers) for _ in range(count))


def _last_lanes(panel: Panel, pointers: Pointers) -> int:
    """The lanes of the last vector, if fewer: where all rows have one pointer, a second one for
    them takes one register."""
    return panel.last_lanes if len({pointer for pointer, _ in pointers}) == 1 else 0


def _steps_ahead(unit: Unit) -> int:
    """How far B is prefetched into L2: where one row is multiplied, each element is needed once,
    and a large B comes from memory. Not in a recurrence, which reads it again in each step; its A
    is what the kernel wrote before."""
    statement = unit.statement
    if statement.rows != 1 or not unit.context.read_only[statement.a]:
        return 0
    size = dim_mul(statement.columns, statement.depth_extent)
    for _, extent in statement.taps:
        size = dim_mul(size, extent)
    is_large = isinstance(size, int) and size > CACHED_ELEMENTS_MAX
    return _STEPS_AHEAD.get(unit.factors.b, 0) if is_large and unit.factors.sum == "f32" else 0


def _mask_of_b(unit: Unit, panel: Panel, last_lanes: int) -> LlvmValue | None:
    """The lanes of the last vector that may be read: all of a B that is packed, or turned whole."""
    columns = unit.statement.columns
    if unit.statement.b_panels or is_turned_whole(unit.statement):
        return None
    if not last_lanes or not isinstance(columns, int):
        return panel.mask
    return known_tail_mask(columns % unit.lanes, last_lanes)


def row_pointers(unit: Unit, row: LlvmValue, count: int, valid: LlvmValue | None) -> Pointers:
    """Return the rows of A: one pointer for all where the pitch is known. Tiles begin at multiples
    of their height."""
    w, statement = unit.context.writer, unit.statement
    pitch = coefficient(unit.a_index, statement.row)
    is_aligned = dim_mod(statement.row_start, statement.tile.rows) == 0
    if pitch is None and is_aligned and may_share_address(unit.context.target):
        pitch = row_pitch(unit.a_index, statement.row, statement.tile.rows)
    if valid is None and isinstance(pitch, int):
        base = unit.address_of_a(row)
        return tuple((base, number * pitch) for number in range(count))
    last = None if valid is None else w.add(row, w.sub(valid, i64(1)))
    pointers: list[tuple[LlvmValue, int]] = []
    for number in range(count):
        here = w.add(row, i64(number))
        clamped = here if last is None else w.intrinsic("smin", here, last)
        pointers.append((unit.address_of_a(clamped), 0))
    return tuple(pointers)
