"""What a reduction is: its axes, which of them run in lanes, how its total is stored.

In: a group anchored by ``reduce``. Out: ``Reduction``. Not done here: its loops (``reduce``,
``split_reduce``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal as OneOf

from ingot_compiler.ir.dims import (
    Dim,
    dim_add,
    dim_floordiv,
    dim_max,
    dim_min,
    dim_mod,
    dim_mul,
    dim_product,
    symbol,
)
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.elements import Elements
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.space import Run, Space, ceil_div
from ingot_compiler.lowering.groups.views import broadcast_view, storage_order
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.program import INDEX
from ingot_compiler.lowering.loops.loop_values import Apply, Compare, FromIndex, Value
from ingot_compiler.lowering.loops.program import For, If, Statement
from ingot_compiler.lowering.ops import STRIDES
from ingot_runtime.lazy_dataclass import dataclass

ReduceFunction = OneOf["sum", "product", "max", "min"]
LANE = "j"
_APART_MAX = 4  # elements from lane to lane
_APART_LANES_MIN = 16  # a vector of any target
_SHORT_MAX, SHORT_SUM = 8, 4  # elements of a row that a run finds to be short
_BLOCK = 1024  # lanes of a unit whose elements lie apart
_BESIDE = "beside"
_TOGETHER = 4  # results that share elements: with as many registers for each they fill 16
_SHARED_MIN = 16  # results, and elements of one
LANES_MIN = 8  # results beside each other that are in lanes where no operand has all elements
_FUNCTIONS: dict[str, ReduceFunction] = {
    "max": "max",
    "mean": "sum",
    "min": "min",
    "product": "product",
    "sum": "sum",
}


@dataclass(frozen=True, slots=True)
class Reduction:
    """``reduced``: axes from the outermost in memory to the innermost; ``outer``: kept axes but
    ``lane_axis``, which runs in lanes; ``together``: how many of their positions are one unit."""

    group: Group
    anchor: Node
    source: TensorType
    result: TensorType
    reduced: tuple[int, ...]
    outer: tuple[int, ...]
    lane_axis: int | None
    together: int = 1

    @staticmethod
    def of(group: Group) -> Reduction:
        """Read a group."""
        anchor, types = group.nodes[group.anchor], dict(group.types)
        source = types[anchor.operands[0]]
        axes = set(anchor.ints("axes"))
        reduced = tuple(axis for axis in _operand_order(group, source) if axis in axes)
        kept = tuple(
            axis for axis in range(source.rank) if axis not in axes and source.shape[axis] != 1
        )
        lane_axis = _lane_axis(group, source, kept)
        if lane_axis is None and anchor.text("function") in ("max", "min"):
            lane_axis = _axis_apart(group, source, kept)
        outer = tuple(axis for axis in kept if axis != lane_axis)
        return Reduction(group, anchor, source, types[anchor.results[0]], reduced, outer, lane_axis)

    def of_short_rows(self) -> tuple[Dim, Reduction] | None:
        """Where only a run knows how many elements lie together that are reduced: 0 for sizes of
        which they are few, else 1, and the reduction whose lanes are rows of them, gathered. None
        where that is no form of it."""
        most = self._short_row()
        if self.lane_axis is not None or most == 0:
            return None
        views = [operand.view for operand in _whole_operands(self.group, self.source)]
        for axis in self.outer:
            steps, count = {view.strides[axis] for view in views}, self.element_count
            has_lanes = typical(self.source.shape[axis]) >= _APART_LANES_MIN
            if has_lanes and steps == {count} and not isinstance(count, int):
                outer = tuple(other for other in self.outer if other != axis)
                many = dim_max(0, dim_add(count, -most))
                is_none = dim_add(1, dim_mul(-1, dim_min(1, count)))
                return dim_min(1, many + is_none), replace(self, outer=outer, lane_axis=axis)
        return None

    def _short_row(self) -> int:
        """Elements of a row up to which rows in lanes are faster, and have the same bits."""
        if self.function in ("max", "min"):
            return _SHORT_MAX
        is_summed = self.function == "sum" and self.result.dtype in ("f32", "f64")
        return SHORT_SUM if is_summed and len(self.reduced) == 1 else 0

    @property
    def function(self) -> ReduceFunction:
        """How two elements are joined."""
        return _FUNCTIONS[self.anchor.text("function")]

    @property
    def element_count(self) -> Dim:
        """Elements that one result is made from."""
        return dim_product(tuple(self.source.shape[axis] for axis in sorted(self.reduced)))

    @property
    def is_apart(self) -> bool:
        """Whether the elements of neighbours in lanes lie a few apart, which are reduced."""
        axis = self.lane_axis
        views = [operand.view for operand in _whole_operands(self.group, self.source)]
        return axis is not None and bool(views) and all(view.strides[axis] != 1 for view in views)

    @property
    def unit_count(self) -> Dim:
        """Results, those in lanes of a unit counted as one."""
        return dim_mul(ceil_div(self._positions, self.together), self._blocks)

    @property
    def lane(self) -> Dim:
        """Which result along ``lane_axis`` is that of a lane."""
        return self._first + symbol(LANE)

    @property
    def unit(self) -> Dim:
        """Which result along the outer axes is that of a unit."""
        if self.together == 1:
            return dim_floordiv(symbol(INDEX), self._blocks)
        return self._position if self._fills_units else dim_min(self._position, self._positions - 1)

    def behind(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """What runs with a total, unless that is one behind the last result."""
        if self._fills_units:
            return body
        return (If(Compare("less", self._position, self._positions), body),)

    @property
    def lane_extent(self) -> Dim:
        """Results in lanes of a unit."""
        count = self.lane_count
        return dim_min(_BLOCK, count - self._first) if self.is_apart else count

    @property
    def _positions(self) -> Dim:
        return dim_product(tuple(self.source.shape[axis] for axis in self.outer))

    @property
    def _position(self) -> Dim:
        return symbol(INDEX) * self.together + symbol(_BESIDE)

    @property
    def _fills_units(self) -> bool:
        return dim_mod(self._positions, self.together) == 0

    @property
    def _blocks(self) -> Dim:
        return ceil_div(self.lane_count, _BLOCK) if self.is_apart else 1

    @property
    def _first(self) -> Dim:
        return dim_mul(dim_mod(symbol(INDEX), self._blocks), _BLOCK)

    @property
    def lane_count(self) -> Dim:
        """Results that run in lanes, 1 if none does."""
        return 1 if self.lane_axis is None else self.source.shape[self.lane_axis]

    def result_space(self) -> Space:
        """The result's point: reduced axes are of size 1 or gone."""
        kept = [axis for axis in range(self.source.rank) if axis not in self.reduced]
        same_rank = self.result.rank == self.source.rank
        place = {axis: axis if same_rank else position for position, axis in enumerate(kept)}
        runs = [Run(tuple(place[axis] for axis in self.outer), self.unit)]
        if self.lane_axis is not None:
            runs.append(Run((place[self.lane_axis],), self.lane))
        return Space(self.result.shape, tuple(runs))


