"""A recurrent layer as its kernel sees it: where operands, states and gates lie, its products.

In: a group of one ``recurrent``. Out: ``RecurrentLayer``. Not done here: the cells
(``kinds.recurrent``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_max, dim_min, dim_mod, dim_mul, symbol
from ingot_compiler.ir.ops.recurrent import CELLS, operand_names
from ingot_compiler.ir.types import DType
from ingot_compiler.kernels.quantized_rows import QuantizedRows
from ingot_compiler.kernels.recurrent_math import RecurrentMath
from ingot_compiler.kernels.tiles import (
    choose_tile,
    lanes_of,
    panel_columns,
    rows_together,
    sum_dtype,
)
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.space import ceil_div, point, round_up
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.loops.loop_parts import PackedPanels, RegisterTile
from ingot_compiler.lowering.loops.loop_values import Apply, Load, Local, Value
from ingot_compiler.lowering.loops.program import Contraction, For, Statement, Store
from ingot_runtime.lazy_dataclass import dataclass

_BLOCKS_ROWS_MAX = 32


@dataclass(frozen=True, slots=True)
class _Unit:
    """What a unit of the parallel index covers: ``row_block`` batch rows of one direction."""

    count: Dim
    direction: Dim
    row_start: Dim
    row_block: int


def _unit(batch: Dim, rows: Dim, directions: Dim, tile: RegisterTile) -> _Unit:
    known = rows if isinstance(rows, int) else tile.rows
    row_block = round_up(min(known, _BLOCKS_ROWS_MAX), tile.rows)
    assert isinstance(row_block, int)
    blocks, index = ceil_div(batch, row_block), symbol("p")
    if directions == 1:
        return _Unit(blocks, 0, dim_mul(index, row_block), row_block)
    start = dim_mul(dim_mod(index, blocks), row_block)
    return _Unit(dim_mul(blocks, directions), dim_floordiv(index, blocks), start, row_block)


class RecurrentLayer:
    """``given``: the operands by name; ``y``, ``h``, ``c`` (lstm): results; ``gates``, ``reset``
    (a reset gate that comes first), ``quantized`` (the state as integers): workspace."""

    def __init__(self, group: Group, target: KernelTarget, rows: Dim) -> None:
        """``rows``: how many the register tile is for."""
        self.node = group.nodes[0]
        self.cell = self.node.text("cell")
        self.gate_count = CELLS[self.cell][0]
        self.buffers = GroupBuffers(group)
        named = zip(operand_names(self.node.table), self.node.operands, strict=False)
        self.given = {name: self.buffers.by_value[value] for name, value in named}
        is_lstm = self.cell == "lstm"
        self.y, self.h = group.results[:2]
        self.c = group.results[2] if is_lstm else None
        self.gates, *own = group.results[3 if is_lstm else 2 :]
        self.reset = own[0] if self.is_reset_first else None
        self.quantized = QuantizedRows(*own) if self.node.flag("is_quantized") else None
        self.dtype: DType = self.y.type.dtype
        self.math = RecurrentMath(self.node, self.dtype)
        self.steps, self.directions, self.batch, self.hidden = self.y.type.shape
        # A reset gate that comes first splits the product in two.
        self.columns = dim_mul(2 if self.is_reset_first else self.gate_count, self.hidden)
        weights = self.given["weights"].type.dtype
        together = rows_together(weights)
        self.tile = choose_tile(rows, self.columns, target, sum_dtype(weights), together)
        self.tile_columns = self.tile.vectors * lanes_of(self.dtype, target)
        self.unit = _unit(self.batch, rows, self.directions, self.tile)

    @property
    def is_reset_first(self) -> bool:
        """A GRU that multiplies the state by the reset gate before its second product."""
        return self.cell == "gru" and not self.node.flag("linear_before_reset")

    # ---- places ----------------------------------------------------------------------------------

    def load(self, operand: Operand, *index: Dim) -> Value:
        """An element."""
        place = point(operand.type.shape, index).offset(operand.view)
        return Load(self.buffers.number(operand), place)

    def store(self, operand: Operand, value: Value, *index: Dim) -> Store:
        """Write an element."""
        place = point(operand.type.shape, index).offset(operand.view)
        return Store(self.buffers.number(operand), place, value)

    def own(self, operand: Operand, shift: Dim = 0) -> Value:
        """The hidden unit's element of a vector per direction."""
        return self.load(operand, self.unit.direction, shift + symbol("j"))

    def state(self, operand: Operand) -> Value:
        """The hidden unit's element of a state."""
        return self.load(operand, self.unit.direction, self.row, symbol("j"))

    def store_state(self, operand: Operand, value: Value) -> Store:
        """Write the hidden unit's element of a state."""
        return self.store(operand, value, self.unit.direction, self.row, symbol("j"))

    def store_y(self, time: Dim, value: Value) -> Store:
        """Write the hidden unit's element of y."""
        return self.store(self.y, value, time, self.unit.direction, self.row, symbol("j"))

    def gate(self, number: int) -> Value:
        """Inputs' and state's share of a gate."""
        return self.math.add(self.inputs(number), self.share(number))

    def inputs(self, number: int) -> Value:
        """The inputs' share of a gate."""
        first = dim_mul(dim_mul(self.unit.direction, self.gate_count) + number, self.hidden)
        return self.load(self.given["x"], symbol("time"), self.row, first + symbol("j"))

    def share(self, number: int) -> Value:
        """The state's share of a gate."""
        column = dim_mul(number, self.hidden) + symbol("j")
        return self.load(self.gates, self.unit.direction, self.row, column)

    # ---- loops -----------------------------------------------------------------------------------

    @property
    def row(self) -> Dim:
        """The batch row inside ``rows``."""
        return self.unit.row_start + symbol("b")

    def rows(self, body: tuple[Statement, ...]) -> For:
        """``body`` for every batch row ``b`` of the block."""
        count = dim_min(self.unit.row_block, self.batch - self.unit.row_start)
        return For("b", count, "serial", body)

    def lanes(self, *body: Statement) -> For:
        """``body`` for every hidden unit ``j``."""
        return For("j", self.hidden, "vector", body)

    def time(self, length: Dim) -> Dim:
        """The time that step ``t`` of a row of ``length`` means for the unit's direction."""
        reverse, t = self.node.flags("reverse"), symbol("t")
        backwards = dim_max(length - 1 - t, 0)
        if len(set(reverse)) == 1:
            return backwards if reverse[0] else t
        mirrored = self.unit.direction if reverse[1] else 1 - self.unit.direction
        return dim_mul(mirrored, backwards) + dim_mul(1 - mirrored, t)

    def product(self, number: int, a: Operand, b: Operand, columns: Dim, first: Dim) -> For:
        """gates[direction, rows, first ..] = a[direction, rows] . b[direction], product ``number``
        of a step."""
        row, column, k, block, acc = (
            f"{name}{number}" for name in ("row", "column", "k", "block", "acc")
        )
        direction, dtype = self.unit.direction, sum_dtype(a.type.dtype)
        start = dim_mul(symbol(block), self.tile_columns)
        total = self._in_floats(Local(acc, dtype), symbol(row), first + symbol(column))
        a_index = point(a.type.shape, (direction, symbol(row), symbol(k))).offset(a.view)
        target = self.store(self.gates, total, direction, symbol(row), first + symbol(column))
        panels = self._panels(b)
        if panels:
            panel, place = (
                part(symbol(column), panels.columns) for part in (dim_floordiv, dim_mod)
            )
            b_point: tuple[Dim, ...] = (direction, panel, symbol(k), place)
            if panels.together > 1:
                high, low = (part(symbol(k), panels.together) for part in (dim_floordiv, dim_mod))
                b_point = (direction, panel, high, place, low)
        else:
            b_point = (direction, symbol(k), symbol(column))
        b_index = point(b.type.shape, b_point).offset(b.view)
        statement = Contraction(
            row, self.batch, self.unit.row_start, self.unit.row_block, column, columns, start,
            (), k, self.hidden, self.buffers.number(a), a_index, self.buffers.number(b), b_index,
            panels, dtype, acc, (target,), self.tile,
        )  # fmt: skip
        return For(block, ceil_div(columns, self.tile_columns), "serial", (statement,))

    def _in_floats(self, total: Value, row: Dim, column: Dim) -> Value:
        """What a sum stands for."""
        if self.quantized is None:
            return total
        zero = self.load(self.quantized.zero, self.unit.direction, row)
        sums = self.load(self.given["sums"], self.unit.direction, column)
        product = Apply("sub", (total, Apply("mul", (zero, sums), "i32")), "i32")
        scale = self.math.mul(
            self.load(self.quantized.scale, self.unit.direction, row),
            self.load(self.given["scale"], self.unit.direction, column),
        )
        return self.math.mul(Apply("cast", (product,), self.dtype), scale)

    def _panels(self, b: Operand) -> PackedPanels | None:
        """How a constant B of a product lies: [D, panel, H, panel columns], of bytes [D, panel,
        H / 4, panel columns, 4]."""
        if b.type.rank == 3:
            return None
        width, together = panel_columns(self.dtype), rows_together(b.type.dtype)
        return PackedPanels(width, dim_mul(round_up(self.hidden, together), width), together)
