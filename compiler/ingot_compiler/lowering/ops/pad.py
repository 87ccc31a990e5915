"""``pad``: constant, edge, reflect and wrap (ONNX Pad-19).

In: a node. Out: its element. Not done here: the zero halo of convolutions (a layout, see ``fuse``).
"""

from __future__ import annotations

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_max, dim_min, dim_mod
from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.loops import Apply, Compare, Constant, Load, Value
from ingot_compiler.lowering.ops.element import ElementScope
from ingot_compiler.lowering.space import Space, point


def _inside(index: Dim, extent: Dim) -> Value:
    return Apply(
        "logical_and", (Compare("less_equal", 0, index), Compare("less", index, extent)), "bool"
    )


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
    return dim_max(dim_min(index, extent - 1), 0)


def element(elements: ElementScope, node: Node, space: Space) -> Value:
    """X at the index moved by ``before``; outside, the pad value or the index that ``mode``
    gives."""
    data = elements.operand(node, 0)
    mode = node.text("mode")
    inside: Value = Constant(True, "bool")
    where: list[Dim] = []
    for axis, (pad, pad_after) in enumerate(
        zip(node.dims("before"), node.dims("after"), strict=True)
    ):
        index = space.index(axis) - pad
        if pad == 0 and pad_after == 0:
            where.append(index)
            continue
        extent = data.type.shape[axis]
        where.append(_source_index(mode, index, extent))
        inside = Apply("logical_and", (inside, _inside(index, extent)), "bool")
    loaded = Load(
        elements.buffers.number(data), point(data.type.shape, tuple(where)).offset(data.view)
    )
    if mode != "constant":
        return loaded
    value = elements.value(node.operands[1], point((), ()))
    return Apply("select", (inside, loaded, value), elements.dtype(node.results[0]))
