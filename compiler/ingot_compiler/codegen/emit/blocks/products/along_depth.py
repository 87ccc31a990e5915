"""Contractions to few rows whose factors both lie along the depth: summands are in lanes.

In: a ``Contraction`` and the emission context of its kernel. Out: code in the kernel's function.
Not done here: contractions with columns in lanes (``contraction``).

Few rows, such as the channels of a picture, would leave most lanes of a vector empty. Here a lane
has every so many-th product of each element, and lanes are added in the tree of ``lane_trees``: no
tile or thread count changes a bit.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.codegen.emit.blocks.epilogue import (
    Columns,
    Results,
    Rows,
    emit_epilogue,
)
from ingot_compiler.codegen.emit.blocks.lane_trees import combined, lanes_per_result
from ingot_compiler.codegen.emit.blocks.products.accumulators import merged_dims
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.control import for_each, if_below, multiple_below
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.lanes import tail_mask
from ingot_compiler.codegen.emit.memory import emit_address
from ingot_compiler.codegen.emit.operands import ZERO, Operands, i64, zeros
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.codegen.writer import Writer
from ingot_compiler.ir.dims import Dim, dim_min, substitute
from ingot_compiler.lowering.loops.program import Contraction
from ingot_runtime.lazy_dataclass import dataclass

_ELEMENT = "float"
_CHAINS_PER_BLOCK = 48  # LLVM is quadratic in a block's length
Axes = Sequence[tuple[Dim, Dim, Dim]]


def emit_along_depth(context: EmitContext, statement: Contraction) -> None:
    """Emit one unit: tiles of columns, then one whose columns are clamped to the last."""
    w, s, lanes = context.writer, statement, context.target.f32_lanes
    assert isinstance(s.rows, int)
    unit = _Unit(context, s, s.rows, lanes, _columns_of_tile(s.rows, lanes, context))
    start = emit_index(context, s.column_start)
    count = emit_index(context, dim_min(s.tile.vectors * lanes, s.columns - s.column_start))
    whole = multiple_below(w, count, unit.columns)
    for_each(w, ZERO, whole, unit.columns, lambda at: unit.tile(w.add(start, at)))
    left = w.sub(count, whole)
    if_below(w, whole, count, lambda: unit.tile(w.add(start, whole), left))


def _columns_of_tile(rows: int, lanes: int, context: EmitContext) -> int:
    """A power of two, as many as have registers for their sums."""
    columns = lanes
    while columns > 1 and rows * (columns + 1) + 1 > context.target.vector_register_count:
        columns //= 2
    return columns


@dataclass(frozen=True, slots=True)
class _Unit:
    """A tile has ``rows`` and ``columns``."""

    context: EmitContext
    statement: Contraction
    rows: int
    lanes: int
    columns: int

    @property
    def writer(self) -> Writer:
        """Where the code goes."""
        return self.context.writer

    def tile(self, column: LlvmValue, valid: LlvmValue | None = None) -> None:
        """Emit one tile and its epilogue; ``valid`` columns of it exist (None: all)."""
        w, s = self.writer, self.statement
        loops = (*s.taps, (s.depth, s.depth_extent))
        start: dict[str, Dim] = {name: 0 for name, _ in loops}
        a = self._pointers(
            s.a, substitute(s.a_index, start), s.row, [i64(row) for row in range(self.rows)]
        )
        b = self._pointers(
            s.b, substitute(s.b_index, start), s.column, self._columns(column, valid)
        )
        none = (zeros(_ELEMENT, self.lanes),) * (self.rows * self.columns)
        axes = merged_dims(loops, s.a_index, s.b_index)
        sums = self._sum((a, b), axes, (ZERO, ZERO), none)
        mask = None if valid is None else tail_mask(w, ZERO, valid, self.columns)
        columns = Columns(s.column, column, 1, self.columns, mask)
        for row in range(self.rows):
            own = sums[row * self.columns : (row + 1) * self.columns]
            rows = Rows(s.row, i64(row), 1)
            results = Results(rows, columns, s.accumulator, "f32", s.epilogue)
            emit_epilogue(self.context, results, [self._in_all(own)])

    def _columns(self, first: LlvmValue, valid: LlvmValue | None) -> list[LlvmValue]:
        w = self.writer
        last = None if valid is None else w.sub(w.add(first, valid), i64(1))
        found = [w.add(first, i64(number)) for number in range(self.columns)]
        return [at if last is None else w.intrinsic("smin", at, last) for at in found]

    def _pointers(
        self, buffer: int, index: Dim, name: str, places: Sequence[LlvmValue]
    ) -> list[LlvmValue]:
        """Where rows of A, or columns of B, begin."""
        found: list[LlvmValue] = []
        for place in places:
            with self.context.scope():
                self.context.bind({name: place})
                found.append(emit_address(self.context, buffer, index))
        return found

    def _sum(
        self,
        factors: tuple[Sequence[LlvmValue], Sequence[LlvmValue]],
        axes: Axes,
        at: tuple[LlvmValue, LlvmValue],
        sums: Operands,
    ) -> Operands:
        """Add all products of the loops, outer to inner."""
        w = self.writer
        (extent, *steps), *inner = axes
        if not inner:
            return self._along(factors, emit_index(self.context, extent), at, sums)
        moves = [emit_index(self.context, step) for step in steps]

        def turn(index: LlvmValue, carried: Operands) -> Operands:
            a, b = (w.add(place, w.mul(index, move)) for place, move in zip(at, moves, strict=True))
            return self._sum(factors, inner, (a, b), carried)

        return w.loop(ZERO, emit_index(self.context, extent), 1, sums, turn)

    def _along(
        self,
        factors: tuple[Sequence[LlvmValue], Sequence[LlvmValue]],
        extent: LlvmValue,
        at: tuple[LlvmValue, LlvmValue],
        sums: Operands,
    ) -> Operands:
        """Add the products of the innermost loop, vector by vector."""
        w, lanes = self.writer, self.lanes
        assert extent.integer is not None
        vectors = extent.integer // lanes
        unroll = max(1, _CHAINS_PER_BLOCK // len(sums))
        unroll = max(each for each in range(1, unroll + 1) if vectors % each == 0)

        def load(pointer: LlvmValue, place: LlvmValue, step: int) -> LlvmValue:
            here = w.offset(w.offset(pointer, place, _ELEMENT), i64(step * lanes), _ELEMENT)
            return w.load(here, _ELEMENT, lanes)

        def turn(index: LlvmValue, carried: Operands) -> Operands:
            a_at, b_at = (w.add(place, index) for place in at)
            for step in range(unroll):
                rows = [load(pointer, a_at, step) for pointer in factors[0]]
                found = list(carried)
                for number, pointer in enumerate(factors[1]):
                    column = load(pointer, b_at, step)
                    for row, factor in enumerate(rows):
                        place = row * self.columns + number
                        found[place] = w.fma(factor, column, found[place])
                carried = tuple(found)
            return carried

        return w.loop(ZERO, extent, unroll * lanes, sums, turn)

    def _in_all(self, sums: Operands) -> LlvmValue:
        """The sums of a row, each over its lanes."""
        w, repeats = self.writer, lanes_per_result(len(sums), self.lanes)
        total = combined(w, sums, lambda left, right: w.binary("fadd", left, right))
        return w.shuffle(total, range(0, self.lanes, repeats)) if repeats > 1 else total
