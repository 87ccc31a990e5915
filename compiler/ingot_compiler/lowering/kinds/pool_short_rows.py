"""Pools of images whose rows fit a vector, row by row: all taps of a row are lanes of one vector.

In: a group anchored by a pool. Out: what runs, or None where rows are longer, or windows reach
further than an element inside of the image. Not done here: longer rows (``pool_lanes``), channels
that lie together (``pool``).

A tap beyond the end of a row is the element at that end: a maximum may have it twice, a sum has 0
for it. So each tap is a shuffle of a row that is loaded once, and nothing lies between.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import dim_mul, dim_product, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Group, View
from ingot_compiler.lowering.groups.group_steps import LoweredGroup, one_launch
from ingot_compiler.lowering.groups.guards import clamped, is_within
from ingot_compiler.lowering.groups.space import Run, Space, point
from ingot_compiler.lowering.groups.views import Shape
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.image_rows import COLUMN
from ingot_compiler.lowering.kinds.pool_window import (
    average_count,
    clipped_windows,
    whole_window,
)
from ingot_compiler.lowering.kinds.program import INDEX, finish_program, grain_for
from ingot_compiler.lowering.kinds.reduction import ReduceFunction
from ingot_compiler.lowering.loops.loop_values import Apply, Constant, FromIndex, Local, Value
from ingot_compiler.lowering.loops.program import For, Let, Reduce, Statement

_KERNEL_MAX = 3  # taps along an axis: more are fewer steps along one axis after the other


def has_short_rows(node: Node, x: Shape, result: Shape, target: KernelTarget) -> bool:
    """Whether rows of floats of known sizes fit a vector, windows hold an element of each row and
    column that they begin or end at, and some reach beyond."""
    kernel, strides, pads = node.ints("kernel"), node.ints("strides"), node.dims("pads_before")
    if len(x) != 4 or max(kernel) > _KERNEL_MAX or max(node.ints("dilations")) != 1:
        return False
    reaches = False
    for size, new, taps, stride, pad in zip(x[2:], result[2:], kernel, strides, pads, strict=True):
        if not (isinstance(size, int) and isinstance(new, int) and isinstance(pad, int)):
            return False
        last = (new - 1) * stride - pad
        if size == 0 or pad >= taps or last >= size:
            return False
        reaches |= pad > 0 or last + taps > size
    fits = [isinstance(size, int) and size <= target.f32_lanes for size in (x[3], result[3] + 1)]
    return reaches and all(fits)


def lower_short_rows(group: Group, target: KernelTarget) -> LoweredGroup | None:
    """Planes in units, rows one by one."""
    anchor, types = group.nodes[group.anchor], dict(group.types)
    elements = Elements(group, GroupBuffers(group))
    x, shape = elements.operand(anchor, 0), types[anchor.results[0]].shape
    fits = x.type.dtype == "f32" and has_short_rows(anchor, x.type.shape, shape, target)
    if not fits or not _lies_in_rows(x.view):
        return None
    space = Space(
        shape, (Run((0, 1), symbol(INDEX)), Run((2,), symbol("r")), Run((3,), symbol(COLUMN)))
    )
    wide, high = x.type.shape[3], x.type.shape[2]
    down, along = (whole_window(anchor, axis, space.index(2 + axis)) for axis in (0, 1))
    row, column = down.source(symbol("t0")), along.source(symbol("t1"))
    place = (*space.indices()[:2], clamped(row, high), clamped(column, wide))
    value: Value = elements.load(x, point(x.type.shape, place))
    body: tuple[Statement, ...] = ()
    of_row: Value = Local("beside", "f32")
    function: ReduceFunction = "max"
    if anchor.op == "average_pool":
        function, body = "sum", (Let("tap", value),)
        value = _or_zero(Local("tap", "f32"), is_within(0, column, wide))
        of_row = _or_zero(of_row, is_within(0, row, high))
    beside = Reduce("beside", function, "t1", along.count, "f32", body, value, unroll=True)
    total = Reduce("total", function, "t0", down.count, "f32", (beside,), of_row, unroll=True)
    result: Value = Local("total", "f32")
    if anchor.op == "average_pool":
        result = Apply("div", (result, _count(group, space, x.type.shape)), "f32")
    elements.given[anchor.results[0]] = result
    lanes = For(COLUMN, shape[3], "vector", (total, *elements.stored(group.results[0], space)))
    rows = For("r", shape[2], "serial", (lanes,))
    work = dim_mul(shape[2], dim_product(anchor.ints("kernel")))
    planes = dim_product(shape[:2])
    return one_launch(
        finish_program(elements.buffers, (rows,), planes, grain_for(dim_mul(work, 2)))
    )


def _or_zero(value: Value, inside: Value) -> Value:
    return Apply("select", (inside, value, Constant(0.0, "f32")), "f32")


def _count(group: Group, space: Space, source: Shape) -> Value:
    """Elements that an average counts."""
    if group.nodes[group.anchor].flag("count_include_pad"):
        return FromIndex(average_count(group, space), "f32")
    windows = clipped_windows(group.nodes[group.anchor], space, source)
    high, wide = (FromIndex(window.count, "f32") for window in windows)
    return Apply("mul", (high, wide), "f32")


def _lies_in_rows(view: View) -> bool:
    return view.strides[3] == 1 and view.strides[1] != 1
