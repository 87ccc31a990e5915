"""Pools of images that lie row by row: neighbours of a row in lanes.

In: a group anchored by a pool. Out: what runs, or None where the image lies otherwise. Not done
here: images whose channels lie together (``pool``), large windows (``split_pool``).

Windows that reach beyond the ends of a row would need a guard for each tap. Instead, what lies
above each other is joined first, into a row of workspace with room at both ends. Narrow floats are
not averaged so, for workspace would round their sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ingot_compiler.ir.dims import (
    Dim,
    dim_floordiv,
    dim_max,
    dim_min,
    dim_mul,
    dim_product,
    symbol,
)
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.types import FLOATS, UNSIGNED, DType, dtype_size_bits
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.group_steps import (
    GroupLaunch,
    GroupSteps,
    LoweredGroup,
    one_launch,
)
from ingot_compiler.lowering.groups.space import Run, Space, ceil_div, point, round_up
from ingot_compiler.lowering.kinds.image_rows import COLUMN
from ingot_compiler.lowering.kinds.pool_window import (
    PoolWindow,
    average_count,
    clipped_windows,
    inner_windows,
    whole_window,
)
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.kinds.reduction import ReduceFunction
from ingot_compiler.lowering.loops.loop_values import (
    Apply,
    Compare,
    Constant,
    FromIndex,
    Load,
    Local,
    Value,
)
from ingot_compiler.lowering.loops.program import Buffer, For, If, Reduce, Statement, Store
from ingot_runtime.lazy_dataclass import dataclass

_ALIGNED = 16  # lanes of every target divide it
_ROWS = 8  # of a unit with rows in workspace: none is read right after it was written
_WRITTEN_OUT_MAX = 8  # taps along an axis
_GAIN_MIN = 1.6  # so many times fewer taps are worth a row of workspace


def lower_pool_lanes(group: Group) -> LoweredGroup | None:
    """One launch, perhaps with workspace."""
    pool = _LanePool.of(group)
    rounds = pool.anchor.op == "average_pool" and pool.dtype not in ("f32", "f64")
    strides, channels = pool.x.view.strides, pool.x.type.shape[1]
    if rounds or strides[-1] != 1 or (strides[1] == 1 and channels != 1):
        return None
    is_direct = pool.inside == (0, pool.shape[-1]) and not pool.gains_by_joining
    return pool.direct() if is_direct else pool.joined()


@dataclass(frozen=True, slots=True)
class _LanePool:
    """``inside``: the columns between which all windows are inside of the row, in whole
    vectors."""

    group: Group
    anchor: Node
    x: Operand
    elements: Elements
    shape: tuple[Dim, ...]
    inside: tuple[Dim, Dim]

    @staticmethod
    def of(group: Group) -> _LanePool:
        """Read a group."""
        elements, anchor = Elements(group, GroupBuffers(group)), group.nodes[group.anchor]
        x, shape = elements.operand(anchor, 0), elements.types[anchor.results[0]].shape
        inside = _columns_inside(anchor, x.type.shape[-1], shape[-1])
        return _LanePool(group, anchor, x, elements, shape, inside)

    @property
    def dtype(self) -> DType:
        """The element type of all buffers of the anchor."""
        return self.x.type.dtype

    @property
    def gains_by_joining(self) -> bool:
        """Whether two steps read so much less than one that a row of workspace costs less."""
        *down, along = self.anchor.ints("kernel")
        above = math.prod(down)
        return above * along >= _GAIN_MIN * (above + along)

    @property
    def row_count(self) -> Dim:
        """Rows of the result."""
        return dim_product(self.shape[:-1])

    @property
    def work(self) -> Dim:
        """Vectors of taps of a row."""
        taps = dim_product(self.anchor.ints("kernel"))
        return dim_floordiv(dim_mul(self.shape[-1], taps), _ALIGNED) + 8

    def space(self, row: Dim, column: Dim) -> Space:
        """A column of a row of the result."""
        last = len(self.shape) - 1
        return Space(self.shape, (Run(tuple(range(last)), row), Run((last,), column)))

    # ---- all windows are inside ------------------------------------------------------------------

    def direct(self) -> LoweredGroup:
        """Rows in units."""
        space = self.space(symbol(INDEX), symbol(COLUMN))
        source = self.x.type.shape
        *outer, _ = inner_windows(self.anchor, space, source, self.shape)
        last = len(self.shape) - 1
        windows = [*outer, whole_window(self.anchor, len(outer), space.index(last))]
        load = self.elements.load(self.x, _place(space, windows, source))
        body = self._stored(space, windows, load, windows)
        row = For(COLUMN, self.shape[-1], "vector", body)
        program = finish_program(
            self.elements.buffers, (row,), self.row_count, grain_for(self.work)
        )
        return one_launch(program)

    # ---- windows reach beyond the ends of a row --------------------------------------------------

    def joined(self) -> LoweredGroup:
        """Some rows in units: into workspace, then along it."""
        number = len(self.elements.buffers.buffers)
        self.elements.buffers.buffers.append(Buffer(self.dtype, written=True))
        first = dim_mul(symbol(INDEX), _ROWS)
        count = dim_min(_ROWS, self.row_count - first)
        body = (
            For("r", count, "serial", self._down(number, first + symbol("r"))),
            For("q", count, "serial", self._along(number, first + symbol("q"))),
        )
        units = ceil_div(self.row_count, _ROWS)
        grain = grain_for(dim_mul(self.work, _ROWS))
        program = finish_program(self.elements.buffers, body, units, grain)
        launch = GroupLaunch(0, tuple(range(number + 1)))
        workspace: tuple[tuple[DType, Dim], ...] = (
            (self.dtype, dim_mul(self.row_count, self._pitch)),
        )
        return LoweredGroup(GroupSteps((launch,), workspace), (program,))

    @property
    def _before(self) -> Dim:
        return self.anchor.dims("pads_before")[-1]

    @property
    def _pitch(self) -> Dim:
        """Elements of a row of workspace: to the end of the last window, at least to that of the
        image."""
        end = whole_window(self.anchor, len(self.shape) - 3, self.shape[-1] - 1)
        reach = dim_mul(end.count - 1, end.dilation) + 1
        return dim_max(end.start + reach, self.x.type.shape[-1]) + self._before

    def _down(self, number: int, row: Dim) -> tuple[Statement, ...]:
        """A row of workspace: what lies above each other, between what changes nothing."""
        width, start = self.x.type.shape[-1], dim_mul(row, self._pitch)
        rest = Constant(_neutral(self.anchor, self.dtype), self.dtype)
        behind = start + self._before + width
        return (
            For("before", self._before, "serial", (Store(number, start + symbol("before"), rest),)),
            *self._joined_rows(number, row, start + self._before + symbol("v")),
            For(
                "after", self._pitch - self._before - width, "serial",
                (Store(number, behind + symbol("after"), rest),),
            ),
        )  # fmt: skip

    def _joined_rows(self, number: int, row: Dim, place: Dim) -> tuple[Statement, ...]:
        """Rows that lie above each other as one; few, all of which are inside, are written out."""
        space, source = self.space(row, 0), self.x.type.shape
        *clipped, _ = clipped_windows(self.anchor, space, source)
        whole = [
            whole_window(self.anchor, axis, space.index(2 + axis)) for axis in range(len(clipped))
        ]
        clipped_rows = self._rows_at(number, space, clipped, place)
        taps = dim_product(tuple(window.count for window in whole))
        if not isinstance(taps, int) or taps > _WRITTEN_OUT_MAX:
            return (clipped_rows,)
        is_whole: Value = Constant(True, "bool")
        for own, all_taps in zip(clipped, whole, strict=True):
            same = Compare("equal", own.count, all_taps.count)
            is_whole = Apply("logical_and", (is_whole, same), "bool")
        others = Apply("logical_not", (is_whole,), "bool")
        return (
            If(is_whole, (self._rows_at(number, space, whole, place),)),
            If(others, (clipped_rows,)),
        )

    def _rows_at(
        self, number: int, space: Space, windows: Sequence[PoolWindow], place: Dim
    ) -> Statement:
        """The total of the rows that windows name, into workspace."""
        source, across = self.x.type.shape, PoolWindow(0, 1, symbol("v"), 1)
        load = self.elements.load(self.x, _place(space, [*windows, across], source))
        body, total = self._total(windows, load)
        return For("v", source[-1], "vector", (*body, Store(number, place, total)))

    def _along(self, number: int, row: Dim) -> tuple[Statement, ...]:
        """A row of the result; of averages, columns where all windows count as many elements are
        apart."""
        (first, end), last = self.inside, self.shape[-1]
        parts = (
            [(0, last)] if self.anchor.op == "max_pool" else [(0, first), (first, end), (end, last)]
        )
        loops: list[Statement] = []
        for part, (start, stop) in enumerate(parts):
            if start == stop:
                continue
            variable = f"{COLUMN}{part}"
            column = start + symbol(variable)
            space = self.space(row, column)
            *outer, clipped = clipped_windows(self.anchor, space, self.x.type.shape)
            whole = whole_window(self.anchor, len(outer), column)
            place = dim_mul(row, self._pitch) + self._before + _source(whole, len(outer))
            counted = whole if (start, stop) == self.inside else clipped
            taps = [PoolWindow(0, 1, 0, 1)] * len(outer) + [whole]
            body = self._stored(space, taps, Load(number, place), [*outer, counted])
            loops.append(For(variable, stop - start, "vector", body))
        return tuple(loops)

    # ---- one element -----------------------------------------------------------------------------

    def _total(
        self, taps: Sequence[PoolWindow], value: Value
    ) -> tuple[tuple[Statement, ...], Value]:
        """The total of ``value`` over the taps of some axes."""
        function: ReduceFunction = "max" if self.anchor.op == "max_pool" else "sum"
        body: tuple[Statement, ...] = ()
        for level, window in reversed(list(enumerate(taps))):
            name, count = self.elements.fresh("total"), window.count
            if count == 1:
                continue
            unroll = isinstance(count, int) and count <= _WRITTEN_OUT_MAX
            body = (
                Reduce(name, function, f"t{level}", count, self.dtype, body, value, unroll=unroll),
            )
            value = Local(name, self.dtype)
        return body, value

    def _stored(
        self, space: Space, taps: Sequence[PoolWindow], load: Value, inside: Sequence[PoolWindow]
    ) -> tuple[Statement, ...]:
        """The statements that store an element; an average counts what is ``inside``."""
        body, total = self._total(taps, load)
        if self.anchor.op == "average_pool":
            count = FromIndex(average_count(self.group, space, inside), self.dtype)
            total = Apply("div", (total, count), self.dtype)
        self.elements.given[self.anchor.results[0]] = total
        return (*body, *self.elements.stored(self.group.results[0], space))


def _columns_inside(anchor: Node, width: Dim, last: Dim) -> tuple[Dim, Dim]:
    """See ``_LanePool``; ``width`` of the image, ``last``: that of the result."""
    window = whole_window(anchor, len(anchor.ints("kernel")) - 1, 0)
    stride, before = anchor.ints("strides")[-1], -window.start
    reach = dim_mul(window.count - 1, window.dilation)
    first = dim_min(round_up(dim_max(ceil_div(before, stride), 0), _ALIGNED), last)
    end = dim_min(dim_floordiv(width - 1 - reach + before, stride) + 1, last)
    if end == last:
        return first, last
    vectors = dim_floordiv(dim_max(end - first, 0), _ALIGNED)
    return first, first + dim_mul(vectors, _ALIGNED)


def _source(window: PoolWindow, level: int) -> Dim:
    """Where the tap of a loop over a window lies."""
    return window.source(0 if window.count == 1 else symbol(f"t{level}"))


def _place(space: Space, windows: Sequence[PoolWindow], source: tuple[Dim, ...]) -> Space:
    """The point of an image of shape ``source`` that the taps of loops name."""
    places = tuple(_source(window, level) for level, window in enumerate(windows))
    return point(source, (space.index(0), space.index(1), *places))


def _neutral(anchor: Node, dtype: DType) -> float:
    """What changes no total."""
    if anchor.op == "average_pool":
        return 0.0
    if dtype in FLOATS:
        return float("-inf")
    return 0 if dtype in UNSIGNED else -(1 << dtype_size_bits(dtype) - 1)
