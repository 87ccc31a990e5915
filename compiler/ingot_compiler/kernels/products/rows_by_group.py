"""Rows of a matrix in the order of their groups, for products of each group by a matrix of its own.

In: rows [P, K], groups [P]. Out: the workspaces, the loops that fill them. Not done here: the
products (``kinds.grouped_matmul``).

The order is that of a counting sort, which is stable: where each group starts, and which row comes
at each place. The rows are copied into it, so that those of a group lie evenly apart.
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.ir.dims import Dim, dim_add, dim_mul, symbol
from ingot_compiler.ir.types import DType, TensorType
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.views import dense_view
from ingot_compiler.lowering.kinds.launches_in_turn import workspace_number
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, FromIndex, Load, Value
from ingot_compiler.lowering.loops.program import For, LetIndex, LoopProgram, Statement, Store
from ingot_runtime.lazy_dataclass import dataclass

_ROW, _GROUP = symbol("row"), symbol("group")


@dataclass(frozen=True, slots=True)
class RowsByGroup:
    """``rows`` [P, K] and ``groups`` [P] of ``group_count``."""

    rows: Operand
    groups: Operand
    group_count: Dim

    @property
    def starts(self) -> Operand:
        """Where each group starts in the order; behind the last one, where it ends."""
        return self._workspace(0, "i64", dim_add(self.group_count, 2))

    @property
    def order(self) -> Operand:
        """The row at each place."""
        return self._workspace(1, "i64", self.rows.type.shape[0])

    @property
    def sorted_rows(self) -> Operand:
        """The rows in the order."""
        return self._workspace(2, self.rows.type.dtype, *self.rows.type.shape)

    @property
    def workspaces(self) -> tuple[Operand, Operand, Operand]:
        """All of them, by number."""
        return self.starts, self.order, self.sorted_rows

    def _workspace(self, number: int, dtype: DType, *shape: Dim) -> Operand:
        value = workspace_number(number)
        return Operand(value, TensorType(dtype, shape), value, dense_view(shape))


def before_products(group: Group, rows: RowsByGroup) -> tuple[Group, Group]:
    """The groups that fill the order, and the sorted rows."""
    types = (*group.types, *((each.value, each.type) for each in rows.workspaces))
    ordered = replace(
        group, operands=(rows.groups,), results=(rows.starts, rows.order), types=types
    )
    copied = replace(
        group, operands=(rows.rows, rows.order), results=(rows.sorted_rows,), types=types
    )
    return ordered, copied


def products_behind(group: Group, rows: RowsByGroup) -> Group:
    """The group that multiplies the sorted rows, and reads no groups."""
    nodes, made = list(group.nodes), rows.workspaces
    anchor = nodes[group.anchor]
    weights = anchor.operands[2:]
    nodes[group.anchor] = replace(anchor, operands=(rows.sorted_rows.value, *weights))
    types = (*group.types, *((each.value, each.type) for each in made))
    return replace(group, nodes=tuple(nodes), operands=(*group.operands, *made), types=types)


def order_program(group: Group, rows: RowsByGroup) -> LoopProgram:
    """One unit. The count of a group lies two places behind where it starts: once counts are added
    up, its start is one place behind, and has moved there on to its end when all rows are placed."""
    buffers = GroupBuffers(group)
    starts, order = buffers.number(rows.starts), buffers.number(rows.order)
    size = rows.starts.type.shape[0]
    place = Load(starts, _GROUP + 1)
    counted = _add(starts, _GROUP + 2, Constant(1, "i64"))
    placed = (
        LetIndex("place", place),
        Store(order, symbol("place"), FromIndex(_ROW, "i64")),
        _add(starts, _GROUP + 1, Constant(1, "i64")),
    )
    body = (
        For("group", size, "vector", (Store(starts, _GROUP, Constant(0, "i64")),)),
        _by_row(buffers, rows, counted),
        For("group", rows.group_count, "serial", (_add(starts, _GROUP + 2, place),)),
        _by_row(buffers, rows, *placed),
    )
    return finish_program(buffers, body, 1, 1)


def _by_row(buffers: GroupBuffers, rows: RowsByGroup, *body: Statement) -> Statement:
    """Run ``body`` for each row, with its group in scope."""
    groups = rows.groups
    index = dim_add(groups.view.offset, dim_mul(_ROW, groups.view.strides[0]))
    last = FromIndex(dim_add(rows.group_count, -1), "i64")
    own = Apply("max", (Load(buffers.number(groups), index), Constant(0, "i64")), "i64")
    nearest = LetIndex("group", Apply("min", (own, last), "i64"))
    return For("row", groups.type.shape[0], "serial", (nearest, *body))


def _add(buffer: int, index: Dim, value: Value) -> Statement:
    """Add a value to an element."""
    return Store(buffer, index, Apply("add", (Load(buffer, index), value), "i64"))


def copy_program(group: Group, rows: RowsByGroup) -> LoopProgram:
    """Units are places in the order."""
    buffers, source = GroupBuffers(group), rows.rows
    place, depth = symbol(INDEX), source.type.shape[1]
    down, across = source.view.strides
    start = dim_add(source.view.offset, dim_mul(_ROW, down))
    value = Load(buffers.number(source), dim_add(start, dim_mul(symbol("k"), across)))
    to = dim_add(dim_mul(place, depth), symbol("k"))
    copied = Store(buffers.number(rows.sorted_rows), to, value)
    body = (
        LetIndex("row", Load(buffers.number(rows.order), place)),
        For("k", depth, "vector", (copied,)),
    )
    return finish_program(buffers, body, source.type.shape[0], grain_for(depth))
