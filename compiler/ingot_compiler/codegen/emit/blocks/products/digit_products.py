"""Exact products of 4- and 8-bit integers with rows that are integers, too: sums of bytes.

In: a panel, the digits of its rows. Out: what a block adds to the sums of a tile. Not done here:
blocks that have no digits (``blocked_product``), the digits themselves (``block_digits``).

Each digit of a row has sums of its own, four products at a time. They begin at what an unsigned
number has too much, times the sum of the digits, so that all of them are exact; together they are
the sum of the block by two conversions to f32.
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.codegen.emit.blocks.products.accumulators import Factors
from ingot_compiler.codegen.emit.blocks.products.block_panel import (
    BlockPanel,
    load_word,
    parameter,
    with_other_signs,
)
from ingot_compiler.codegen.emit.blocks.products.byte_products import (
    add_byte_products,
    flipped,
    flips_signs,
)
from ingot_compiler.codegen.emit.control import values_if
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64, zeros
from ingot_compiler.codegen.llvm_value import LlvmValue, constant
from ingot_compiler.lowering.loops.loop_parts import Digits

_ROWS_MAX = {1: 8, 3: 4}
"""Rows of a tile by the number of digits, where there are 32 registers; half of that with 16."""
_MANY_REGISTERS = 32
_CHAINS = 2
"""Sums of a digit of few rows, which else would wait for each other."""
_CHAIN_ROWS_MAX = 2
_LOW_BITS = 0x0F0F0F0F
_BYTES = 4
_WORDS_PER_ROUND = 4
_FACTORS = Factors("u8", "i8", "i32", _BYTES)
_MIDDLE = 128
_Floats = Callable[[LlvmValue, Operands], Operands]


def digit_rows(panel: BlockPanel, digits: Digits) -> int:
    """Rows of the highest tile."""
    few = panel.context.target.vector_register_count < _MANY_REGISTERS
    return max(1, _ROWS_MAX[digits.count] // (4 if few else 1))


def emit_digits(
    panel: BlockPanel,
    digits: Digits,
    rows: list[LlvmValue],
    floats: _Floats,
    block: LlvmValue,
    totals: Operands,
) -> Operands:
    """Add the sums of one block, times its steps and scales; ``floats`` does so without digits, for
    rows that have none there."""
    w = panel.writer
    found = [w.add(w.mul(row, i64(panel.statement.blocks)), block) for row in rows]
    steps = [
        w.load(w.offset(panel.context.buffers[digits.steps], at, "float"), "float") for at in found
    ]
    sums = _block_sums(panel, digits, found, block)
    result: list[LlvmValue] = []
    for number, total in enumerate(totals):
        row, vector = divmod(number, panel.vectors)
        whole = _joined(panel, sums[number * digits.count : (number + 1) * digits.count])
        scaled = w.binary("fmul", whole, w.splat(steps[row], panel.lanes))
        result.append(w.fma(scaled, parameter(panel, panel.statement.scales, block, vector), total))
    missing = [w.compare("olt", step, constant(0.0, "float")) for step in steps]
    any_missing = missing[0]
    for each in missing[1:]:
        any_missing = w.binary("or", any_missing, each)

    def with_floats() -> Operands:
        other = floats(block, totals)
        return tuple(
            w.select(missing[number // panel.vectors], other[number], result[number])
            for number in range(len(totals))
        )

    return values_if(w, any_missing, tuple(result), with_floats)


def _block_sums(
    panel: BlockPanel, digits: Digits, values: list[LlvmValue], block: LlvmValue
) -> Operands:
    """Exact sums: the digits of the first vector of the first row, then of the next vector."""
    w = panel.writer
    chains = _CHAINS if len(values) <= _CHAIN_ROWS_MAX else 1
    starts = _starts(panel, digits, values, block)
    carried = tuple(
        start if chain == 0 else zeros("i32", panel.lanes)
        for start in starts
        for chain in range(chains)
    )
    first = w.mul(block, i64(panel.words))
    size = digits.count * panel.statement.block
    pointers = [
        w.offset(panel.context.buffers[digits.digits], w.mul(at, i64(size)), "i8") for at in values
    ]
    together = max(each for each in range(1, _WORDS_PER_ROUND + 1) if panel.words % each == 0)

    def words(index: LlvmValue, before: Operands) -> Operands:
        sums = list(before)
        for number in range(together):
            word = w.add(index, i64(number))
            _add_word(panel, digits, pointers, (w.add(first, word), word), sums, chains)
        return tuple(sums)

    sums = w.loop(ZERO, i64(panel.words), together, carried, words)
    if chains == 1:
        return sums
    pairs = zip(sums[::2], sums[1::2], strict=True)
    return tuple(w.binary("add", even, odd) for even, odd in pairs)


def _starts(
    panel: BlockPanel, digits: Digits, values: list[LlvmValue], block: LlvmValue
) -> list[LlvmValue]:
    """What the numbers have too much in all products of a digit."""
    w, lanes, statement = panel.writer, panel.lanes, panel.statement
    half = 1 << (statement.bits - 1)
    result: list[LlvmValue] = []
    moved = _MIDDLE if _is_flipped(panel) else 0
    offsets = [constant(moved - half, "i32", lanes)] * panel.vectors
    if statement.zeros is not None:
        offsets = [_zero_points(panel, block, vector, moved) for vector in range(panel.vectors)]
    for at in values:
        for offset in offsets:
            for digit in range(digits.count):
                place = w.add(w.mul(at, i64(digits.count)), i64(digit))
                total = w.load(w.offset(panel.context.buffers[digits.sums], place, "i32"), "i32")
                result.append(w.binary("mul", w.splat(total, lanes), offset))
    return result


def _is_flipped(panel: BlockPanel) -> bool:
    """Whether numbers of 8 bits are read with a sign, 128 less; those of 4 bits fit either way."""
    return panel.statement.bits == 8 and flips_signs(panel.context.target, _FACTORS)


def _zero_points(panel: BlockPanel, block: LlvmValue, vector: int, moved: int) -> LlvmValue:
    """``moved`` less the zero points of a block, which are unsigned."""
    statement, w = panel.statement, panel.writer
    assert statement.zeros is not None
    codes = w.convert("zext", parameter(panel, statement.zeros, block, vector), "i32")
    if statement.signed:
        codes = w.binary("xor", codes, constant(1 << (statement.bits - 1), "i32", panel.lanes))
    every = constant((1 << statement.bits) - 1, "i32", panel.lanes)
    start = constant(moved, "i32", panel.lanes)
    return w.binary("sub", start, w.binary("and", codes, every))


def _add_word(
    panel: BlockPanel,
    digits: Digits,
    pointers: list[LlvmValue],
    word: tuple[LlvmValue, LlvmValue],
    sums: list[LlvmValue],
    chains: int,
) -> None:
    """Add the products of one word of each column; ``word``: counted in the panel, in the block."""
    w, statement = panel.writer, panel.statement
    halves = 8 // statement.bits
    for vector in range(panel.vectors):
        parts = _unsigned(panel, load_word(panel, word[0], vector))
        for row, pointer in enumerate(pointers):
            for digit in range(digits.count):
                for half, part in enumerate(parts):
                    start = digit * statement.block + half * (statement.block // halves)
                    at = w.add(w.mul(word[1], i64(_BYTES)), i64(start))
                    four = w.splat(w.load(w.offset(pointer, at, "i8"), "i32", align=1), panel.lanes)
                    number = (row * panel.vectors + vector) * digits.count + digit
                    place = number * chains + half % chains
                    sums[place] = add_byte_products(w, part, four, sums[place], _FACTORS)


def _unsigned(panel: BlockPanel, word: LlvmValue) -> list[LlvmValue]:
    """A word as unsigned bytes: the even numbers and the odd ones of 4 bits, those of 8 bits."""
    w, statement = panel.writer, panel.statement
    codes = with_other_signs(panel, word) if statement.signed else word
    if statement.bits == 8:
        return [flipped(w, codes, _FACTORS)]
    low = constant(_LOW_BITS, "i32", panel.lanes)
    moved = w.binary("lshr", codes, constant(4, "i32", panel.lanes))
    return [w.binary("and", each, low) for each in (codes, moved)]


def _joined(panel: BlockPanel, sums: Operands) -> LlvmValue:
    """The sum of a block in steps, from the sums of its digits."""
    w, lanes = panel.writer, panel.lanes
    if len(sums) == 1:
        return w.convert("sitofp", sums[0], "float")
    low, middle, high = sums
    lower = w.binary("add", w.binary("shl", middle, constant(8, "i32", lanes)), low)
    return w.fma(
        w.convert("sitofp", high, "float"),
        constant(65536.0, "float", lanes),
        w.convert("sitofp", lower, "float"),
    )
