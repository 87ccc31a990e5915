"""Contractions: ``C = sum over taps and depth of A * B``, in register tiles with a fused epilogue.

In: a ``Contraction`` and the emission context of its kernel. Out: LLVM IR in the kernel's function.
Not done here: choosing the tile (``tiles``), the sum itself (``multiply``), packing B, splitting
over threads.

Every element is one multiply-add chain, so that no tile, tail, row block or thread count changes a
bit. Rows beyond the last are a tile of their own where the extent is known; otherwise they are
clamped to the last row and not stored. Columns beyond the last full panel are a narrower copy, or
go vector by vector where their number is symbolic.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ingot_compiler.backends.host.emit.context import EmitContext
from ingot_compiler.backends.host.emit.index import emit_index
from ingot_compiler.backends.host.emit.kernels.epilogue import Results, emit_epilogue
from ingot_compiler.backends.host.emit.kernels.multiply import (
    AccumulatorTile,
    Axis,
    Factors,
    emit_sum,
    merged_dims,
)
from ingot_compiler.backends.host.emit.memory import emit_address
from ingot_compiler.backends.host.llvm_value import LlvmValue, constant, constants
from ingot_compiler.backends.host.tiles import lanes_of
from ingot_compiler.ir.dims import Dim, coefficient, dim_min, substitute
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.lowering.loops import Contraction


@dataclass(frozen=True, slots=True)
class _Unit:
    """What all tiles of one contraction share; ``a_index`` and ``b_index`` are those of the first
    tap and depth."""

    context: EmitContext
    statement: Contraction
    lanes: int
    factors: Factors
    axes: tuple[Axis, ...]
    a_index: Dim
    b_index: Dim

    @property
    def width(self) -> int:
        """Columns of a full panel."""
        return self.statement.tile.vectors * self.lanes


@dataclass(frozen=True, slots=True)
class _Panel:
    """Columns from ``column``: ``vectors`` vectors, the last one under ``mask`` (None: all lanes);
    ``b`` points to them."""

    column: LlvmValue
    vectors: int
    mask: LlvmValue | None
    b: LlvmValue


def emit_contraction(context: EmitContext, statement: Contraction) -> None:
    """Emit one unit of a contraction: its row block and its panel of columns."""
    unit = _unit(context, statement)
    start = emit_index(context, statement.column_start)
    if isinstance(statement.columns, int):
        _emit_known_columns(unit, statement.columns, start)
    else:
        _emit_symbolic_columns(unit, emit_index(context, statement.columns), start)


def _unit(context: EmitContext, statement: Contraction) -> _Unit:
    loops = (*statement.taps, (statement.depth, statement.depth_extent))
    factors = _factors(context, statement)
    axes = tuple(
        Axis(*(part if isinstance(part, int) else emit_index(context, part) for part in axis))
        for axis in merged_dims(
            loops[:-1] if factors.pairs else loops, statement.a_index, statement.b_index
        )
    )
    zeros: dict[str, Dim] = {name: 0 for name, _ in loops}
    lanes = lanes_of(statement.dtype, context.target)
    a_index, b_index = substitute(statement.a_index, zeros), substitute(statement.b_index, zeros)
    return _Unit(context, statement, lanes, factors, axes, a_index, b_index)


def _factors(context: EmitContext, statement: Contraction) -> Factors:
    """What A and B hold; pairs are seen by the factor of the column."""
    a, b = context.dtypes[statement.a], context.dtypes[statement.b]
    pairs = coefficient(statement.b_index, statement.column) == 2
    beside = [
        coefficient(index, statement.depth) for index in (statement.a_index, statement.b_index)
    ]
    if pairs and not (
        a == b == "i16"
        and (statement.dtype, statement.depth_extent, beside, statement.b_padded)
        == ("i32", 2, [1, 1], True)
    ):
        raise InternalError(
            "pairs of a contraction do not lie beside each other", why=f"A {a} {beside}, B {b}"
        )
    return Factors(a, b, statement.dtype, pairs)


# ---- columns -------------------------------------------------------------------------------------


def _emit_known_columns(unit: _Unit, columns: int, start: LlvmValue) -> None:
    """Emit the full panel, the narrower last one, or a choice between them."""
    rest = columns % unit.width
    vectors, lanes_left = -(-rest // unit.lanes), rest % unit.lanes
    mask = (
        constants([int(lane < lanes_left) for lane in range(unit.lanes)], "i1")
        if lanes_left
        else None
    )

    def full() -> None:
        _emit_panel(unit, start, unit.statement.tile.vectors, None)

    def narrow() -> None:
        _emit_panel(unit, start, vectors, mask)

    if rest == 0:
        full()
    elif columns < unit.width:
        narrow()
    else:
        _emit_choice(unit, columns - unit.width, start, full, narrow)


def _emit_symbolic_columns(unit: _Unit, columns: LlvmValue, start: LlvmValue) -> None:
    """Emit the full panel, and a loop over single vectors for the last one."""
    w = unit.context.writer

    def full() -> None:
        _emit_panel(unit, start, unit.statement.tile.vectors, None)

    def single(column: LlvmValue, _: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        _emit_panel(unit, column, 1, unit.context.tail_mask(column, columns, unit.lanes))
        return ()

    last = w.sub(columns, constant(unit.width, "i64"))
    _emit_choice(unit, last, start, full, lambda: w.loop(start, columns, unit.lanes, (), single))


def _emit_choice(
    unit: _Unit,
    last: LlvmValue | int,
    start: LlvmValue,
    full: Callable[[], None],
    rest: Callable[[], object],
) -> None:
    """Run `full` where the panel at `start` begins at column `last` or before, else `rest`."""
    w = unit.context.writer
    bound = constant(last, "i64") if isinstance(last, int) else last
    if start.integer is not None and bound.integer is not None:
        if start.integer <= bound.integer:
            full()
        else:
            rest()
        return
    then, otherwise, done = w.new_label("full"), w.new_label("rest"), w.new_label("done")
    w.branch_if(w.compare("sle", start, bound), then, otherwise)
    for label, emit in ((then, full), (otherwise, rest)):
        w.start(label)
        emit()
        w.branch(done)
    w.start(done)


def _emit_panel(unit: _Unit, column: LlvmValue, vectors: int, mask: LlvmValue | None) -> None:
    """Emit all row tiles of one panel."""
    context, statement = unit.context, unit.statement
    with context.scope():
        context.bind({statement.column: column})
        b = emit_address(context, statement.b, unit.b_index)
        panel = _Panel(column, vectors, mask, b)
        if isinstance(statement.rows, int):
            _emit_known_rows(unit, panel, statement.rows)
        else:
            _emit_symbolic_rows(unit, panel)


# ---- rows ----------------------------------------------------------------------------------------


def _row_count(unit: _Unit) -> LlvmValue:
    statement = unit.statement
    return emit_index(
        unit.context, dim_min(statement.row_block, statement.rows - statement.row_start)
    )


def _emit_known_rows(unit: _Unit, panel: _Panel, rows: int) -> None:
    """Emit full tiles, then the rows that are left: always ``rows % tile.rows``, since blocks are
    multiples of tiles."""
    w, height = unit.context.writer, unit.statement.tile.rows
    rest, count, start = (
        rows % height,
        _row_count(unit),
        emit_index(unit.context, unit.statement.row_start),
    )
    if count.integer is not None:
        whole, has_rest = constant(count.integer // height * height, "i64"), None
    else:
        left = w.binary("urem", count, constant(height, "i64"))
        whole, has_rest = w.sub(count, left), w.compare("ne", left, constant(0, "i64"))

    def full(row: LlvmValue, _: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        _emit_tile(unit, panel, w.add(start, row), height, None)
        return ()

    def last() -> None:
        _emit_tile(unit, panel, w.add(start, whole), rest, None)

    if rows >= height:
        w.loop(constant(0, "i64"), whole, height, (), full)
    if has_rest is not None and rest:
        w.if_then(has_rest, last)
    elif has_rest is None and count.integer != whole.integer:
        last()


def _emit_symbolic_rows(unit: _Unit, panel: _Panel) -> None:
    """Emit tiles that all clamp to the last row."""
    w, height = unit.context.writer, constant(unit.statement.tile.rows, "i64")
    count, start = _row_count(unit), emit_index(unit.context, unit.statement.row_start)

    def body(row: LlvmValue, _: tuple[LlvmValue, ...]) -> tuple[LlvmValue, ...]:
        valid = w.intrinsic("smin", height, w.sub(count, row))
        _emit_tile(unit, panel, w.add(start, row), unit.statement.tile.rows, valid)
        return ()

    w.loop(constant(0, "i64"), count, unit.statement.tile.rows, (), body)


def _emit_tile(
    unit: _Unit, panel: _Panel, row: LlvmValue, rows: int, valid: LlvmValue | None
) -> None:
    """Emit one register tile and its epilogue; `valid` rows of it exist (None: all)."""
    statement, context = unit.statement, unit.context
    valid = None if rows == 1 else valid
    mask = None if statement.b_padded else panel.mask
    tile = AccumulatorTile(
        _row_pointers(unit, row, rows, valid),
        panel.b,
        panel.vectors,
        unit.lanes,
        unit.factors,
        mask,
    )
    sums = emit_sum(context.writer, tile, unit.axes)
    results = Results(
        statement.row, row, rows, valid, statement.column, panel.column, panel.vectors, unit.lanes, panel.mask,
        statement.accumulator, statement.dtype, statement.epilogue,
    )  # fmt: skip
    emit_epilogue(context, results, sums)


def _row_pointers(
    unit: _Unit, row: LlvmValue, rows: int, valid: LlvmValue | None
) -> tuple[tuple[LlvmValue, int], ...]:
    """Return pointer and displacement of every row of A: one pointer for all where the pitch is
    known."""
    w, context, statement = unit.context.writer, unit.context, unit.statement
    pitch = coefficient(unit.a_index, statement.row)
    if valid is None and isinstance(pitch, int):
        with context.scope():
            context.bind({statement.row: row})
            base = emit_address(context, statement.a, unit.a_index)
        return tuple((base, number * pitch) for number in range(rows))
    last = None if valid is None else w.add(row, w.sub(valid, constant(1, "i64")))
    pointers: list[tuple[LlvmValue, int]] = []
    for number in range(rows):
        here = w.add(row, constant(number, "i64"))
        with context.scope():
            context.bind({statement.row: here if last is None else w.intrinsic("smin", here, last)})
            pointers.append((emit_address(context, statement.a, unit.a_index), 0))
    return tuple(pointers)
