"""Kernels that pick columns of rows: a block of rows, column by column.

In: a group without anchor. Out: the axes of its rows and columns, if a ``gather`` along the last
axis is all that it does; its loop program. Not done here: other groups (``pointwise``).

An index is checked once for a block. A row's columns in lanes would be loads of single elements all
the same, of which processors do fewer in a vector than one by one.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_min, dim_mul, dim_product, symbol
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.space import Run, Space, ceil_div
from ingot_compiler.lowering.groups.views import is_dense
from ingot_compiler.lowering.kinds.before_loop import before_loop
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops.program import For, LoopProgram
from ingot_runtime.lazy_dataclass import dataclass

_ROWS_MIN = 16  # rows for which checking an index takes little
_COLUMNS_MAX = 32  # few rows of many columns are as fast in lanes
_BLOCK_ELEMENTS = 4096  # of the rows that a block reads


@dataclass(frozen=True, slots=True)
class GatheredColumns:
    """Axes of the result, outermost first; elements of a row that columns are picked from."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    row_length: Dim


def find_gathered_columns(group: Group) -> GatheredColumns | None:
    """The columns that a group picks of a dense tensor with enough rows, for a dense result; None
    for another group."""
    result, node = group.results[0], group.nodes[0] if len(group.nodes) == 1 else None
    if node is None or node.op != "gather" or len(group.results) > 1:
        return None
    data = next(operand for operand in group.operands if operand.value == node.operands[0])
    axis, rank = node.integer("axis"), result.type.rank
    rows, columns = tuple(range(axis)), tuple(range(axis, rank))
    shape, picked = data.type.shape, typical(dim_product(result.type.shape[axis:]))
    is_worth = picked <= _COLUMNS_MAX and typical(dim_product(shape[:axis])) >= _ROWS_MIN
    if axis != len(shape) - 1 or not columns or not is_worth:
        return None
    are_dense = is_dense(data.view, shape) and is_dense(result.view, result.type.shape)
    return GatheredColumns(rows, columns, shape[axis]) if are_dense else None


def lower_gathered_columns(group: Group, axes: GatheredColumns) -> LoopProgram:
    """Units are blocks of rows."""
    result = group.results[0]
    shape = result.type.shape
    row_count, columns = (
        dim_product(tuple(shape[axis] for axis in of)) for of in (axes.rows, axes.columns)
    )
    block = max(_ROWS_MIN, _BLOCK_ELEMENTS // max(1, typical(axes.row_length)))
    start = dim_mul(symbol("p"), block)
    space = Space(shape, (Run(axes.rows, start + symbol("r")), Run(axes.columns, symbol("j"))))
    buffers = GroupBuffers(group)
    stored = Elements(group, buffers).stored(result, space)
    written = [number for number, each in enumerate(buffers.buffers) if each.written]
    before, picked = before_loop(stored, "r", written)
    block_rows = For("r", dim_min(row_count - start, block), "serial", picked)
    body = (For("j", columns, "serial", (*before, block_rows)),)
    return finish_program(
        buffers, body, ceil_div(row_count, block), grain_for(dim_mul(columns, block))
    )
