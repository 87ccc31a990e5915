"""Resampling: indices and weights once per row and column, elements that lie together in lanes.

In: a group anchored by ``resize``, with elementwise followers. Out: its loop programs: units are
outer positions. Not done here: deciding sizes and scales (the frontend).

Coordinates are computed in f64. Up to sixteen taps are written out; more (antialias) are nested
sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_min, dim_mod, dim_mul, dim_product, symbol
from ingot_compiler.ir.types import FLOATS
from ingot_compiler.lowering.groups.fused import Group, Operand
from ingot_compiler.lowering.groups.group_steps import LoweredGroup, one_launch
from ingot_compiler.lowering.groups.guards import clamped
from ingot_compiler.lowering.groups.space import Run, Space, ceil_div, point
from ingot_compiler.lowering.groups.views import storage_order
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout
from ingot_compiler.lowering.kinds.launches_in_turn import launches_in_turn
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.kinds.resize_axis import ResizeAxis, resize_axis, tap_weight
from ingot_compiler.lowering.kinds.resize_scope import ResizeScope
from ingot_compiler.lowering.kinds.resize_whole import whole_step
from ingot_compiler.lowering.kinds.split_resize import split_resize
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, Local, Value
from ingot_compiler.lowering.loops.program import For, LoopProgram, Reduce, Statement
from ingot_runtime.lazy_dataclass import dataclass

# Of an image that leaves the second cache, so few rows share the indices and weights of a column
# that each is prefetched as a stream (1920x1080 to 640x360: 8.9 ms with all rows, 3.7 with 8).
_ROWS_TOGETHER = 8
_CACHED_ELEMENTS_MAX = 1 << 17
_STREAMED_ELEMENTS_MIN = 1 << 18
_STREAMED_ROW_MIN = 80
Chosen = Mapping[int, Dim]
"""The index of x that was chosen along each axis so far, before clamping."""


def lower_resize(group: Group, target: KernelTarget) -> LoweredGroup:
    """One launch, or one for the axis in lanes behind those for the others."""
    del target
    parts = split_resize(group)
    if parts is None:
        return one_launch(_program(group))
    programs = tuple(_program(part) for part in parts.parts)
    return launches_in_turn(group, parts.parts, programs, *parts.between)


def _program(group: Group) -> LoopProgram:
    """Outer positions in units, then the second innermost axis of the result's layout, then the
    innermost in lanes: around some rows where indices and weights are the same for all of them."""
    scope = ResizeScope.of(group)
    elements, anchor = scope.elements, group.nodes[group.anchor]
    shape, result = dict(group.types)[anchor.results[0]].shape, group.results[0]
    order = storage_order(result.view, shape)
    outer, row, lane = order[:-2], order[-2:-1], order[-1]
    times = _rows_of_one(scope, row, lane)
    is_alone = bool(row) and lane in scope.axes and row[0] not in scope.axes
    is_large = is_alone and _is_large(scope, shape[row[0]], lane)
    blocks = ceil_div(shape[row[0]], _ROWS_TOGETHER) if is_large else 1
    first = dim_mul(dim_mod(symbol("p"), blocks), _ROWS_TOGETHER)
    space = _space(shape, outer, row, lane, (blocks, first, times))
    levels: list[tuple[Statement, ...]] = []
    axes: dict[int, ResizeAxis] = {}
    for members in (outer, row, (lane,)):
        for position, axis in enumerate(scope.axes):
            if axis in members:
                axes[axis] = resize_axis(scope, position, space.index(axis))
        levels.append(elements.take())
    value = _extrapolated(scope, axes, _Sums(scope, axes, space.indices()).value())
    elements.given[anchor.results[0]] = elements.let(value, scope.dtype)
    stored = elements.stored(result, space)
    together: tuple[Statement, ...] = stored
    if times > 1:
        together = (For("r", times, "unroll", stored),)

    def in_rows(*body: Statement) -> tuple[Statement, ...]:
        if not row:
            return body
        rows = dim_floordiv(shape[row[0]], times)
        count = rows if blocks == 1 else dim_min(_ROWS_TOGETHER, rows - first)
        return (For("x", count, "serial", (*levels[1], *body)),)

    if is_alone or (lane in axes and not row):
        body: tuple[Statement, ...] = (
            For("c", shape[lane], "vector", (*levels[2], *in_rows(*together))),
        )
    else:
        body = in_rows(For("c", shape[lane], "vector", (*levels[2], *together)))
    if times > 1:
        line = For("c", shape[lane], "vector", (*levels[2], *stored))
        apart = in_rows(For("r", times, "serial", (line,)))
        body = _either(_is_streamed(result, shape[lane]), apart, body)
    work = dim_floordiv(dim_product(tuple(shape[axis] for axis in (lane, *row))), blocks)
    units = dim_mul(dim_product(tuple(shape[axis] for axis in outer)), blocks)
    return finish_program(elements.buffers, (*levels[0], *body), units, grain_for(dim_mul(work, 8)))


def _rows_of_one(scope: ResizeScope, row: Sequence[int], lane: int) -> int:
    """How many rows that follow each other are made from the same elements, 1 where lanes need
    indices of their own."""
    steps = {
        axis: whole_step(scope.node, position, scope.size(position))
        for position, axis in enumerate(scope.axes)
        if axis in (*row, lane)
    }
    along = steps.get(row[0]) if row else None
    return 1 if along is None or None in steps.values() else along.times


def _is_streamed(result: Operand, length: Dim) -> Dim:
    """1 where equal rows of a result are stored one after the other: it leaves a cache, and memory takes
    one stream faster than several (3x960x1280 of half as many: 0.4 ms instead of 0.8). Of rows of some
    vectors, loops around them take longer."""
    elements = result.type.element_count
    if isinstance(elements, int) and elements <= _STREAMED_ELEMENTS_MIN:
        return 0
    return dim_min(1, dim_floordiv(length, _STREAMED_ROW_MIN))


def _either(
    choice: Dim, one: tuple[Statement, ...], other: tuple[Statement, ...]
) -> tuple[Statement, ...]:
    """The statements for a choice that is 1, or 0; as loops where a run decides."""
    if isinstance(choice, int):
        return one if choice else other
    return (For("apart", choice, "serial", one), For("joined", 1 - choice, "serial", other))


def _is_large(scope: ResizeScope, rows: Dim, lane: int) -> bool:
    """Whether the elements from which rows are made are known to leave a cache between columns."""
    elements = dim_mul(rows, scope.x.type.shape[lane])
    return isinstance(elements, int) and elements > _CACHED_ELEMENTS_MAX


def _space(
    shape: tuple[Dim, ...],
    outer: Sequence[int],
    row: Sequence[int],
    lane: int,
    rows: tuple[Dim, Dim, int],
) -> Space:
    """``rows``: into how many blocks they are cut, the first one of a unit, how many are one."""
    blocks, first, times = rows
    units = [Run(tuple(outer), dim_floordiv(symbol("p"), blocks))] if outer else []
    index = symbol("x") if times == 1 else dim_mul(symbol("x"), times) + symbol("r")
    own = [Run((axis,), first + index) for axis in row]
    return Space(shape, (*units, *own, Run((lane,), symbol("c"))))


@dataclass(frozen=True, slots=True)
class _Sums:
    """The weighted sum at the point ``where`` of the result; ``axes`` by axis of x."""

    scope: ResizeScope
    axes: Mapping[int, ResizeAxis]
    where: tuple[Dim, ...]

    def value(self) -> Value:
        """The sum in its own element type, or the nearest element."""
        if self.scope.node.text("mode") == "nearest":
            return self._load({axis: entry.base for axis, entry in self.axes.items()})
        order = sorted(self.axes)
        return self._summed(order, {}) if self.scope.is_summed else self._written_out(order, {})

    def _load(self, chosen: Chosen) -> Value:
        indices = tuple(
            self._inside(axis, chosen[axis]) if axis in chosen else index
            for axis, index in enumerate(self.where)
        )
        x = self.scope.x
        loaded = self.scope.elements.load(x, point(x.type.shape, indices))
        is_narrow = self.scope.dtype in ("f16", "bf16")
        return Apply("cast", (loaded,), "f32") if is_narrow else loaded

    def _inside(self, axis: int, index: Dim) -> Dim:
        """The nearest index of x."""
        entry = self.axes[axis]
        return index if entry.is_inside else clamped(index, entry.size)

    def _written_out(self, order: Sequence[int], chosen: Chosen) -> Value:
        if not order:
            return self._load(chosen)
        axis, compute = self.axes[order[0]], self.scope.compute
        total: Value | None = None
        for tap, weight in enumerate(axis.weights):
            inner = self._written_out(order[1:], {**chosen, order[0]: axis.base + tap})
            term = Apply("mul", (weight, inner), compute)
            total = term if total is None else Apply("add", (total, term), compute)
        assert total is not None
        return total

    def _summed(self, order: Sequence[int], chosen: Chosen) -> Value:
        """Nested sums; every level divides by the sum of its own weights."""
        if not order:
            return self._load(chosen)
        scope, elements, axis = self.scope, self.scope.elements, order[0]
        entry, variable, compute = self.axes[axis], f"tap{axis}", scope.compute
        index = entry.base + symbol(variable)
        weight = scope.narrowed(tap_weight(scope, entry, scope.axes.index(axis), index))
        outer = elements.take()
        inner = self._summed(order[1:], {**chosen, axis: index})
        body = elements.take()
        term = Apply("mul", (weight, inner), compute)
        total, norm = f"sum{axis}", f"norm{axis}"
        elements.statements += outer
        elements.statements.append(Reduce(total, "sum", variable, entry.count, compute, body, term))
        if not scope.is_normalised:
            return Local(total, compute)
        elements.statements.append(Reduce(norm, "sum", variable, entry.count, compute, (), weight))
        return Apply("div", (Local(total, compute), Local(norm, compute)), compute)


def _extrapolated(scope: ResizeScope, axes: Mapping[int, ResizeAxis], value: Value) -> Value:
    """The value in the result's element type, or the extrapolation value where a coordinate is
    outside of x."""
    is_float = scope.dtype in FLOATS
    compute = scope.compute if is_float else scope.dtype
    outside = [test for axis in axes.values() for test in axis.outside]
    if outside:
        somewhere = outside[0]
        for test in outside[1:]:
            somewhere = Apply("logical_or", (somewhere, test), "bool")
        number = scope.node.real("extrapolation_value")
        fill = Constant(number if is_float else int(number), compute)
        value = Apply("select", (somewhere, fill, value), compute)
    return value if compute == scope.dtype else Apply("cast", (value,), scope.dtype)


RESIZE = Kind("resize", lower_resize, ResultLayout.LIKE_FIRST_OPERAND)
