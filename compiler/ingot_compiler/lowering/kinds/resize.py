"""Resampling: indices and weights once per row and column, elements that lie together in lanes.

In: a group anchored by ``resize``, with elementwise followers. Out: its loop program: units are
outer positions.
Not done here: deciding sizes and scales (the frontend).

Coordinates are computed in f64. Up to sixteen taps are written out; more (antialias) are nested
sums.
"""

from __future__ import annotations

from dataclasses import dataclass

from ingot_compiler.ir.dims import Dim, dim_max, dim_min, dim_mul, dim_product, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.resample_rules import tap_count
from ingot_compiler.ir.types import FLOATS, DType
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops import (
    COMPARISONS,
    Apply,
    Compare,
    Constant,
    For,
    FromIndex,
    Local,
    LoopProgram,
    Reduce,
    Statement,
    Store,
    Value,
)
from ingot_compiler.lowering.space import Run, Space, point
from ingot_compiler.lowering.views import storage_order

_WRITTEN_OUT_MAX = 16


def _f(function: str, *arguments: Value) -> Value:
    return Apply(function, arguments, "bool" if function in COMPARISONS else "f64")


def _c(value: float) -> Value:
    return Constant(float(value), "f64")


@dataclass(frozen=True, slots=True)
class _Axis:
    """One resized axis at a point of the result: index of tap 0 before clamping, coordinate, rule
    of the weights."""

    base: Dim
    coordinate: Value
    size: Dim
    count: Dim
    weights: tuple[Value, ...]


