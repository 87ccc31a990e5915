"""The memory that a team of units shares while it sums: some steps of depth of A and B.

In: a unit of a contraction, its place in the team. Out: ``TeamMemory``; code that fills it, code
that reads a step. Not done here: the loops around it (``team_sum``), results
(``team_contraction``).

Each unit brings the rows of A that it multiplies, and one row of B. A lies row by row; behind a row
is room so that rows of four units at once lie in different banks of the memory. B lies row by row,
and up to four vectors so that what one lane has of them lies beside each other: where lanes are
threads, a thread reads four elements of either operand at once. What is narrower than the sums is
widened when it is brought.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.codegen.emit.blocks.products.accumulators import Axis
from ingot_compiler.codegen.emit.blocks.products.contraction_unit import Unit
from ingot_compiler.codegen.emit.blocks.products.offsets import Offsets, operand
from ingot_compiler.codegen.emit.convert import MEMORY, REGISTER, emit_cast, from_memory
from ingot_compiler.codegen.emit.lanes import (
    all_lanes,
    known_tail_mask,
    lane_numbers,
    load_lanes,
)
from ingot_compiler.codegen.emit.operands import Operands, i64
from ingot_compiler.codegen.llvm_value import LlvmValue, constants
from ingot_compiler.ir.types import DType
from ingot_runtime.lazy_dataclass import dataclass

READ_AT_ONCE = 4
"""Elements that a thread reads by one instruction."""
_ALIGNMENT_BYTES = 16  # of so many

Count = int | LlvmValue
"""How many steps of depth there are: a number, or one that a run knows."""


@dataclass(frozen=True, slots=True)
class TeamColumns:
    """A vector of columns of B: where its first row begins, and which lanes may be read (None:
    all)."""

    pointer: LlvmValue
    mask: LlvmValue | None


@dataclass(frozen=True, slots=True)
class TeamMemory:
    """``steps`` of depth, as many as the team has units: ``place`` is that of this one. ``rows`` of
    A that it brings and multiplies, ``columns`` of B that all of them multiply; ``a`` and ``b``:
    where they are brought to, ``a`` for this unit alone."""

    unit: Unit
    steps: int
    place: LlvmValue
    rows: Operands
    columns: tuple[TeamColumns, ...]
    a: LlvmValue
    b: LlvmValue

    @property
    def row_pitch(self) -> int:
        """Elements from a row of A to the next."""
        return self.steps + READ_AT_ONCE

    @property
    def together(self) -> int:
        """How many vectors of B have their lanes beside each other."""
        return min(len(self.columns), READ_AT_ONCE)

    def bring(self, axis: Axis, at: Offsets, count: Count) -> None:
        """Fill it with the ``count`` steps, at most ``steps``, from ``at`` on."""
        for number, row in enumerate(self.rows):
            self._bring_row(row, axis, at, count, number)
        self._bring_columns(axis, at, count)

    def _bring_row(
        self, row: LlvmValue, axis: Axis, at: Offsets, count: Count, number: int
    ) -> None:
        w, unit = self.unit.context.writer, self.unit
        dtype, lanes = unit.factors.a, unit.lanes
        present = count if isinstance(count, int) else self.steps
        for first in range(0, present, lanes):
            offset = w.add(at.a, w.mul(i64(first), operand(axis.a_step)))
            place = w.offset(row, offset, MEMORY[dtype])
            found = self._lanes_of_row(place, axis, _mask(unit, count, first))
            value = self._widened(found, dtype)
            w.store(value, w.offset(self.a, i64(number * self.row_pitch + first), value.element))

    def _lanes_of_row(self, place: LlvmValue, axis: Axis, mask: LlvmValue | None) -> LlvmValue:
        w, lanes, element = self.unit.context.writer, self.unit.lanes, MEMORY[self.unit.factors.a]
        if axis.a_step == 1:
            return load_lanes(w, place, element, lanes, mask)
        if isinstance(axis.a_step, int):
            apart = constants([lane * axis.a_step for lane in range(lanes)], "i64")
        else:
            apart = w.binary("mul", lane_numbers(lanes), w.splat(axis.a_step, lanes))
        return w.gather(w.offset(place, apart, element), mask or all_lanes(lanes), element)

    def _bring_columns(self, axis: Axis, at: Offsets, count: Count) -> None:
        """One row of B: where there are fewer than units, the last one again."""
        w, unit, step = self.unit.context.writer, self.unit, self.place
        if count != self.steps:
            step = w.intrinsic("smin", step, w.sub(operand(count), i64(1)))
        offset = w.add(at.b, w.mul(step, operand(axis.b_step)))
        dtype, width = unit.factors.b, len(self.columns) * unit.lanes
        row = w.offset(self.b, w.mul(self.place, i64(width)), REGISTER[unit.factors.sum])
        found = [
            self._widened(
                load_lanes(
                    w,
                    w.offset(each.pointer, offset, MEMORY[dtype]),
                    MEMORY[dtype],
                    unit.lanes,
                    each.mask,
                ),
                dtype,
            )
            for each in self.columns
        ]
        for first in range(0, len(found), self.together):
            wide = _interleaved(unit, found[first : first + self.together])
            w.store(wide, w.offset(row, i64(first * unit.lanes), wide.element), _ALIGNMENT_BYTES)

    def _widened(self, value: LlvmValue, dtype: DType) -> LlvmValue:
        w = self.unit.context.writer
        return emit_cast(w, from_memory(w, value, dtype), dtype, self.unit.factors.sum)

    def factors(
        self, index: LlvmValue, step: int, *, is_aligned: bool
    ) -> tuple[Operands, Operands]:
        """An element of each row of A, in all lanes, and the vectors of B, of the step ``step``
        steps behind ``index``, which is known to be a multiple of ``READ_AT_ONCE`` if
        ``is_aligned``."""
        w, unit = self.unit.context.writer, self.unit
        element, lanes = REGISTER[unit.factors.sum], unit.lanes
        row = w.offset(self.a, index, element)
        align = _ALIGNMENT_BYTES if is_aligned and step % READ_AT_ONCE == 0 else 0
        places = (
            w.offset(row, i64(number * self.row_pitch + step), element)
            for number in range(len(self.rows))
        )
        a = tuple(w.splat(w.load(place, element, align=align), lanes) for place in places)
        width = len(self.columns) * lanes
        b = w.offset(self.b, w.mul(index, i64(width)), element)
        found = list[LlvmValue]()
        for first in range(0, len(self.columns), self.together):
            place = w.offset(b, i64(step * width + first * lanes), element)
            wide = w.load(place, element, self.together * lanes, _ALIGNMENT_BYTES)
            found += _apart(unit, wide, self.together)
        return a, tuple(found)


def team_slots(unit: Unit, units: int, place: LlvmValue) -> tuple[LlvmValue, LlvmValue]:
    """The memory for A, of the unit at ``place``, and the one for B."""
    w, element, tile = unit.context.writer, REGISTER[unit.factors.sum], unit.statement.tile
    own = tile.rows * (units + READ_AT_ONCE) + READ_AT_ONCE
    a = w.team_slot(element, units * own)
    b = w.team_slot(element, units * unit.width)
    return w.offset(a, w.mul(place, i64(own)), element), b


def _mask(unit: Unit, count: Count, first: int) -> LlvmValue | None:
    """The lanes of a vector that begins ``first`` steps behind the first one."""
    if isinstance(count, int):
        return known_tail_mask(count, unit.lanes) if count - first < unit.lanes else None
    w = unit.context.writer
    left = w.convert("trunc", w.sub(count, i64(first)), "i32")
    return w.compare("slt", lane_numbers(unit.lanes, "i32"), w.splat(left, unit.lanes))


def _interleaved(unit: Unit, vectors: Sequence[LlvmValue]) -> LlvmValue:
    """The vectors as one, in which lanes of the same number lie beside each other."""
    w, found = unit.context.writer, list(vectors)
    while len(found) > 1:
        pieces = len(vectors) // len(found)
        order = [
            side * pieces * unit.lanes + lane * pieces + piece
            for lane in range(unit.lanes)
            for side in (0, 1)
            for piece in range(pieces)
        ]
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [w.shuffle(left, order, right) for left, right in pairs]
    return found[0]


def _apart(unit: Unit, wide: LlvmValue, count: int) -> list[LlvmValue]:
    """The vectors that ``_interleaved`` made one of."""
    if count == 1:
        return [wide]
    lanes = range(unit.lanes)
    return [
        unit.context.writer.shuffle(wide, [lane * count + number for lane in lanes])
        for number in range(count)
    ]
