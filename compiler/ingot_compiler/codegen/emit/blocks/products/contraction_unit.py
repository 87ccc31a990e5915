"""What all register tiles of one contraction share.

In: a ``Contraction`` and the emission context of its kernel. Out: ``Unit``, ``Panel``. Not done
here: the panels (``contraction``) and their rows (``contraction_rows``).
"""

from __future__ import annotations

from ingot_compiler.codegen.emit.blocks.products.accumulators import (
    Factors,
    Pointers,
    SumLoops,
    merged_dims,
    side_by_side,
)
from ingot_compiler.codegen.emit.blocks.products.sum_loops import emit_axes, loops_in_blocks
from ingot_compiler.codegen.emit.context import EmitContext
from ingot_compiler.codegen.emit.convert import MEMORY
from ingot_compiler.codegen.emit.index import emit_index
from ingot_compiler.codegen.emit.memory import emit_address
from ingot_compiler.codegen.emit.operands import Operands, i64
from ingot_compiler.codegen.llvm_value import LlvmValue
from ingot_compiler.ir.dims import Dim, dim_add, dim_mul, substitute, symbol
from ingot_compiler.ir.errors import InternalError
from ingot_compiler.ir.sizes.symbol_terms import coefficient
from ingot_compiler.ir.types import FLOATS
from ingot_compiler.kernels.tiles import factors_together, lanes_of
from ingot_compiler.lowering.loops.loop_blocks import is_turned_whole
from ingot_compiler.lowering.loops.loop_parts import CarriedSums
from ingot_compiler.lowering.loops.program import Contraction
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Unit:
    """What all tiles of one contraction share; ``a_index`` and ``b_index`` are those of the first
    tap and depth."""

    context: EmitContext
    statement: Contraction
    lanes: int
    factors: Factors
    sum: SumLoops
    a_index: Dim
    b_index: Dim

    @property
    def width(self) -> int:
        """Columns of a full panel."""
        return self.statement.tile.vectors * self.lanes

    @property
    def covers_panels(self) -> bool:
        """Whether a tile begins and ends where panels of B do, or divides one."""
        panels = self.statement.b_panels
        return not panels or self.width % panels.columns == 0 or panels.columns % self.width == 0

    def address_of_a(self, row: LlvmValue) -> LlvmValue:
        """Where a row of A begins."""
        return self._address(self.statement.row, row, self.statement.a, self.a_index)

    def address_of_b(self, column: LlvmValue) -> LlvmValue:
        """Where a column of B begins."""
        return self._address(self.statement.column, column, self.statement.b, self.b_index)

    def address_of_carried(
        self, carried: CarriedSums, row: LlvmValue, column: LlvmValue
    ) -> LlvmValue:
        """Where the sum lies that an element goes on from."""
        names = {self.statement.row: row, self.statement.column: column}
        with self.context.scope():
            self.context.bind(names)
            return emit_address(self.context, carried.buffer, carried.index)

    def _address(self, name: str, value: LlvmValue, buffer: int, index: Dim) -> LlvmValue:
        with self.context.scope():
            self.context.bind({name: value})
            return emit_address(self.context, buffer, index)


@dataclass(frozen=True, slots=True)
class Panel:
    """Columns from ``column``: the vectors of ``b``, the last one under ``mask`` (None: all
    lanes) and summed in ``last_lanes`` (0: all); ``starts`` are what their sums start at,
    ``addends`` what is added to each vector of ``b`` (none: nothing)."""

    column: LlvmValue
    mask: LlvmValue | None
    b: Pointers
    starts: Operands
    last_lanes: int
    addends: Operands
    columns: Pointers = ()

    @property
    def vectors(self) -> int:
        """Vectors of a row."""
        return len(self.b)


def contraction_unit(context: EmitContext, statement: Contraction) -> Unit:
    """Emit the extents and steps of the sum's loops.

    Raises:
        InternalError: an index is not linear, what should lie together does not, or panels hold
            no whole vectors.
    """
    loops = (*statement.taps, (statement.depth, statement.depth_extent))
    factors = _factors(context, statement)
    zeros: dict[str, Dim] = {name: 0 for name, _ in loops}
    a_index, b_index = (
        substitute(index, zeros) for index in (statement.a_index, statement.b_index)
    )
    lanes = lanes_of(statement.dtype, context.target)
    _require_whole_vectors(statement, lanes)
    sums = _sum(context, statement, factors.together)
    return Unit(context, statement, lanes, factors, sums, a_index, b_index)


