"""Depthwise convolutions: one kernel row of an image at a time, channels in lanes.

In: a group anchored by ``conv`` with one input and one output channel per group, channels-last.
Out: its loop program.
Not done here: other grouped convolutions (``contraction``).
"""

from ingot_compiler.backends.host.convolution import TAP_NAMES, ConvShape
from ingot_compiler.backends.host.kinds.contraction import anchored_epilogue
from ingot_compiler.backends.host.tiles import choose_pixels
from ingot_compiler.ir.dims import Dim, dim_mul, dim_product, symbol
from ingot_compiler.lowering.elements import GroupBuffers
from ingot_compiler.lowering.fused import Group
from ingot_compiler.lowering.kernel_target import KernelTarget
from ingot_compiler.lowering.kinds.kind import Kind, ResultLayout, one_kernel
from ingot_compiler.lowering.kinds.program import finish_program, grain_for
from ingot_compiler.lowering.loops import Depthwise, LoopProgram
from ingot_compiler.lowering.space import Run, Space
from ingot_compiler.lowering.views import flat_offset


def lower_depthwise(group: Group, target: KernelTarget) -> LoopProgram:
    """Units are (image, every output axis but the last)."""
    anchor = group.nodes[group.anchor]
    types = dict(group.types)
    operands = {operand.value: operand for operand in group.operands}
    x, w = operands[anchor.operands[0]], operands[anchor.operands[1]]
    kernel = x.type.rank - 2
    conv = ConvShape.of(anchor, x, (w.type.shape[-1], 1, *w.type.shape[:kernel]))
    shape = types[anchor.results[0]].shape
    outer_axes = (0, *range(2, len(shape) - 1))
    outer_shape = tuple(shape[axis] for axis in outer_axes)
    steps: list[Dim] = [x.view.strides[0]]
    steps += [dim_mul(conv.strides[i], x.view.strides[2 + i]) for i in range(kernel - 1)]
    step_x = dim_mul(conv.strides[-1], x.view.strides[-1])
    a_index = (
        conv.origin(x)
        + flat_offset(symbol("p"), outer_shape, steps)
        + dim_mul(step_x, symbol("x"))
        + conv.tap_offset(x)
        + dim_mul(x.view.strides[1], symbol("channel"))
    )
    w_index = w.view.offset + dim_mul(w.view.strides[-1], symbol("channel"))
    for axis in range(kernel):
        w_index = w_index + dim_mul(w.view.strides[axis], symbol(TAP_NAMES[axis]))
    space = Space(
        shape,
        (
            Run(outer_axes, symbol("p")),
            Run((len(shape) - 1,), symbol("x")),
            Run((1,), symbol("channel")),
        ),
    )
    buffers = GroupBuffers(group)
    statement = Depthwise(
        "x", shape[-1], "channel", shape[1], tuple(zip(TAP_NAMES, conv.kernel, strict=False)),
        buffers.number(x), a_index, buffers.number(w), w_index, x.type.dtype,
        "acc", anchored_epilogue(group, buffers, space),
        choose_pixels(shape[-1] if isinstance(shape[-1], int) else None, conv.kernel, target),
    )  # fmt: skip
    work = dim_mul(dim_mul(shape[-1], shape[1]), dim_product(conv.kernel))
    return finish_program(buffers, (statement,), dim_product(outer_shape), grain_for(work // 8))


DEPTHWISE = Kind("depthwise", one_kernel(lower_depthwise), ResultLayout.CHANNELS_LAST)
