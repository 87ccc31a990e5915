"""Transposed convolution by gathering: every output position sums the taps that reach it (ONNX
ConvTranspose-22).

In: a group anchored by ``conv_transpose`` whose weights lie as [G, kernel.., C/G, O/G]. Out: its
loop program: units are (image, output axes but the last). Not done here: register tiling.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.ir.dims import Dim, dim_floordiv, dim_mod, dim_mul, dim_product, symbol
from ingot_compiler.ir.graph import Node
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.groups.fused import Group
from ingot_compiler.lowering.groups.guards import all_of, clamped
from ingot_compiler.lowering.groups.space import Space, point
from ingot_compiler.lowering.groups.views import Shape
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.image_rows import COLUMN, point_of_row, row_count
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.kinds.reduce import nested_reduce
from ingot_compiler.lowering.loops.loop_values import Apply, Compare, Constant, Local, Value
from ingot_compiler.lowering.loops.program import For, LoopProgram, Reduce


def lower_conv_transpose(group: Group, target: KernelTarget) -> LoopProgram:
    """Output channels of one group in lanes; sums run over taps, then input channels."""
    del target
    anchor = group.nodes[group.anchor]
    shape, groups = dict(group.types)[anchor.results[0]].shape, anchor.integer("groups")
    own = dim_floordiv(shape[1], groups)
    channel = dim_mul(symbol("g"), own) + symbol("o")
    elements = Elements(group, GroupBuffers(group))
    space = point_of_row(shape, channel)
    total, work = _total(elements, anchor, space)
    value: Value = Local("total", total.dtype)
    for bias in anchor.operands[2:]:
        operand = elements.operands[bias]
        loaded = elements.load(operand, point(operand.type.shape, (channel,)))
        value = Apply("add", (value, loaded), total.dtype)
    elements.given[anchor.results[0]] = elements.let(value, total.dtype)
    lanes = For("o", own, "vector", (total, *elements.stored(group.results[0], space)))
    column = For("g", groups, "serial", (lanes,))
    body = (For(COLUMN, shape[-1], "serial", (column,)),)
    return finish_program(elements.buffers, body, row_count(shape), grain_for(dim_mul(work, own)))


def _total(elements: Elements, anchor: Node, space: Space) -> tuple[Reduce, Dim]:
    """The sum of an output position, and how many products it has."""
    x, w = elements.operand(anchor, 0), elements.operand(anchor, 1)
    kernel, dtype = w.type.shape[1:-2], elements.dtype(anchor.results[0])
    channels = dim_floordiv(x.type.shape[1], anchor.integer("groups"))
    taps = [symbol(f"t{i}") for i in range(len(kernel))]
    reached, where = _source(anchor, space, taps, x.type.shape[2:])
    own = dim_mul(symbol("g"), channels) + symbol("c")
    pixel = elements.load(x, point(x.type.shape, (space.index(0), own, *where)))
    place = (symbol("g"), *taps, symbol("c"), symbol("o"))
    product = Apply("mul", (pixel, elements.load(w, point(w.type.shape, place))), dtype)
    guarded = Apply("select", (reached, product, Constant(0.0, dtype)), dtype)
    axes = [(f"t{i}", extent) for i, extent in enumerate(kernel)] + [("c", channels)]
    total = nested_reduce("total", "sum", axes, dtype, ((), guarded), lanes=False)
    return total, dim_mul(dim_product(kernel), channels)


def _source(
    anchor: Node, space: Space, taps: Sequence[Dim], image: Shape
) -> tuple[Value, tuple[Dim, ...]]:
    """Whether taps reach the output position from a pixel of the image, and from which; one inside
    in any case."""
    tests: list[Value] = []
    where: list[Dim] = []
    for i, (tap, extent) in enumerate(zip(taps, image, strict=True)):
        stride, dilation = anchor.ints("strides")[i], anchor.ints("dilations")[i]
        reach = space.index(2 + i) + anchor.dims("pads_before")[i] - dim_mul(tap, dilation)
        index = dim_floordiv(reach, stride)
        tests.append(Compare("equal", dim_mod(reach, stride), 0))
        tests += [Compare("less_equal", 0, index), Compare("less", index, extent)]
        where.append(clamped(index, extent))
    return all_of(tests), tuple(where)


CONV_TRANSPOSE = Kind(
    "conv_transpose", one_kernel(lower_conv_transpose), ResultLayout.CHANNELS_LAST
)
