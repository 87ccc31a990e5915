"""Max and average pooling: windows clipped to the image, channels in lanes where they lie together.

In: a group anchored by ``max_pool`` or ``average_pool``. Out: its loop program. Not done here:
global pooling (a ``reduce``). Source: ONNX MaxPool-22, AveragePool-22.
"""

from __future__ import annotations

from dataclasses import dataclass

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_max, dim_min, dim_mul, dim_product, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.kinds.reduce import nested_reduce
from ingot_compiler.lowering.loops import (
    Apply,
    For,
    FromIndex,
    Local,
    LoopProgram,
    Statement,
    Store,
    Value,
)
from ingot_compiler.lowering.space import Run, Space, point
from ingot_compiler.lowering.typical import typical


@dataclass(frozen=True, slots=True)
class _Window:
    """One axis of the window at an output position: first kernel tap inside, number of taps inside,
    input start."""

    first: Dim
    count: Dim
    start: Dim
    dilation: int


def _window(node: Node, axis: int, position: Dim, size: Dim) -> _Window:
    kernel, stride = node.ints("kernel")[axis], node.ints("strides")[axis]
    dilation, pad = node.ints("dilations")[axis], node.dims("pads_before")[axis]
    start = dim_mul(position, stride) - pad
    # Taps t with 0 <= start + t*dilation < size.
    first = dim_max(0, dim_floordiv(dilation - 1 - start, dilation)) if pad != 0 else 0
    last = dim_min(kernel, dim_max(0, dim_floordiv(size - start + dilation - 1, dilation)))
    return _Window(first, dim_max(last - first, 0), start, dilation)


def lower_pool(group: Group, target: KernelTarget) -> LoopProgram:
    """Units are (image, output row); inside, output columns, then channels."""
    del target
    anchor = group.nodes[group.anchor]
    types = dict(group.types)
    x = next(operand for operand in group.operands if operand.value == anchor.operands[0])
    shape = types[anchor.results[0]].shape
    spatial = tuple(range(2, len(shape)))
    outer_axes = (0, *spatial[:-1])
    space = Space(
        shape,
        (Run(outer_axes, symbol("p")), Run((spatial[-1],), symbol("x")), Run((1,), symbol("c"))),
    )
    windows = [
        _window(anchor, i, space.index(axis), x.type.shape[axis]) for i, axis in enumerate(spatial)
    ]
    taps = [symbol(f"t{i}") for i in range(len(spatial))]
    where = tuple(
        window.start + dim_mul(window.first + tap, window.dilation)
        for window, tap in zip(windows, taps, strict=True)
    )
    buffers = GroupBuffers(group)
    elements = Elements(group, buffers)
    load = elements.load(x, point(x.type.shape, (space.index(0), symbol("c"), *where)))
    dtype = x.type.dtype
    loops = [(f"t{i}", window.count) for i, window in enumerate(windows)]
    function = "max" if anchor.op == "max_pool" else "sum"
    reduce = nested_reduce(
        "total", "max" if function == "max" else "sum", loops, dtype, ((), load), lanes=False
    )
    total: Value = Local("total", dtype)
    if anchor.op == "average_pool":
        total = Apply(
            "div", (total, FromIndex(_divisor(anchor, windows, x.type.shape), dtype)), dtype
        )
    elements.given[anchor.results[0]] = elements.let(total, dtype)
    result = group.results[0]
    value = elements.value(result.value, space)
    store = Store(buffers.number(result), space.offset_of(result.view, result.type.shape), value)
    body: tuple[Statement, ...] = (reduce, *elements.take(), store)
    columns = For("x", shape[-1], "serial", (For("c", shape[1], "vector", body),))
    units = dim_product(tuple(shape[axis] for axis in outer_axes))
    work = dim_mul(
        dim_mul(shape[-1], shape[1]), dim_product(tuple(typical(k) for k in anchor.ints("kernel")))
    )
    return finish_program(buffers, (columns,), units, grain_for(work))


def _divisor(node: Node, windows: list[_Window], source: tuple[Dim, ...]) -> Dim:
    """Elements that an average counts: those inside, or also the pads that ``count_include_pad``
    names."""
    if not node.flag("count_include_pad"):
        return dim_product(tuple(window.count for window in windows))
    count: Dim = 1
    for axis, window in enumerate(windows):
        kernel = node.ints("kernel")[axis]
        limit = source[2 + axis] + node.dims("pads_counted_after")[axis]
        taps = dim_floordiv(limit - window.start + window.dilation - 1, window.dilation)
        count = dim_mul(count, dim_min(kernel, taps))
    return count


POOL = Kind("pool", one_kernel(lower_pool), ResultLayout.CHANNELS_LAST)
