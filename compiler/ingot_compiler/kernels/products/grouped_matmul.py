"""Products of each row with the matrix of its group.

In: a group anchored by ``grouped_matmul``. Out: its loop programs. Not done here: the order of the
rows (``rows_by_group``), the matrix view of one product (``contraction``).

Units are (group, columns): each reads its columns of a matrix once for all rows of the group, and
nothing where the group has none. A group of one row, as those of a token are, has a tile of its
own.
"""

from __future__ import annotations

import math

from ingot_compiler.ir.dims import Dim, dim_add, dim_floordiv, dim_min, dim_mod, dim_mul, symbol
from ingot_compiler.kernels.anchored_group import ACCUMULATOR, AnchoredGroup
from ingot_compiler.kernels.products.algorithm import PANELS, Algorithm, ProductFacts, Wishes
from ingot_compiler.kernels.products.contraction import (
    Panels,
    PitchedRows,
    Product,
    b_index,
    packed_panels,
)
from ingot_compiler.kernels.products.rows_by_group import (
    RowsByGroup,
    before_products,
    copy_program,
    order_program,
    products_behind,
)
from ingot_compiler.kernels.tiles import choose_row_block, choose_tile, lanes_of, sum_dtype
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.groups.space import Run, Space, ceil_div
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout
from ingot_compiler.lowering.kinds.launches_in_turn import launches_in_turn
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.loops.loop_parts import RegisterTile
from ingot_compiler.lowering.loops.loop_values import Compare, Load
from ingot_compiler.lowering.loops.program import (
    Contraction,
    For,
    If,
    LetIndex,
    LoopProgram,
    Statement,
)
from ingot_runtime.lazy_dataclass import dataclass

_START, _END = symbol("start"), symbol("end")


def lower_grouped_matmul(group: Group, target: KernelTarget) -> LoweredGroup:
    """A launch that orders the rows, one that copies them, the products."""
    anchored = AnchoredGroup(group)
    a, groups, b = map(anchored.operand, range(3))
    rows = RowsByGroup(a, groups, b.type.shape[0])
    parts = (*before_products(group, rows), products_behind(group, rows))
    programs = (
        order_program(parts[0], rows),
        copy_program(parts[1], rows),
        _program(AnchoredGroup(parts[2]), rows, target),
    )
    return launches_in_turn(group, parts, programs, *rows.workspaces)


def _program(anchored: AnchoredGroup, rows: RowsByGroup, target: KernelTarget) -> LoopProgram:
    product = _product(anchored)
    dtype = sum_dtype(anchored.operand(0).type.dtype)
    many, one = (choose_tile(count, product.columns, target, dtype) for count in (product.rows, 1))
    width = math.lcm(many.vectors, one.vectors) * lanes_of(dtype, target)
    panels = ceil_div(product.columns, width)
    group, panel = dim_floordiv(symbol(INDEX), panels), dim_mod(symbol(INDEX), panels)
    unit = _Unit(anchored, product, rows, target, group, dim_mul(panel, width), width)
    block = choose_row_block(product.rows, product.columns, many, target, dtype)
    count = dim_add(_END, dim_mul(_START, -1))
    starts = anchored.buffers.number(rows.starts)
    body = (
        LetIndex("start", Load(starts, group)),
        LetIndex("end", Load(starts, dim_add(group, 1))),
        If(Compare("equal", count, 1), (unit.products(one, _START, 1),)),
        If(Compare("less", 1, count), (For(
            "block", ceil_div(count, block), "serial",
            (unit.products(many, dim_add(_START, dim_mul(symbol("block"), block)), block),),
        ),)),
    )  # fmt: skip
    grain = grain_for(dim_floordiv(dim_mul(product.depth, width), 16))
    extent = dim_mul(product.outer, panels)
    return finish_program(anchored.buffers, body, extent, grain)


def _product(anchored: AnchoredGroup) -> Product:
    """One product for each group, of all rows."""
    a, b = anchored.operand(0), anchored.operand(1)
    rows, depth = a.type.shape
    columns = anchored.result.shape[1]
    is_packed = anchored.method.factor == PANELS
    base = dim_add(b.view.offset, dim_mul(symbol("g"), dim_mul(depth, columns)))
    return Product(
        outer=b.type.shape[0],
        rows=rows,
        columns=columns,
        taps=(),
        depth=depth,
        a_index=dim_add(dim_mul(symbol("row"), depth), symbol("k")),
        b=Panels() if is_packed else PitchedRows(base, columns),
        axes=((), (0,), (1,)),
    )


@dataclass(frozen=True, slots=True)
class _Unit:
    """Rows ``start`` to ``end`` of ``group``, ``width`` columns from ``first_column`` on."""

    anchored: AnchoredGroup
    product: Product
    rows: RowsByGroup
    target: KernelTarget
    group: Dim
    first_column: Dim
    width: int

    def products(self, tile: RegisterTile, row_start: Dim, row_block: int) -> Statement:
        """A block of rows by all columns, tile by tile."""
        product, numbers = self.product, self.anchored.buffers.number
        a, b = self.anchored.operand(0), self.anchored.operand(1)
        dtype = sum_dtype(a.type.dtype)
        own = tile.vectors * lanes_of(dtype, self.target)
        panels = packed_panels(self.anchored, product, dtype)
        statement = Contraction(
            "row", _END, row_start, row_block,
            "column", product.columns, dim_add(self.first_column, dim_mul(symbol("part"), own)),
            (), "k", product.depth, numbers(a), product.a_index,
            numbers(b), b_index(product, self.group, panels), panels,
            dtype, ACCUMULATOR, self._epilogue(), tile,
        )  # fmt: skip
        left = dim_add(product.columns, dim_mul(self.first_column, -1))
        parts = dim_min(self.width // own, ceil_div(left, own))
        return For("part", parts, "serial", (statement,))

    def _epilogue(self) -> tuple[Statement, ...]:
        """Store the row where it comes from."""
        order = self.anchored.buffers.number(self.rows.order)
        runs = Run((0,), symbol("to")), Run((1,), symbol("column"))
        stores = self.anchored.epilogue(Space(self.anchored.result.shape, runs))
        return (LetIndex("to", Load(order, symbol("row"))), *stores)


def _offer(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> Method:
    del wishes, target
    return Method(_NAME, PANELS if facts.has_constant_weights else "")


_NAME = "grouped_matmul"
GROUPED_MATMUL = Algorithm((Kind(_NAME, lower_grouped_matmul, ResultLayout.ROW_MAJOR),), _offer)
