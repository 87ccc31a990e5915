"""Products of each row with the constant matrix of its group, of 4- or 8-bit integers in blocks.

In: a group anchored by ``grouped_matmul_blocks``, its matrices in panels. Out: its loop programs.
Not done here: the order of the rows (``rows_by_group``), the product of one matrix
(``matmul_blocks``).
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.ir.dims import dim_add, dim_floordiv, dim_mod, dim_mul, symbol
from ingot_compiler.kernels.anchored_group import ACCUMULATOR, AnchoredGroup
from ingot_compiler.kernels.products.algorithm import PANELS, Algorithm, ProductFacts, Wishes
from ingot_compiler.kernels.products.block_digits import BlockDigits, digit_program, with_operands
from ingot_compiler.kernels.products.matmul_blocks import blocked_product, digit_count
from ingot_compiler.kernels.products.rows_by_group import (
    RowsByGroup,
    before_products,
    copy_program,
    order_program,
    products_behind,
)
from ingot_compiler.kernels.tiles import panel_columns
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.group_steps import LoweredGroup
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.groups.space import Run, Space, ceil_div
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout
from ingot_compiler.lowering.kinds.launches_in_turn import launches_in_turn
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.loops.loop_values import Load, Local
from ingot_compiler.lowering.loops.program import For, LetIndex, LoopProgram


def lower_grouped_matmul_blocks(group: Group, target: KernelTarget) -> LoweredGroup:
    """A launch that orders the rows, one that copies them, perhaps one that makes bytes of them,
    the products."""
    del target
    anchored = AnchoredGroup(group)
    a, groups, q = map(anchored.operand, range(3))
    panels = ceil_div(anchored.result.shape[1], panel_columns("f32"))
    rows = RowsByGroup(a, groups, dim_floordiv(q.type.shape[0], panels))
    parts = [*before_products(group, rows), products_behind(group, rows)]
    programs = [order_program(parts[0], rows), copy_program(parts[1], rows)]
    between: tuple[Operand, ...] = rows.workspaces
    digits, count = None, anchored.method.digits
    if count:
        block, bits = anchored.node.integer("block"), anchored.node.integer("bits")
        digits = BlockDigits(rows.sorted_rows, block, 8 // bits, count, len(between))
        parts[2:] = with_operands(parts[2], digits)
        programs.append(digit_program(parts[2], digits))
        between = (*between, *digits.operands)
    programs.append(_program(parts[-1], rows, digits))
    return launches_in_turn(group, parts, tuple(programs), *between)


def _program(group: Group, rows: RowsByGroup, digits: BlockDigits | None) -> LoopProgram:
    """Units are (group, panel of columns). Columns count on from matrix to matrix, each of whole
    panels."""
    anchored = AnchoredGroup(group)
    shape, width = anchored.result.shape, panel_columns("f32")
    panels = ceil_div(shape[1], width)
    own, panel = dim_floordiv(symbol(INDEX), panels), dim_mod(symbol(INDEX), panels)
    first = dim_mul(own, dim_mul(panels, width))
    column = dim_add(symbol("column"), dim_mul(first, -1))
    space = Space(shape, (Run((0,), symbol("to")), Run((1,), column)))
    stores = anchored.store(Local(ACCUMULATOR, "f32"), anchored.elements(), space)
    starts, order = map(anchored.buffers.number, (rows.starts, rows.order))
    plain = blocked_product(anchored, digits)
    statement = replace(
        plain,
        rows=symbol("end"),
        row_start=dim_add(symbol("start"), dim_mul(symbol("block"), plain.row_block)),
        columns=dim_add(first, shape[1]),
        column_start=dim_add(first, dim_mul(panel, width)),
        epilogue=(LetIndex("to", Load(order, symbol("row"))), *stores),
    )
    count = dim_add(symbol("end"), dim_mul(symbol("start"), -1))
    body = (
        LetIndex("start", Load(starts, own)),
        LetIndex("end", Load(starts, dim_add(own, 1))),
        For("block", ceil_div(count, plain.row_block), "serial", (statement,)),
    )
    grain = grain_for(statement.blocks * statement.block * width // 4)
    return finish_program(anchored.buffers, body, dim_mul(rows.group_count, panels), grain)


def _offer(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> Method:
    del wishes
    return Method(_NAME, PANELS, digits=digit_count(facts.node, target))


_NAME = "grouped_matmul_blocks"
GROUPED_MATMUL_BLOCKS = Algorithm(
    (Kind(_NAME, lower_grouped_matmul_blocks, ResultLayout.ROW_MAJOR),), _offer
)
