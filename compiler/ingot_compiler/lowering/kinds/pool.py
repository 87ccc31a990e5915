"""Max and average pooling: windows clipped to the image, channels in lanes where they lie together.

In: a group anchored by ``max_pool`` or ``average_pool``. Out: its launches. Not done here: global
pooling (a ``reduce``), how large windows are divided (``split_pool``), images that lie row by row
(``pool_lanes``, ``pool_planes``, ``pool_short_rows``). Source: ONNX MaxPool-22, AveragePool-22.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.dims import dim_floordiv, dim_mod, dim_mul, dim_product, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.sizes.typical import typical
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.group_steps import LoweredGroup, one_launch
from ingot_compiler.lowering.groups.space import Space, point
from ingot_compiler.lowering.groups.views import Shape
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.image_rows import COLUMN, point_of_row, row_count
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout
from ingot_compiler.lowering.kinds.launches_in_turn import launches_in_turn
from ingot_compiler.lowering.kinds.pool_lanes import lower_pool_lanes
from ingot_compiler.lowering.kinds.pool_planes import lower_small_planes
from ingot_compiler.lowering.kinds.pool_short_rows import lower_short_rows
from ingot_compiler.lowering.kinds.pool_window import (
    PoolWindow,
    average_count,
    inner_windows,
    whole_window,
)
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.kinds.reduce import nested_reduce
from ingot_compiler.lowering.kinds.reduction import ReduceFunction
from ingot_compiler.lowering.kinds.split_pool import split_pool
from ingot_compiler.lowering.loops.loop_values import Apply, Compare, FromIndex, Local, Value
from ingot_compiler.lowering.loops.program import For, If, LoopProgram, Statement
from ingot_compiler.lowering.loops.substitute_indices import substitute_indices
from ingot_runtime.lazy_dataclass import dataclass

_WRITTEN_OUT_MAX = 32  # taps


def lower_pool(group: Group, target: KernelTarget) -> LoweredGroup:
    """One launch, or several where windows are large."""
    by_rows = (
        lower_small_planes(group, target)
        or lower_short_rows(group, target)
        or lower_pool_lanes(group)
    )
    if by_rows is not None:
        return by_rows
    split = split_pool(group)
    if split is None:
        return one_launch(_program(group, group, target))
    parts, between = split
    programs = [_program(part, None, target) for part in parts[:-1]]
    last = _program(parts[-1], group, target)
    return launches_in_turn(group, parts, (*programs, last), *between)


def _program(group: Group, whole: Group | None, target: KernelTarget) -> LoopProgram:
    """Units are (image, output row); inside, output columns, then channels. Where units come in
    teams, each is one pixel. ``whole``: what an average is of; None: the group gives a sum."""
    anchor = group.nodes[group.anchor]
    shape, kernel = dict(group.types)[anchor.results[0]].shape, anchor.ints("kernel")
    pool = _ChannelPool(group, whole, Elements(group, GroupBuffers(group)))
    column, buffers = pool.column(), pool.elements.buffers
    taps = dim_product(tuple(map(typical, kernel)))
    work = dim_mul(dim_mul(shape[-1], shape[1]), taps)
    if target.team_units > 1:
        row, at = (each(symbol(INDEX), shape[-1]) for each in (dim_floordiv, dim_mod))
        body = substitute_indices(column, {INDEX: row, COLUMN: at})
        return finish_program(buffers, body, dim_mul(row_count(shape), shape[-1]), 1)
    columns = For(COLUMN, shape[-1], "serial", column)
    return finish_program(buffers, (columns,), row_count(shape), grain_for(work))


@dataclass(frozen=True, slots=True)
class _ChannelPool:
    """A pool at one column of the result, whose channels are in lanes."""

    group: Group
    average_of: Group | None
    elements: Elements

    @property
    def anchor(self) -> Node:
        """The pool."""
        return self.group.nodes[self.group.anchor]

    def column(self) -> tuple[Statement, ...]:
        """All channels: few taps that are all inside of the image are written out."""
        space, source = self._space(), self._x().type.shape
        axes = range(len(source) - 2)
        clipped = inner_windows(self.anchor, space, source, self._shape())
        whole = [whole_window(self.anchor, axis, space.index(2 + axis)) for axis in axes]
        taps = dim_product(tuple(window.count for window in whole))
        if not isinstance(taps, int) or taps > _WRITTEN_OUT_MAX:
            return (self._channels(clipped, unroll=False),)
        inside = [window.count for window in clipped]
        tests = [
            Compare("equal", count, window.count)
            for count, window in zip(inside, whole, strict=True)
            if count != window.count
        ]
        if not tests:
            return (self._channels(whole, unroll=True),)
        test: Value = tests[0]
        for other in tests[1:]:
            test = Apply("logical_and", (test, other), "bool")
        return (
            If(test, (self._channels(whole, unroll=True),)),
            If(Apply("logical_not", (test,), "bool"), (self._channels(clipped, unroll=False),)),
        )

    def _channels(self, windows: Sequence[PoolWindow], *, unroll: bool) -> Statement:
        space, elements = self._space(), self.elements
        body = self._total(windows, space, unroll=unroll)
        body = (*body, *elements.stored(self.group.results[0], space))
        return For("c", self._x().type.shape[1], "vector", body)

    def _total(
        self, windows: Sequence[PoolWindow], space: Space, *, unroll: bool
    ) -> tuple[Statement, ...]:
        """The statements after which the anchor's element is given."""
        elements, anchor, x = self.elements, self.anchor, self._x()
        source, dtype = x.type.shape, x.type.dtype
        where = tuple(window.source(symbol(f"t{i}")) for i, window in enumerate(windows))
        load = elements.load(x, point(source, (space.index(0), symbol("c"), *where)))
        loops = [(f"t{i}", window.count) for i, window in enumerate(windows)]
        function: ReduceFunction = "max" if anchor.op == "max_pool" else "sum"
        name = elements.fresh("total")
        reduce = nested_reduce(name, function, loops, dtype, ((), load), lanes=False, unroll=unroll)
        total: Value = Local(name, dtype)
        if anchor.op == "average_pool" and self.average_of is not None:
            own = windows if self.average_of is self.group else None
            count = average_count(self.average_of, space, own)
            total = Apply("div", (total, FromIndex(count, dtype)), dtype)
        elements.given[anchor.results[0]] = elements.let(total, dtype)
        return (reduce, *elements.take())

    def _x(self) -> Operand:
        return self.elements.operand(self.anchor, 0)

    def _shape(self) -> Shape:
        return self.elements.types[self.anchor.results[0]].shape

    def _space(self) -> Space:
        return point_of_row(self._shape(), symbol("c"))


POOL = Kind("pool", lower_pool, ResultLayout.LIKE_FIRST_OPERAND)
