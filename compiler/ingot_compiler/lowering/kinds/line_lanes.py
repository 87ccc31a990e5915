"""Lines along one axis of a tensor that run beside each other in lanes: those of an axis whose
elements lie together.

In: an operand, the axis of its lines. Out: ``LineLanes``: units, and what a unit's lanes are. Not
done here: what happens along a line (``argument_reduce``, ``cumsum``).

Where the lines themselves lie together, or nothing does, each line is a unit.
"""

from __future__ import annotations

from collections.abc import Callable

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_min, dim_mod, dim_mul, dim_product, symbol
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.lowering.groups.fused import Operand
from ingot_compiler.lowering.groups.space import Run, Space, ceil_div
from ingot_compiler.lowering.groups.views import Shape
from ingot_compiler.lowering.kinds.lines import other_axes
from ingot_compiler.lowering.kinds.program import INDEX
from ingot_compiler.lowering.loops.program import For, ForKind, Statement
from ingot_runtime.lazy_dataclass import dataclass

_LANE = "lane"
_BLOCK = 1024  # lines of a unit: rows of this length stay in the first cache from step to step


@dataclass(frozen=True, slots=True)
class LineLanes:
    """Lines along ``axis`` of a tensor of ``shape``; those along ``lane_axes``, neighbours that lie
    as one, are in lanes."""

    shape: Shape
    axis: int
    lane_axes: tuple[int, ...]

    @staticmethod
    def of(x: Operand, axis: int) -> LineLanes:
        """Choose the lanes."""
        shape, strides = x.type.shape, x.view.strides
        innermost = [
            other
            for other in other_axes(shape, axis)
            if strides[other] == 1 and typical(shape[other]) > 1
        ]
        return LineLanes._along(x, axis, innermost[:1])

    @staticmethod
    def of_short(x: Operand, axis: int) -> LineLanes | None:
        """Lanes for lines that lie together themselves and have few elements, one line behind the
        other; None where they do not lie so."""
        shape, strides = x.type.shape, x.view.strides
        if strides[axis] != 1:
            return None
        near = [other for other in other_axes(shape, axis) if strides[other] == shape[axis]]
        return LineLanes._along(x, axis, near[:1]) if near else None

    @staticmethod
    def _along(x: Operand, axis: int, lanes: list[int]) -> LineLanes:
        """Lines beside each other along some axes, and those that go on where these end."""
        shape, strides = x.type.shape, x.view.strides
        while lanes and lanes[0] - 1 in other_axes(shape, axis):
            if strides[lanes[0] - 1] != dim_mul(strides[lanes[0]], shape[lanes[0]]):
                break
            lanes.insert(0, lanes[0] - 1)
        return LineLanes(shape, axis, tuple(lanes))

    @property
    def are_alone(self) -> bool:
        """Whether no lines are in lanes: each is a unit."""
        return not self.lane_axes

    @property
    def unit_count(self) -> Dim:
        """How many units there are."""
        return dim_mul(dim_product(tuple(self.shape[axis] for axis in self._outer)), self._blocks)

    @property
    def lines_of_unit(self) -> int:
        """How many lines a unit has, about."""
        return 1 if self.are_alone else min(typical(self.lane_count), _BLOCK)

    @property
    def lane_count(self) -> Dim:
        """How many lines lie together."""
        return dim_product(tuple(self.shape[axis] for axis in self.lane_axes))

    def place(self, index: Dim) -> Space:
        """Where ``axis`` has ``index``, in the line of this unit and lane."""
        return Space(self.shape, (*self._runs(lambda axis: axis), Run((self.axis,), index)))

    def kept_place(self, shape: Shape) -> Space:
        """The point of this line in a tensor of ``shape``, where ``axis`` has the size 1 or is
        gone."""
        gone = len(shape) < len(self.shape)
        return Space(shape, self._runs(lambda axis: axis - (gone and axis > self.axis)))

    @property
    def are_split(self) -> bool:
        """Whether the lines that lie together are those of several units."""
        return typical(self._blocks) > 1

    def in_lanes(
        self, body: tuple[Statement, ...], kind: ForKind = "vector"
    ) -> tuple[Statement, ...]:
        """The statements for all lanes of the unit."""
        if self.are_alone:
            return body
        extent = dim_min(_BLOCK, self.lane_count - self._first)
        return (For(_LANE, extent, kind, body),)

    def _runs(self, renamed: Callable[[int], int]) -> tuple[Run, ...]:
        unit = dim_floordiv(symbol(INDEX), self._blocks)
        runs = (Run(tuple(map(renamed, self._outer)), unit),)
        if self.are_alone:
            return runs
        return (*runs, Run(tuple(map(renamed, self.lane_axes)), self._first + symbol(_LANE)))

    @property
    def _outer(self) -> tuple[int, ...]:
        others = other_axes(self.shape, self.axis)
        return tuple(other for other in others if other not in self.lane_axes)

    @property
    def _blocks(self) -> Dim:
        return 1 if self.are_alone else ceil_div(self.lane_count, _BLOCK)

    @property
    def _first(self) -> Dim:
        return dim_mul(dim_mod(symbol(INDEX), self._blocks), _BLOCK)
