"""Products with a constant matrix of 4- or 8-bit integers, scaled in blocks.

In: a group anchored by ``matmul_blocks``, its matrix in panels. Out: its loop program. Not done
here: the panels (``packing``), the code (``products.blocked_product``).
"""

from ingot_compiler.ir.dims import dim_floordiv, dim_mod, dim_mul, dim_product, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.kernels.anchored_group import ACCUMULATOR, AnchoredGroup
from ingot_compiler.kernels.products.algorithm import PANELS, Algorithm, ProductFacts, Wishes
from ingot_compiler.kernels.products.block_digits import (
    EXACT,
    ROUNDED,
    BlockDigits,
    digit_program,
    with_operands,
)
from ingot_compiler.kernels.tiles import panel_columns
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.group_steps import LoweredGroup, one_launch
from ingot_compiler.lowering.groups.method import Method
from ingot_compiler.lowering.groups.space import Run, Space, ceil_div
from ingot_compiler.lowering.groups.views import flat_offset
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout
from ingot_compiler.lowering.kinds.launches_in_turn import launches_in_turn
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.loops.loop_parts import Digits
from ingot_compiler.lowering.loops.loop_values import Local
from ingot_compiler.lowering.loops.program import BlockedProduct, LoopProgram

_ROW_BLOCK = 64  # rows that one unit multiplies by its panel, which then comes from L1
_ZERO = 3  # operand of matmul_blocks
_BLOCK_MAX = 256  # numbers whose sums of digits fit 32 bits when they are joined


def lower_matmul_blocks(group: Group, target: KernelTarget) -> LoweredGroup:
    """One launch; one before it that makes bytes of A where the processor multiplies bytes or the
    model rounds A to them."""
    del target
    anchored = AnchoredGroup(group)
    block, bits = anchored.node.integer("block"), anchored.node.integer("bits")
    count = anchored.method.digits
    if not count:
        return one_launch(_program(group, None))
    digits = BlockDigits(anchored.operand(0), block, 8 // bits, count)
    before, behind = with_operands(group, digits)
    programs = digit_program(before, digits), _program(behind, digits)
    return launches_in_turn(group, (before, behind), programs, *digits.operands)


def digit_count(node: Node, target: KernelTarget) -> int:
    """How many bytes stand for a number of A; 0 where A is multiplied as it is."""
    if node.flag("rounded"):
        return ROUNDED
    return EXACT if target.multiplies_bytes and node.integer("block") <= _BLOCK_MAX else 0


def _program(group: Group, bytes_of_a: BlockDigits | None) -> LoopProgram:
    """Units are (panel of columns, block of rows)."""
    anchored = AnchoredGroup(group)
    statement = blocked_product(anchored, bytes_of_a)
    row_blocks, width = ceil_div(statement.rows, _ROW_BLOCK), panel_columns("f32")
    grain = grain_for(statement.blocks * statement.block * width // 4)
    extent = dim_mul(ceil_div(statement.columns, width), row_blocks)
    return finish_program(anchored.buffers, (statement,), extent, grain)


def blocked_product(anchored: AnchoredGroup, bytes_of_a: BlockDigits | None) -> BlockedProduct:
    """A block of rows by a panel of columns."""
    digits = None
    if bytes_of_a is not None:
        numbers = map(anchored.buffers.number, bytes_of_a.operands)
        digits = Digits(bytes_of_a.count, *numbers)
    node, a, shape = anchored.node, anchored.operand(0), anchored.result.shape
    depth, last = a.type.shape[-1], len(shape) - 1
    assert isinstance(depth, int)
    rows = dim_product(shape[:-1])
    row_blocks = ceil_div(rows, _ROW_BLOCK)
    row_unit = dim_mod(symbol(INDEX), row_blocks)
    panel = dim_floordiv(symbol(INDEX), row_blocks)
    space = Space(shape, (Run(tuple(range(last)), symbol("row")), Run((last,), symbol("column"))))
    return BlockedProduct(
        "row", rows, dim_mul(row_unit, _ROW_BLOCK), _ROW_BLOCK,
        "column", shape[-1], dim_mul(panel, panel_columns("f32")),
        depth // node.integer("block"), node.integer("block"),
        anchored.number(0),
        a.view.offset + flat_offset(symbol("row"), a.type.shape[:-1], a.view.strides[:-1]),
        anchored.number(1), anchored.number(2),
        anchored.number(_ZERO) if len(node.operands) > _ZERO else None,
        node.integer("bits"), node.flag("signed"),
        ACCUMULATOR, anchored.store(Local(ACCUMULATOR, "f32"), anchored.elements(), space), digits,
    )  # fmt: skip


def _offer(facts: ProductFacts, wishes: Wishes, target: KernelTarget) -> Method:
    del wishes
    return Method(_NAME, PANELS, digits=digit_count(facts.node, target))


_NAME = "matmul_blocks"
MATMUL_BLOCKS = Algorithm((Kind(_NAME, lower_matmul_blocks, ResultLayout.ROW_MAJOR),), _offer)