def _sum(context: EmitContext, statement: Contraction, together: int) -> SumLoops:
    """The loops, the innermost one over what is taken together."""
    loops = (*statement.taps, (statement.depth, statement.depth_extent))
    a_index, b_index = statement.a_index, statement.b_index
    if is_turned_whole(statement):
        width = statement.tile.vectors * lanes_of(statement.dtype, context.target)
        b_index = dim_mul(symbol(statement.depth), width)
    if together == 1 and statement.dtype in FLOATS:
        return loops_in_blocks(context, loops, a_index, b_index)
    if together == 1:
        return SumLoops(emit_axes(context, merged_dims(loops, a_index, b_index)))
    assert isinstance(statement.depth_extent, int)
    whole, rest = divmod(statement.depth_extent, together)
    steps: dict[str, Dim] = {statement.depth: dim_mul(together, symbol(statement.depth))}
    a_index, b_index = (substitute(index, steps) for index in (a_index, b_index))
    depth = (statement.depth, whole)
    if rest:  # behind the depth of each tap: no loop of two
        taps = merged_dims(statement.taps, a_index, b_index) if statement.taps else ()
        found = (*taps, *merged_dims((depth,), a_index, b_index, keep=True))
    else:
        found = merged_dims((*statement.taps, depth), a_index, b_index)
    return SumLoops(emit_axes(context, found), rest)


def _require_whole_vectors(statement: Contraction, lanes: int) -> None:
    """A vector that begins in a panel and ends in another would read between the two."""
    if statement.b_panels and statement.b_panels.columns % lanes:
        why = f"{lanes} lanes, {statement.b_panels.columns} columns"
        raise InternalError("a panel of B holds no whole vectors", why=why)


def _factors(context: EmitContext, statement: Contraction) -> Factors:
    """What A and B hold."""
    a, b = context.dtypes[statement.a], context.dtypes[statement.b]
    together = statement.b_panels.together if statement.b_panels else 1
    beside = coefficient(statement.a_index, statement.depth)
    if together > 1 and not (
        {factors_together(a, a), factors_together(b, b)} == {together}
        and (statement.dtype, beside) == ("f32" if a == "bf16" else "i32", 1)
        and isinstance(statement.depth_extent, int)
    ):
        raise InternalError(
            "products of a contraction do not lie together",
            why=f"{together} of A {a} at a distance of {beside}, B {b}, sums {statement.dtype}",
        )
    return Factors(a, b, statement.dtype, together)


def addends_of_b(unit: Unit, column: LlvmValue, count: int) -> Operands:
    """What is added to so many vectors of B from ``column`` on; nothing to those of most."""
    panels = unit.statement.b_panels
    if panels is None or panels.addends is None:
        return ()
    w = unit.context.writer
    first = w.offset(unit.context.buffers[panels.addends], column, "i32")
    starts = range(0, count * unit.lanes, unit.lanes)
    return tuple(w.load(w.offset(first, i64(at), "i32"), "i32", unit.lanes) for at in starts)


def columns_of_b(unit: Unit, column: LlvmValue, count: int, *, are_whole: bool) -> Pointers:
    """Where each column of so many vectors of a turned B begins, from ``column`` on; behind the
    last one, where not all exist, that one."""
    statement, context = unit.statement, unit.context
    if not statement.turned:
        return ()
    w, pitch = context.writer, coefficient(unit.b_index, statement.column)
    numbers = range(count * unit.lanes)
    if are_whole and pitch is not None:
        first, element = unit.address_of_b(column), MEMORY[unit.factors.b]
        if isinstance(pitch, int):
            return tuple((first, number * pitch) for number in numbers)
        step = emit_index(context, pitch)
        steps = (w.mul(step, i64(number)) for number in numbers)
        return tuple((w.offset(first, at, element), 0) for at in steps)
    last = emit_index(context, dim_add(statement.columns, -1))
    places = (w.add(column, i64(number)) for number in numbers)
    return tuple((unit.address_of_b(w.intrinsic("smin", at, last)), 0) for at in places)


def vectors_of_b(unit: Unit, column: LlvmValue, count: int) -> Pointers:
    """Where the vectors of B from ``column`` begin in a step of depth."""
    first, panels = unit.address_of_b(column), unit.statement.b_panels
    if panels is None:
        return side_by_side(first, count, unit.lanes * unit.factors.together)
    w, starts = unit.context.writer, range(0, count * unit.lanes, unit.lanes)
    if isinstance(panels.step, int) and unit.covers_panels:
        places = (divmod(start, panels.columns) for start in starts)
        return tuple(
            (first, panel * panels.step + at * unit.factors.together) for panel, at in places
        )
    others = [unit.address_of_b(w.add(column, i64(start))) for start in starts[1:]]
    return tuple((pointer, 0) for pointer in (first, *others))