class _Resize:
    """Builds the statements of one program."""

    def __init__(self, group: Group) -> None:
        self.node: Node = group.nodes[group.anchor]
        operands = {operand.value: operand for operand in group.operands}
        self.x, *self.vectors = (operands[value] for value in self.node.operands)
        self.buffers = GroupBuffers(group)
        self.elements = Elements(group, self.buffers)
        self.axes = self.node.ints("axes")
        self.dtype: DType = self.x.type.dtype
        self.outside: list[Value] = []

    def _new_size(self, position: int) -> Dim:
        return self.node.dims("sizes")[position]

    def later(self, vector: int, position: int) -> Value:
        """An entry of the scales (0) or of the region (1) that are operands."""
        operand = self.vectors[vector]
        return self.elements.load(operand, point(operand.type.shape, (position,)))

    def scale(self, position: int) -> Value:
        """The factor of an axis."""
        factor = self.node.reals("scales")[position]
        if self.vectors:
            return self.later(0, position)
        new, size = self._new_size(position), self.x.type.shape[self.axes[position]]
        return _c(factor) if factor else _f("div", FromIndex(new, "f64"), FromIndex(size, "f64"))

    def shrink(self, position: int) -> Value | None:
        """The factor that widens an antialias filter; None for a filter of its own width."""
        return _f("min", self.scale(position), _c(1)) if self.node.flag("antialias") else None

    def region(self, position: int) -> tuple[Value, Value]:
        """Start and end of an axis's region of interest, as fractions."""
        if self.vectors:
            return self.later(1, position), self.later(1, position + len(self.axes))
        return _c(self.node.reals("roi")[position]), _c(
            self.node.reals("roi")[position + len(self.axes)]
        )

    def coordinate(self, position: int, index: Dim) -> Value:
        """Where the result's ``index`` along an axis lies in x."""
        size = FromIndex(self.x.type.shape[self.axes[position]], "f64")
        new = FromIndex(self._new_size(position), "f64")
        scale = self.scale(position)
        from_sizes = not self.vectors and not self.node.reals("scales")[position]
        length: Value = new if from_sizes else _f("mul", scale, size)
        where: Value = FromIndex(index, "f64")
        last = _f("sub", size, _c(1))
        step = _f("max", _f("sub", length, _c(1)), _c(1e-300))
        single = _f("equal", length, _c(1))
        mode = self.node.text("coordinates")
        if mode == "asymmetric":
            return _f("div", where, scale)
        if mode == "align_corners":
            return _f("select", single, _c(0), _f("div", _f("mul", where, last), step))
        if mode == "tf_crop_and_resize":
            start, end = self.region(position)
            middle = _f("mul", _f("mul", _c(0.5), _f("add", start, end)), last)
            along = _f("div", _f("mul", _f("mul", where, _f("sub", end, start)), last), step)
            return _f("select", single, middle, _f("add", along, _f("mul", start, last)))
        centred = _f("sub", _f("div", _f("add", where, _c(0.5)), scale), _c(0.5))
        if mode == "pytorch_half_pixel":
            return _f("select", single, _c(0), centred)
        if mode == "half_pixel_symmetric":
            rest = _f("sub", _c(1), _f("div", new, length))
            return _f("add", _f("mul", _f("mul", size, _c(0.5)), rest), centred)
        return centred

    def axis(self, position: int, index: Dim) -> _Axis:
        """Index and weights along one axis; the statements that compute them are left in
        ``elements``."""
        elements = self.elements
        size = self.x.type.shape[self.axes[position]]
        where = elements.let(self.coordinate(position, index), "f64")
        if self.node.text("coordinates") == "tf_crop_and_resize":
            last = _f("sub", FromIndex(size, "f64"), _c(1))
            self.outside += [_f("less", where, _c(0)), _f("less", last, where)]
        mode = self.node.text("mode")
        if mode == "nearest":
            nearest = Apply("cast", (self._nearest(where),), "i64")
            return _Axis(elements.let_index(nearest), where, size, 1, ())
        assert isinstance(mode, str)
        first, count = self.taps(mode, position)
        base = elements.let_index(Apply("cast", (_f("floor", where),), "i64")) + first
        found = _Axis(base, where, size, count, ())
        if self.is_summed:
            return found
        assert isinstance(count, int)
        weights = [self.weight(found, position, base + tap) for tap in range(count)]
        if self.is_normalised:
            weights = [elements.let(weight, "f64") for weight in weights]
            total = weights[0]
            for weight in weights[1:]:
                total = _f("add", total, weight)
            total = elements.let(total, "f64")
            weights = [_f("div", weight, total) for weight in weights]
        named = tuple(elements.let(self.narrowed(weight), self.compute) for weight in weights)
        return _Axis(base, where, size, count, named)

    def taps(self, mode: str, position: int) -> tuple[Dim, Dim]:
        """First tap relative to the floor of the coordinate, and their number."""
        shrink = self.shrink(position)
        factor = self.node.reals("scales")[position]
        if shrink is None or not self.vectors:
            return tap_count(mode, factor, shrink is not None)
        reach = _c({"linear": -1.0, "cubic": -2.0}[mode])
        first = (
            self.elements.let_index(Apply("cast", (_f("floor", _f("div", reach, shrink)),), "i64"))
            + 1
        )
        return first, 2 - 2 * first

    @property
    def compute(self) -> DType:
        """The element type of the sums."""
        return "f64" if self.dtype == "f64" else "f32"

    def narrowed(self, weight: Value) -> Value:
        """A weight in the element type of the sums."""
        return weight if self.compute == "f64" else Apply("cast", (weight,), "f32")

    @property
    def is_normalised(self) -> bool:
        """Whether the weights are divided by their sum."""
        return self.node.flag("antialias") or self.node.flag("exclude_outside")

    @property
    def is_summed(self) -> bool:
        """Whether taps are looped over."""
        mode = self.node.text("mode")
        antialias = self.node.flag("antialias")
        if antialias and self.vectors:
            return True
        counts = [
            tap_count(mode, self.node.reals("scales")[i], antialias)[1]
            for i in range(len(self.axes))
        ]
        total = 1
        for count in counts:
            total *= count
        return total > _WRITTEN_OUT_MAX

    def _nearest(self, where: Value) -> Value:
        mode = self.node.text("nearest_mode")
        if mode in ("ceil", "floor"):
            return _f(mode, where)
        up = mode == "round_prefer_ceil"
        return _f("floor" if up else "ceil", _f("add" if up else "sub", where, _c(0.5)))

    def weight(self, axis: _Axis, position: int, index: Dim) -> Value:
        """The weight of x's ``index`` before normalisation."""
        shrink = self.shrink(position)
        offset = _f("sub", FromIndex(index, "f64"), axis.coordinate)
        distance = _f("abs", offset if shrink is None else _f("mul", offset, shrink))
        if self.node.text("mode") == "linear":
            weight = _f("max", _f("sub", _c(1), distance), _c(0))
        else:
            weight = self._cubic(
                self.elements.let(distance, "f64") if not self.is_summed else distance
            )
        if not self.node.flag("exclude_outside"):
            return weight
        inside = Apply(
            "logical_and",
            (Compare("less_equal", 0, index), Compare("less", index, axis.size)),
            "bool",
        )
        return _f("select", inside, weight, _c(0))

    def _cubic(self, d: Value) -> Value:
        a = self.node.real("cubic_coefficient")
        square = _f("mul", d, d)
        near = _f("add", _f("mul", _f("sub", _f("mul", _c(a + 2), d), _c(a + 3)), square), _c(1))
        steep = _f("sub", _f("mul", _c(a), d), _c(5 * a))
        far = _f("sub", _f("mul", _f("add", _f("mul", steep, d), _c(8 * a)), d), _c(4 * a))
        return _f(
            "select",
            _f("less_equal", d, _c(1)),
            near,
            _f("select", _f("less", d, _c(2)), far, _c(0)),
        )

    def value(self, axes: dict[int, _Axis], where: tuple[Dim, ...]) -> Value:
        """The weighted sum at a point of the result; ``axes`` by axis of x."""
        if self.node.text("mode") == "nearest":
            return self._load(where, {axis: entry.base for axis, entry in axes.items()}, axes)
        order = sorted(axes)
        return (
            self._summed(axes, where, order, {})
            if self.is_summed
            else self._written_out(axes, where, order, {})
        )

    def _load(
        self, where: tuple[Dim, ...], chosen: dict[int, Dim], axes: dict[int, _Axis]
    ) -> Value:
        indices = tuple(
            dim_max(dim_min(chosen[axis], axes[axis].size - 1), 0) if axis in chosen else index
            for axis, index in enumerate(where)
        )
        loaded = self.elements.load(self.x, point(self.x.type.shape, indices))
        return (
            loaded
            if self.dtype in ("f32", "f64") or self.dtype not in FLOATS
            else Apply("cast", (loaded,), "f32")
        )

    def _written_out(
        self,
        axes: dict[int, _Axis],
        where: tuple[Dim, ...],
        order: list[int],
        chosen: dict[int, Dim],
    ) -> Value:
        if not order:
            return self._load(where, chosen, axes)
        axis, rest = order[0], order[1:]
        total: Value | None = None
        for tap, weight in enumerate(axes[axis].weights):
            inner = self._written_out(axes, where, rest, {**chosen, axis: axes[axis].base + tap})
            term = Apply("mul", (weight, inner), self.compute)
            total = term if total is None else Apply("add", (total, term), self.compute)
        assert total is not None
        return total

    def _summed(
        self,
        axes: dict[int, _Axis],
        where: tuple[Dim, ...],
        order: list[int],
        chosen: dict[int, Dim],
    ) -> Value:
        """Nested sums; every level divides by the sum of its own weights."""
        if not order:
            return self._load(where, chosen, axes)
        axis, rest = order[0], order[1:]
        entry, tap = axes[axis], symbol(f"tap{axis}")
        position = self.axes.index(axis)
        weight = self.narrowed(self.weight(entry, position, entry.base + tap))
        outer = self.elements.take()
        inner = self._summed(axes, where, rest, {**chosen, axis: entry.base + tap})
        body = self.elements.take()
        self.elements.statements += outer
        term = Apply("mul", (weight, inner), self.compute)
        name = f"sum{axis}"
        self.elements.statements.append(
            Reduce(name, "sum", f"tap{axis}", entry.count, self.compute, body, term)
        )
        total: Value = Local(name, self.compute)
        if self.is_normalised:
            norm = f"norm{axis}"
            self.elements.statements.append(
                Reduce(norm, "sum", f"tap{axis}", entry.count, self.compute, (), weight)
            )
            total = Apply("div", (total, Local(norm, self.compute)), self.compute)
        return total

    def extrapolated(self, value: Value) -> Value:
        """The value, or the extrapolation value where a coordinate is outside of x."""
        if not self.outside:
            return value
        outside = self.outside[0]
        for test in self.outside[1:]:
            outside = Apply("logical_or", (outside, test), "bool")
        number = self.node.real("extrapolation_value")
        fill = Constant(
            number if self.dtype in FLOATS else int(number),
            self.compute if self.dtype in FLOATS else self.dtype,
        )
        return Apply("select", (outside, fill, value), fill.dtype)


