"""The window of a pool at a point of its result: which taps lie inside the image, what an average
divides by.

In: a pool, a position. Out: ``PoolWindow``, the divisor. Not done here: loops (``pool``,
``pool_lanes``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_max, dim_min, dim_mul, dim_product
from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.space import Space
from ingot_compiler.lowering.groups.views import Shape
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PoolWindow:
    """One axis of the window at an output position: first kernel tap inside, number of taps inside,
    input start."""

    first: Dim
    count: Dim
    start: Dim
    dilation: int

    def source(self, tap: Dim) -> Dim:
        """Where a tap of those inside lies."""
        return self.start + dim_mul(self.first + tap, self.dilation)


def pool_window(node: Node, axis: int, position: Dim, size: Dim) -> PoolWindow:
    """The window along one axis of the image, of ``size``."""
    kernel, stride = node.ints("kernel")[axis], node.ints("strides")[axis]
    dilation, pad = node.ints("dilations")[axis], node.dims("pads_before")[axis]
    start = dim_mul(position, stride) - pad
    # Taps t with 0 <= start + t*dilation < size.
    first = dim_max(0, dim_floordiv(dilation - 1 - start, dilation)) if pad != 0 else 0
    last = dim_min(kernel, dim_max(0, dim_floordiv(size - start + dilation - 1, dilation)))
    return PoolWindow(first, dim_max(last - first, 0), start, dilation)


def whole_window(node: Node, axis: int, position: Dim) -> PoolWindow:
    """The window along one axis where all of it is inside."""
    start = dim_mul(position, node.ints("strides")[axis]) - node.dims("pads_before")[axis]
    return PoolWindow(0, node.ints("kernel")[axis], start, node.ints("dilations")[axis])


def clipped_windows(node: Node, space: Space, source: Shape) -> list[PoolWindow]:
    """What of the window at a point is inside of an image of shape ``source``."""
    return [
        pool_window(node, axis, space.index(2 + axis), size) for axis, size in enumerate(source[2:])
    ]


def inner_windows(node: Node, space: Space, source: Shape, result: Shape) -> list[PoolWindow]:
    """``clipped_windows``, but whole ones along axes where each is known to be inside."""
    clipped = clipped_windows(node, space, source)
    for axis, (size, new) in enumerate(zip(source[2:], result[2:], strict=True)):
        last = whole_window(node, axis, new - 1)
        end = last.source(last.count - 1)
        known = isinstance(size, int) and isinstance(end, int) and end < size
        if known and node.dims("pads_before")[axis] == 0:
            clipped[axis] = whole_window(node, axis, space.index(2 + axis))
    return clipped


def average_count(group: Group, space: Space, windows: Sequence[PoolWindow] | None = None) -> Dim:
    """Elements that the average of a group counts at a point: those inside, which are ``windows``
    where the caller knows them, or also the pads that ``count_include_pad`` names."""
    node = group.nodes[group.anchor]
    source = dict(group.types)[node.operands[0]].shape
    windows = windows or clipped_windows(node, space, source)
    if not node.flag("count_include_pad"):
        return dim_product(tuple(window.count for window in windows))
    count: Dim = 1
    for axis, (window, size) in enumerate(zip(windows, source[2:], strict=True)):
        limit = size + node.dims("pads_counted_after")[axis]
        taps = dim_floordiv(limit - window.start + window.dilation - 1, window.dilation)
        count = dim_mul(count, dim_min(node.ints("kernel")[axis], taps))
    return count
