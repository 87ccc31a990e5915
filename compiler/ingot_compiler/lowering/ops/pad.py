"""``pad``: constant, edge, reflect and wrap (ONNX Pad-19).

In: a node. Out: its element. Not done here: the halo of convolutions (a layout, see ``fuse``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_max, dim_min, dim_mod
from ingot_compiler.ir.graph import Node
from ingot_compiler.ir.sizes.ranges import at_most
from ingot_compiler.ir.types import TensorType
from ingot_compiler.lowering.groups.fused import View
from ingot_compiler.lowering.groups.guards import all_of, clamped, is_within
from ingot_compiler.lowering.groups.space import Space, point
from ingot_compiler.lowering.loops.index_range import Extents, index_range, stays_within
from ingot_compiler.lowering.loops.loop_values import Apply, Value
from ingot_compiler.lowering.ops.element import PICKED, ElementScope


def _reflected(index: Dim, extent: Dim, extents: Extents) -> Dim:
    # A mirror without repeated edge has period 2*(extent - 1); for extent 1 every index is 0.
    if stays_within(index, 1 - extent, 1, extents):
        return -index
    if stays_within(index, extent - 1, 2 * extent - 1, extents):
        return 2 * (extent - 1) - index
    period = dim_max(2 * (extent - 1), 1)
    folded = dim_mod(index, period)
    return dim_min(folded, period - folded) if extent != 1 else 0


def _wrapped(index: Dim, extent: Dim, extents: Extents) -> Dim:
    if stays_within(index, -extent, 0, extents):
        return index + extent
    if stays_within(index, extent, 2 * extent, extents):
        return index - extent
    return index - extent * dim_floordiv(index, extent)


def _clamped(index: Dim, extent: Dim, extents: Extents) -> Dim:
    found = index_range(index, extents)
    if found is not None and at_most(found[1], 0):
        return 0
    return (
        extent - 1
        if found is not None and at_most(extent - 1, found[0])
        else clamped(index, extent)
    )


def _source_index(mode: str, index: Dim, extent: Dim, extents: Extents) -> Dim:
    """Where the element comes from: simple where it is known on which side it lies."""
    if stays_within(index, 0, extent, extents):
        return index
    if mode == "reflect":
        return _reflected(index, extent, extents)
    if mode == "wrap":
        return _wrapped(index, extent, extents)
    return _clamped(index, extent, extents)


def element(elements: ElementScope, node: Node, space: Space) -> Value:
    """X at the index moved by ``before``; outside, the pad value or the index that ``mode``
    gives."""
    data = elements.operand(node, 0)
    shape, mode, extents = data.type.shape, node.text("mode"), elements.extents
    pads = zip(node.dims("before"), node.dims("after"), strict=True)
    padded = {axis for axis, (before, after) in enumerate(pads) if before != 0 or after != 0}
    where = [space.index(axis) - before for axis, before in enumerate(node.dims("before"))]
    crossed = [
        axis for axis in sorted(padded) if not stays_within(where[axis], 0, shape[axis], extents)
    ]
    inside = all_of(is_within(0, where[axis], shape[axis]) for axis in crossed)
    outside = any(_stays_outside(where[axis], shape[axis], extents) for axis in crossed)
    # Under the condition nothing is read outside; a bound would keep lanes from lying together.
    for axis in padded if mode != "constant" else ():
        where[axis] = _source_index(mode, where[axis], shape[axis], extents)
    loaded = elements.load(data, point(shape, tuple(where)))
    if mode != "constant" or not crossed:
        return loaded
    value = elements.value(node.operands[1], point((), ()))
    if outside:
        return value
    return Apply("select", (inside, loaded, value), elements.dtype(node.results[0]))


def _stays_outside(index: Dim, extent: Dim, extents: Extents) -> bool:
    found = index_range(index, extents)
    return found is not None and (at_most(found[1], -1) or at_most(extent, found[0]))


def strides_along(node: Node, data: View, value: TensorType) -> tuple[Dim, ...]:
    """How the tensor lies along the axes that have no pads."""
    del value
    pads = zip(data.strides, node.dims("before"), node.dims("after"), strict=True)
    return tuple(stride if pad == [0, 0] else PICKED for stride, *pad in pads)
