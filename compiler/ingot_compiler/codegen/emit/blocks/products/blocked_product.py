"""Products with a matrix of 4- or 8-bit integers: widened in registers, scaled once per block.

In: a ``BlockedProduct`` and the emission context of its kernel. Out: code in the kernel's
function. Not done here: what becomes of the sums (``epilogue``), packing.

A lane is a column. It holds a word of numbers, one after the other in depth, so that two shifts and
a conversion, or a shift and a table, make a vector of floats, which every row of a tile
multiplies. The sum of an element is that of its blocks, each two chains of multiply-adds (even and
odd numbers) times the scale: so it is for every tile, target and number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ingot_compiler.codegen.emit.blocks.epilogue import (
    Columns,
    Results,
    Rows,
    emit_epilogue,
)
from ingot_compiler.codegen.emit.blocks.products.block_panel import (
    WORD_BITS,
    BlockPanel,
    load_word,
    parameter,
    with_other_signs,
)
from ingot_compiler.codegen.emit.blocks.products.digit_products import digit_rows, emit_digits
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.control import for_each
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lanes import tail_mask
from ingot_compiler.codegen.emit.memory import emit_address
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64, zeros
from ingot_compiler.codegen.llvm_value import LlvmValue, constant, constants
from ingot_compiler.ir.dims import dim_min
from ingot_compiler.kernels.tiles import lanes_of, panel_columns
from ingot_compiler.lowering.loops.program import BlockedProduct

_CHAINS = 2
_ROWS_MAX = {32: 8, 16: 2}
"""Rows of a tile by the number of vector registers."""
_TABLE_BITS, _TABLE_LANES = 4, 16
_LOOKUP = "llvm.x86.avx512.permvar.sf.512"
_STEPS_PER_ROUND = 32  # multiply-adds of a row and vector that are written one after the other


def emit_blocked_product(context: EmitContext, statement: BlockedProduct) -> None:
    """Emit one unit: its rows, tile by tile, times its panel."""
    w, lanes = context.writer, min(lanes_of("f32", context.target), panel_columns("f32"))
    column = emit_index(context, statement.column_start)
    panel = BlockPanel(context, statement, column, lanes)
    left = dim_min(statement.row_block, statement.rows - statement.row_start)
    start, count = emit_index(context, statement.row_start), emit_index(context, left)
    end, at = w.add(start, count), start
    for height in _heights(panel):
        many = w.binary("and", w.sub(end, at), i64(-height))
        stop = w.add(at, many)
        for_each(w, at, stop, height, partial(_emit_tile, panel, height))
        at = stop


def _heights(panel: BlockPanel) -> Iterator[int]:
    """Rows of a tile, less and less."""
    height = _ROWS_MAX.get(panel.context.target.vector_register_count, 1)
    if panel.statement.digits is not None:
        height = digit_rows(panel, panel.statement.digits)
    while height:
        yield height
        height //= 2


def _emit_tile(panel: BlockPanel, height: int, row: LlvmValue) -> None:
    """Emit one tile and its epilogue, vector by vector where the last one is not whole."""
    context, statement = panel.context, panel.statement
    sums = _emit_sums(panel, [panel.writer.add(row, i64(number)) for number in range(height)])
    width = panel_columns("f32")
    rows = Rows(statement.row, row, height)

    def store(first: int, vectors: int, mask: LlvmValue | None) -> None:
        column = panel.writer.add(panel.column, i64(first * panel.lanes))
        columns = Columns(statement.column, column, vectors, panel.lanes, mask)
        results = Results(rows, columns, statement.accumulator, "f32", statement.epilogue)
        chosen = [
            sums[number * panel.vectors + vector]
            for number in range(height)
            for vector in range(first, first + vectors)
        ]
        emit_epilogue(context, results, chosen)

    if isinstance(statement.columns, int) and statement.columns % width == 0:
        store(0, panel.vectors, None)
        return
    columns = emit_index(context, statement.columns)
    for vector in range(panel.vectors):
        column = panel.writer.add(panel.column, i64(vector * panel.lanes))
        first = panel.writer.intrinsic("smin", column, columns)  # it may be beyond the last one
        store(vector, 1, tail_mask(panel.writer, first, columns, panel.lanes))


def _row(panel: BlockPanel, row: LlvmValue) -> LlvmValue:
    context, statement = panel.context, panel.statement
    with context.scope():
        context.bind({statement.row: row})
        return emit_address(context, statement.a, statement.a_index)


def _emit_sums(panel: BlockPanel, rows: list[LlvmValue]) -> Operands:
    """The sums of a tile: the vectors of the first row, then of the next."""
    totals = (zeros("float", panel.lanes),) * (len(rows) * panel.vectors)
    floats = partial(_emit_block, panel, [_row(panel, row) for row in rows])
    body = floats
    if panel.statement.digits is not None:
        body = partial(emit_digits, panel, panel.statement.digits, rows, floats)
    return panel.writer.loop(ZERO, i64(panel.statement.blocks), 1, totals, body)


def _emit_block(
    panel: BlockPanel, rows: list[LlvmValue], block: LlvmValue, totals: Operands
) -> Operands:
    """Add the sums of one block, times its scales."""
    w, vectors = panel.writer, panel.vectors
    zero = [_zero_points(panel, block, vector) for vector in range(vectors)]
    first = w.mul(block, i64(panel.words))
    chains = (zeros("float", panel.lanes),) * (_CHAINS * len(totals))
    together = max(1, _STEPS_PER_ROUND // (WORD_BITS // panel.statement.bits * len(rows)))
    while panel.words % together:
        together -= 1

    def words(index: LlvmValue, carried: Operands) -> Operands:
        for number in range(together):
            word = w.add(w.add(first, index), i64(number))
            carried = _emit_word(panel, rows, word, zero, carried)
        return carried

    found = w.loop(ZERO, i64(panel.words), together, chains, words)
    result: list[LlvmValue] = []
    for number, total in enumerate(totals):
        even, odd = found[_CHAINS * number : _CHAINS * (number + 1)]
        scale = parameter(panel, panel.statement.scales, block, number % vectors)
        result.append(w.fma(w.binary("fadd", even, odd), scale, total))
    return tuple(result)


def _zero_points(panel: BlockPanel, block: LlvmValue, vector: int) -> LlvmValue | None:
    """The zero points of a block as i32 lanes, less the middle if they are unsigned."""
    statement, w = panel.statement, panel.writer
    if statement.zeros is None:
        return None
    codes = parameter(panel, statement.zeros, block, vector)
    half = constant(1 << (statement.bits - 1), "i32", panel.lanes)
    wide = w.convert("zext", codes, "i32")
    flipped = w.binary("xor", wide, half) if statement.signed else wide
    return w.binary("sub", flipped, half)


def _emit_word(
    panel: BlockPanel,
    rows: list[LlvmValue],
    word: LlvmValue,
    zero: list[LlvmValue | None],
    chains: Operands,
) -> Operands:
    """Add the products of one word of each column."""
    w, statement = panel.writer, panel.statement
    count = WORD_BITS // statement.bits
    result = list(chains)
    packed = [_load_word(panel, word, vector) for vector in range(panel.vectors)]
    depth = w.mul(word, i64(count))
    for place in range(count):
        weights = [
            _number(panel, words, place, offset) for words, offset in zip(packed, zero, strict=True)
        ]
        for row, pointer in enumerate(rows):
            at = w.offset(w.offset(pointer, depth, "float"), i64(place), "float")
            factor = w.splat(w.load(at, "float"), panel.lanes)
            for vector, weight in enumerate(weights):
                chain = _CHAINS * (row * panel.vectors + vector) + place % _CHAINS
                result[chain] = w.fma(factor, weight, result[chain])
    return tuple(result)


def _load_word(panel: BlockPanel, word: LlvmValue, vector: int) -> LlvmValue:
    """A word of each column, as signed numbers."""
    loaded = load_word(panel, word, vector)
    if panel.statement.signed or _has_table(panel):
        return loaded
    return with_other_signs(panel, loaded)


def _has_table(panel: BlockPanel) -> bool:
    """Whether 4 bits become a float by one instruction, which does not look at those above."""
    target, statement = panel.context.target, panel.statement
    is_wide = target.arch == "x86-64" and panel.lanes == _TABLE_LANES
    return is_wide and statement.bits == _TABLE_BITS and statement.zeros is None


def _table(panel: BlockPanel) -> LlvmValue:
    """The number of each code."""
    half = 1 << (_TABLE_BITS - 1)
    codes = range(2 * half)
    numbers = [(code ^ half) - half if panel.statement.signed else code - half for code in codes]
    return constants([float(number) for number in numbers], "float")


def _number(panel: BlockPanel, words: LlvmValue, place: int, zero: LlvmValue | None) -> LlvmValue:
    """Number ``place`` of each word as a float."""
    w, bits, lanes = panel.writer, panel.statement.bits, panel.lanes
    if _has_table(panel):
        moved = w.binary("lshr", words, constant(bits * place, "i32", lanes)) if place else words
        return w.call(_LOOKUP, (_table(panel), moved), "float", lanes)
    above = WORD_BITS - bits * (place + 1)
    if above:
        words = w.binary("shl", words, constant(above, "i32", lanes))
    whole = w.binary("ashr", words, constant(WORD_BITS - bits, "i32", lanes))
    if zero is not None:
        whole = w.binary("sub", whole, zero)
    return w.convert("sitofp", whole, "float")
