"""``pad``: constant, edge, reflect and wrap (ONNX Pad-19).

In: a node. Out: its element. Not done here: the halo of convolutions (a layout, see ``fuse``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_max, dim_min, dim_mod
from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.guards import all_of, clamped, is_within
from ingot_compiler.lowering.loops import Apply, Value
from ingot_compiler.lowering.ops.element import ElementScope
from ingot_compiler.lowering.space import Space, point


def _reflected(index: Dim, extent: Dim) -> Dim:
    # A mirror without repeated edge has period 2*(extent - 1); for extent 1 every index is 0.
    period = dim_max(2 * (extent - 1), 1)
    folded = dim_mod(index, period)
    return dim_min(folded, period - folded) if extent != 1 else 0


def _source_index(mode: str, index: Dim, extent: Dim) -> Dim:
    if mode == "reflect":
        return _reflected(index, extent)
    if mode == "wrap":
        return index - extent * dim_floordiv(index, extent)
    return clamped(index, extent)


def element(elements: ElementScope, node: Node, space: Space) -> Value:
    """X at the index moved by ``before``; outside, the pad value or the index that ``mode``
    gives."""
    data = elements.operand(node, 0)
    shape, mode = data.type.shape, node.text("mode")
    pads = zip(node.dims("before"), node.dims("after"), strict=True)
    padded = {axis for axis, (before, after) in enumerate(pads) if before != 0 or after != 0}
    where = [space.index(axis) - before for axis, before in enumerate(node.dims("before"))]
    inside = all_of(is_within(0, where[axis], shape[axis]) for axis in sorted(padded))
    for axis in padded:
        where[axis] = _source_index(mode, where[axis], shape[axis])
    loaded = elements.load(data, point(shape, tuple(where)))
    if mode != "constant":
        return loaded
    value = elements.value(node.operands[1], point((), ()))
    return Apply("select", (inside, loaded, value), elements.dtype(node.results[0]))
