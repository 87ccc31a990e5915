"""Transposed convolution by gathering: every output position sums the taps that reach it (ONNX
ConvTranspose-22).

In: a group anchored by ``conv_transpose`` whose weights lie as [G, kernel.., C/G, O/G]. Out: its
loop program: units are (image, output axes but the last). Not done here: register tiling.
"""

from __future__ import annotations

from ingot_compiler.ir.dims import (
    Dim,
    dim_floordiv,
    dim_max,
    dim_min,
    dim_mod,
    dim_mul,
    dim_product,
    symbol,
)
from ingot_compiler.lowering.elements import Elements, GroupBuffers
from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.kinds.reduce import nested_reduce
from ingot_compiler.lowering.loops import (
    Apply,
    Compare,
    Constant,
    For,
    Load,
    Local,
    LoopProgram,
    Store,
    Value,
)
from ingot_compiler.lowering.space import Run, Space, point


def lower_conv_transpose(group: Group, target: KernelTarget) -> LoopProgram:
    """Output channels of one group in lanes; sums run over taps, then input channels."""
    del target
    anchor = group.nodes[group.anchor]
    operands = {operand.value: operand for operand in group.operands}
    x, w = operands[anchor.operands[0]], operands[anchor.operands[1]]
    kind = dict(group.types)[anchor.results[0]]
    groups = anchor.integer("groups")
    spatial = tuple(range(2, kind.rank))
    own = dim_floordiv(kind.shape[1], groups)
    channels = dim_floordiv(x.type.shape[1], groups)
    outer_axes = (0, *spatial[:-1])
    channel = dim_mul(symbol("g"), own) + symbol("o")
    space = Space(
        kind.shape,
        (Run(outer_axes, symbol("p")), Run((spatial[-1],), symbol("x")), Run((1,), channel)),
    )
    kernel = w.type.shape[1:-2]
    inside: Value = Constant(True, "bool")
    where: list[Dim] = []
    taps = [symbol(f"t{axis}") for axis in range(len(spatial))]
    for i, axis in enumerate(spatial):
        stride, dilation = anchor.ints("strides")[i], anchor.ints("dilations")[i]
        pad = anchor.dims("pads_before")[i]
        assert not isinstance(pad, (str, float, tuple))
        reach = space.index(axis) + pad - dim_mul(taps[i], dilation)
        index = dim_floordiv(reach, stride)
        extent = x.type.shape[axis]
        for test in (
            Compare("equal", dim_mod(reach, stride), 0),
            Compare("less_equal", 0, index),
            Compare("less", index, extent),
        ):
            inside = Apply("logical_and", (inside, test), "bool")
        where.append(dim_max(dim_min(index, extent - 1), 0))
    buffers = GroupBuffers(group)
    dtype = kind.dtype
    source = point(
        x.type.shape, (space.index(0), dim_mul(symbol("g"), channels) + symbol("c"), *where)
    )
    weight = point(w.type.shape, (symbol("g"), *taps, symbol("c"), symbol("o")))
    loaded = Load(buffers.number(x), source.offset(x.view))
    product = Apply("mul", (loaded, Load(buffers.number(w), weight.offset(w.view))), dtype)
    guarded = Apply("select", (inside, product, Constant(0.0, dtype)), dtype)
    axes = [(f"t{i}", kernel[i]) for i in range(len(spatial))] + [("c", channels)]
    total = nested_reduce("total", "sum", axes, dtype, ((), guarded), lanes=False)
    elements = Elements(group, buffers)
    value: Value = Local("total", dtype)
    for bias in anchor.operands[2:]:
        operand = operands[bias]
        value = Apply(
            "add", (value, elements.load(operand, point(operand.type.shape, (channel,)))), dtype
        )
    elements.given[anchor.results[0]] = elements.let(value, dtype)
    result = group.results[0]
    stored = elements.value(result.value, space)
    store = Store(buffers.number(result), space.offset_of(result.view, result.type.shape), stored)
    lanes = For("o", own, "vector", (total, *elements.take(), store))
    body = (For("x", kind.shape[spatial[-1]], "serial", (For("g", groups, "serial", (lanes,)),)),)
    units = dim_product(tuple(kind.shape[axis] for axis in outer_axes))
    return finish_program(
        buffers, body, units, grain_for(dim_mul(dim_product(kernel), dim_mul(channels, own)))
    )


CONV_TRANSPOSE = Kind(
    "conv_transpose", one_kernel(lower_conv_transpose), ResultLayout.CHANNELS_LAST
)
