"""The elements of a resampling's operand that make a point of its result along one axis, and their
weights (ONNX Resize-19).

In: a resampling, an index of its result. Out: ``ResizeAxis``; statements that compute it are left
with the scope's elements. Not done here: coordinates (``resize_coordinate``), sums over several
axes (``resize``).
"""

from __future__ import annotations

import math
from dataclasses import replace

from ingot_compiler.ir.dims import Dim
from ingot_compiler.lowering.groups.guards import is_within
from ingot_compiler.lowering.kinds.resize_coordinate import ResizedIndex, coordinate
from ingot_compiler.lowering.kinds.resize_scope import ResizeScope, apply, number
from ingot_compiler.lowering.kinds.resize_whole import whole_step
from ingot_compiler.lowering.loops.loop_values import Apply, FromIndex, Value
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ResizeAxis:
    """One resized axis at a point of the result: the index of tap 0 before clamping, the
    coordinate, the weights of taps that are written out; ``outside``: conditions under which the
    point lies outside of x; ``is_inside``: the index needs no clamping."""

    base: Dim
    coordinate: Value
    size: Dim
    count: Dim
    weights: tuple[Value, ...] = ()
    outside: tuple[Value, ...] = ()
    is_inside: bool = False


def resize_axis(scope: ResizeScope, position: int, index: Dim) -> ResizeAxis:
    """Index and weights along one axis for ``index`` of the result."""
    elements, mode, size = scope.elements, scope.node.text("mode"), scope.size(position)
    step = whole_step(scope.node, position, size)
    if step is not None:
        return ResizeAxis(step.source(index), number(0), size, 1, is_inside=True)
    place = ResizedIndex(scope, position, index)
    where = elements.let(coordinate(place), "f64")
    outside: tuple[Value, ...] = ()
    if scope.node.text("coordinates") == "tf_crop_and_resize":
        outside = apply("less", where, number(0)), apply("less", place.last, where)
    reach = _reach(scope, position)
    if mode == "nearest":
        base = elements.let_index(Apply("cast", (_nearest(scope, where),), "i64"), reach)
        return ResizeAxis(base, where, size, 1, outside=outside)
    first, count = _taps(scope, mode, position)
    below = Apply("cast", (apply("floor", where),), "i64")
    base = elements.let_index(below, reach) + first
    axis = ResizeAxis(base, where, size, count, outside=outside)
    return axis if scope.is_summed else replace(axis, weights=_weights(scope, axis, position))


def _reach(scope: ResizeScope, position: int) -> int:
    """How far the elements of 16 neighbours lie apart where that is known, else 0."""
    size, new = scope.size(position), scope.new_size(position)
    scale, coordinates = scope.given_scale(position), scope.node.text("coordinates")
    if scope.vectors or coordinates == "tf_crop_and_resize":
        return 0
    if isinstance(size, int) and isinstance(new, int) and new > 0:
        length = scale * size or new
        step = size / length
        if coordinates == "align_corners":
            step = (size - 1) / (length - 1) if length > 1 else 0.0
        return math.ceil(15 * step) + 1
    return math.ceil(15 / scale) + 1 if scale and coordinates != "align_corners" else 0


def _nearest(scope: ResizeScope, where: Value) -> Value:
    mode = scope.node.text("nearest_mode")
    if mode in ("ceil", "floor"):
        return apply(mode, where)
    if mode == "round_prefer_ceil":
        return apply("floor", apply("add", where, number(0.5)))
    return apply("ceil", apply("sub", where, number(0.5)))


def _taps(scope: ResizeScope, mode: str, position: int) -> tuple[Dim, Dim]:
    """First tap relative to the floor of the coordinate, and their number."""
    shrink = scope.shrink(position)
    if shrink is None or not scope.vectors:
        return scope.tap_range(position)
    reach = number({"linear": -1.0, "cubic": -2.0}[mode])
    widened = apply("floor", apply("div", reach, shrink))
    first = scope.elements.let_index(Apply("cast", (widened,), "i64")) + 1
    return first, 2 - 2 * first


def _weights(scope: ResizeScope, axis: ResizeAxis, position: int) -> tuple[Value, ...]:
    """The named weights of taps that are written out."""
    elements = scope.elements
    assert isinstance(axis.count, int)
    taps = range(axis.count)
    weights = [tap_weight(scope, axis, position, axis.base + tap) for tap in taps]
    if scope.is_normalised:
        weights = [elements.let(weight, "f64") for weight in weights]
        total = weights[0]
        for weight in weights[1:]:
            total = apply("add", total, weight)
        total = elements.let(total, "f64")
        weights = [apply("div", weight, total) for weight in weights]
    return tuple(elements.let(scope.narrowed(weight), scope.compute) for weight in weights)


def tap_weight(scope: ResizeScope, axis: ResizeAxis, position: int, index: Dim) -> Value:
    """The weight of x's ``index`` before normalisation."""
    shrink = scope.shrink(position)
    offset = apply("sub", FromIndex(index, "f64"), axis.coordinate)
    distance = apply("abs", offset if shrink is None else apply("mul", offset, shrink))
    if scope.node.text("mode") == "linear":
        weight = apply("max", apply("sub", number(1), distance), number(0))
    else:
        named = distance if scope.is_summed else scope.elements.let(distance, "f64")
        weight = _cubic(scope.node.real("cubic_coefficient"), named)
    if not scope.node.flag("exclude_outside"):
        return weight
    return apply("select", is_within(0, index, axis.size), weight, number(0))


def _cubic(a: float, d: Value) -> Value:
    square = apply("mul", d, d)
    bend = apply("sub", apply("mul", number(a + 2), d), number(a + 3))
    near = apply("add", apply("mul", bend, square), number(1))
    steep = apply("sub", apply("mul", number(a), d), number(5 * a))
    tail = apply("add", apply("mul", steep, d), number(8 * a))
    far = apply("sub", apply("mul", tail, d), number(4 * a))
    beyond = apply("select", apply("less", d, number(2)), far, number(0))
    return apply("select", apply("less_equal", d, number(1)), near, beyond)