def lower_resize(group: Group, target: KernelTarget) -> LoopProgram:
    """Outer positions in units, then the second innermost axis of the result's layout, then the
    innermost in lanes."""
    del target
    anchor = group.nodes[group.anchor]
    shape = dict(group.types)[anchor.results[0]].shape
    result = group.results[0]
    order = storage_order(result.view, shape)
    outer, row, lane = tuple(order[:-2]), order[-2:-1], order[-1]
    runs = [
        Run(outer, symbol("p")),
        *(Run((axis,), symbol("x")) for axis in row),
        Run((lane,), symbol("c")),
    ]
    space = Space(shape, tuple(runs if outer else runs[1:]))
    build = _Resize(group)
    levels: list[tuple[Statement, ...]] = []
    axes: dict[int, _Axis] = {}
    for members in (outer, row, (lane,)):
        for position, axis in enumerate(build.axes):
            if axis in members:
                axes[axis] = build.axis(position, space.index(axis))
        levels.append(build.elements.take())
    value = build.extrapolated(build.value(axes, space.indices()))
    elements = build.elements
    dtype = build.compute if build.dtype in FLOATS else build.dtype
    stored_dtype = build.dtype
    elements.given[anchor.results[0]] = elements.let(
        value if dtype == stored_dtype else Apply("cast", (value,), stored_dtype), stored_dtype
    )
    final = elements.value(result.value, space)
    store = Store(
        build.buffers.number(result), space.offset_of(result.view, result.type.shape), final
    )
    body: tuple[Statement, ...] = (
        For("c", shape[lane], "vector", (*levels[2], *elements.take(), store)),
    )
    body = (For("x", shape[row[0]], "serial", (*levels[1], *body)),) if row else body
    work = dim_mul(shape[lane], dim_product(tuple(shape[axis] for axis in row)))
    units = dim_product(tuple(shape[axis] for axis in outer))
    return finish_program(build.buffers, (*levels[0], *body), units, grain_for(dim_mul(work, 8)))


RESIZE = Kind("resize", one_kernel(lower_resize), ResultLayout.LIKE_FIRST_OPERAND)