def in_lanes(reduction: Reduction, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The statements for all results in lanes."""
    if reduction.lane_axis is None:
        return body
    if reduction.together > 1:
        body = (For(_BESIDE, reduction.together, "unroll", body),)
    return (For(LANE, reduction.lane_extent, "vector", body),)


def in_blocks(reduction: Reduction, target: KernelTarget) -> Reduction:
    """The reduction with some results together that read the same elements in lanes, as those of a
    product do: each of these is loaded once for all of them."""
    source, lane = reduction.source, reduction.lane_axis
    if lane is None or not reduction.outer or target.team_units > 1 or target.f32_lanes == 1:
        return reduction
    row = reduction.outer[-1]
    sizes = source.shape[row], reduction.element_count
    columns = [strides[row] for strides in _strides(reduction) if strides[lane] != 0]
    are_shared = bool(columns) and all(step == 0 for step in columns)
    are_many = all(typical(size) >= _SHARED_MIN for size in sizes)
    return replace(reduction, together=_TOGETHER) if are_shared and are_many else reduction


def _strides(reduction: Reduction) -> Iterator[tuple[Dim, ...]]:
    """How the operands lie that are broadcast to what is reduced."""
    shape = reduction.source.shape
    for operand in reduction.group.operands:
        if operand.type.rank == len(shape):
            yield broadcast_view(operand.view, operand.type.shape, shape).strides


def store_total(
    reduction: Reduction, group: Group, elements: Elements, total: Value
) -> tuple[Statement, ...]:
    """What becomes of the total: a mean is divided, followers are computed, the result is
    stored."""
    dtype = reduction.result.dtype
    if reduction.anchor.text("function") == "mean":
        total = elements.let(
            Apply("div", (total, FromIndex(reduction.element_count, dtype)), dtype), dtype
        )
    before = elements.take()
    elements.given[reduction.anchor.results[0]] = total
    return (*before, *elements.stored(group.results[0], reduction.result_space()))


def _whole_operands(group: Group, source: TensorType) -> list[Operand]:
    return [operand for operand in group.operands if operand.type.shape == source.shape]


def _operand_order(group: Group, source: TensorType) -> tuple[int, ...]:
    for operand in _whole_operands(group, source):
        return storage_order(operand.view, source.shape)
    return tuple(range(source.rank))


def _lane_axis(group: Group, source: TensorType, kept: tuple[int, ...]) -> int | None:
    """The kept axis with stride 1 in an operand of the full shape, or in slices of one that indices
    pick, if it is not tiny; where there is neither, the last one, if its elements lie together in
    all operands that have them."""
    whole = [operand.view.strides for operand in _whole_operands(group, source)]
    whole += _picked_strides(group, source)
    for strides in whole:
        for axis in kept:
            if strides[axis] == 1 and typical(source.shape[axis]) > 1:
                return axis
    if whole or not kept or typical(source.shape[kept[-1]]) < LANES_MIN:
        return None
    views = [each.view for each in group.operands if each.type.rank == source.rank]
    return kept[-1] if {view.strides[kept[-1]] for view in views} == {0, 1} else None


def _axis_apart(group: Group, source: TensorType, kept: tuple[int, ...]) -> int | None:
    """The kept axis whose elements lie so near each other, in all operands of the full shape, that
    whole vectors are loaded: the few between are reduced, and would leave most lanes empty. Not of
    sums, which would have another order than those of an open number of elements."""
    views = [operand.view for operand in _whole_operands(group, source)]
    for axis in kept:
        steps = {view.strides[axis] for view in views}
        is_near = bool(steps) and all(
            isinstance(step, int) and 1 < step <= _APART_MAX for step in steps
        )
        if is_near and typical(source.shape[axis]) >= _APART_LANES_MIN:
            return axis
    return None


def _picked_strides(group: Group, source: TensorType) -> Iterator[tuple[Dim, ...]]:
    """How slices lie that make up a value of the full shape."""
    types, stored = dict(group.types), {operand.value: operand for operand in group.operands}
    for node in group.nodes:
        if node.op in STRIDES and types[node.results[0]].shape == source.shape:
            data, other = node.operands
            yield STRIDES[node.op](node, stored[data].view, types[other])
