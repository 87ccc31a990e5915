"""ONNX Runtime CausalConvWithState: a depthwise convolution along a sequence that goes on from the
last elements of the call before.

In: x [B, C, L], weights [C, 1, K], perhaps a bias [C] and the state [B, C, (K - 1) * dilation];
with ``channels_last`` axis 1 is the last one of x and state, or several. Out: the convolution,
and the last elements of state and x. Not done here: images and volumes, several states of one
call, what ONNX Runtime has on GPUs alone (refused).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.frontend.build.as_onnx import as_onnx
from ingot_compiler.frontend.build.compose import concat, full, reshape, slice_axis, transpose
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.onnx_op import OnnxOp
from ingot_compiler.frontend.build.operand_sizes import known_sizes, sizes_from, sizes_of, with_size
from ingot_compiler.ir.dims import dim_product
from ingot_compiler.ir.op_type_error import OpTypeError

_OF_GPUS = ("input_channels", "input_channel_offset", "state_length", "state_update_capacity")


def _translate(context: OpContext) -> Sequence[int]:
    _check(context)
    x, is_last = context.operand(0), context.bool_attribute("channels_last")
    shape = sizes_from(context, x, 3)
    channels, _, taps = known_sizes(context, context.operand(1), 3)
    dilation = context.int_attribute("dilation", 1)
    if dilation < 1:
        raise OpTypeError("a dilation of at least 1", dilation)
    past, kept = context.optional(3), (taps - 1) * dilation
    x = with_size(context, _channels_first(context, x), 1, channels, f"{channels} channels")
    batch, _, length = sizes_of(context, x, 3)
    if past is None:
        past = full(context, context.dtype_of(x), 0, (batch, channels, kept))
    else:
        past = with_size(context, _channels_first(context, past), 2, kept, f"{kept} elements")
    joined = concat(context, [past, x], 2) if kept else x
    last = slice_axis(context, joined, 2, length, kept)
    weights, sizes = (context.operand(1), context.optional(2)), (dilation,)
    result = as_onnx(
        context, "Conv", joined, *weights, group=channels, dilations=sizes, kernel_shape=(taps,)
    )
    if context.string_attribute("activation", "none", ("none", "silu", "swish")) != "none":
        result = context.add("silu", result)
    if not is_last:
        return result, last
    outer = shape[2:]
    return tuple(
        reshape(context, transpose(context, each, (0, 2, 1)), (batch, size, *outer))
        for each, size in ((result, length), (last, kept))
    )


def _check(context: OpContext) -> None:
    if context.int_attribute("ndim", 1) != 1:
        raise Unsupported("images and volumes")
    if context.int_attribute("state_window", 0):
        raise Unsupported("a window of states")
    for name in _OF_GPUS:
        if context.int_attribute(name, 0):
            raise Unsupported(name)


def _channels_first(context: OpContext, x: int) -> int:
    """[B, C, L], whatever the order of the file is."""
    if not context.bool_attribute("channels_last"):
        sizes_of(context, x, 3)
        return x
    batch, length, *channels = context.shape_of(x)
    return transpose(
        context, reshape(context, x, (batch, length, dim_product(tuple(channels)))), (0, 2, 1)
    )


OPS = (
    OnnxOp(
        "CausalConvWithState",
        _translate,
        signature="input weight bias? past_state? -> output present_state state_update?; "
        "activation:string channels_last:int dilation:int ndim:int state_window:int "
        "input_channels:int input_channel_offset:int state_length:int state_channels_last:int "
        "state_update_capacity:int",
    ),
)
